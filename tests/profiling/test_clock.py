"""How many steps are timed without the profiler."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from profiling import _child_clock, _child_early, _child_pace
from profiling.spec import Schedule


def timed_steps(monkeypatch: pytest.MonkeyPatch, step_s: float, left: int | None) -> int:
    now = [0.0]
    monkeypatch.setattr(_child_clock.time, "perf_counter", lambda: now[0])
    clock = _child_clock.Clock(lambda: None, _child_pace.Pace())
    clock.start()
    for _ in range(100):
        now[0] += step_s * 1.0001
        if clock.ended(left):
            break
    return clock.steps


@pytest.mark.parametrize(
    ("step_s", "left", "timed"),
    [
        (0.011, None, 12),  # a script of thirty steps is left with its window
        (0.011, 34, 12),  # its loader would have had more
        (0.001, None, 25),
        (0.0002, None, 25),
        (0.005, None, 12),
        (0.05, None, 6),
        (1.0, None, 3),
        (0.011, 0, 3),
    ],
)
def test_few_steps_are_timed_so_that_a_window_is_left(
    monkeypatch: pytest.MonkeyPatch, step_s: float, left: int | None, timed: int
) -> None:
    assert timed_steps(monkeypatch, step_s, left) == timed


@pytest.mark.parametrize(
    ("steps_s", "left", "timed"),
    [
        ((0.3, 0.6, 0.2, 0.7, 0.5, 0.4), None, 5),  # two seconds
        ((0.10, 0.15, 0.12, 0.18, 0.15, 0.16, 0.17, 0.18, 0.1, 0.1), None, 10),
        ((0.18, 0.181, 0.90, 0.18, 0.18, 0.18), None, 5),  # one odd step is none of the others
        ((0.18, 0.27, 0.12, 0.5), 0, 3),  # the window needs the rest
        ((1.0, 2.0, 1.5), None, 3),
    ],
)
def test_slow_steps_that_scatter_are_timed_longer(
    monkeypatch: pytest.MonkeyPatch, steps_s: tuple[float, ...], left: int | None, timed: int
) -> None:
    now = [0.0]
    monkeypatch.setattr(_child_clock.time, "perf_counter", lambda: now[0])
    clock = _child_clock.Clock(lambda: None, _child_pace.Pace())
    clock.start()
    for step_s in steps_s:
        now[0] += step_s
        if clock.ended(left):
            break
    assert clock.steps == timed


@pytest.mark.parametrize("step_s", [0.0003, 0.001, 0.003, 0.02])
def test_a_loop_left_after_forty_quick_steps_has_had_its_window(monkeypatch: pytest.MonkeyPatch, step_s: float) -> None:
    schedule = Schedule()
    early = max(_child_early.FEW_STEPS, schedule.skip + schedule.warmup)
    primed = 1
    assert early + timed_steps(monkeypatch, step_s, None) + primed + schedule.active <= 40


def test_steps_that_are_to_go_by_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(_child_clock.time, "perf_counter", lambda: now[0])
    clock = _child_clock.Clock(lambda: None, _child_pace.Pace())
    clock.reset(4)
    ran = 0
    for step in range(30):
        if not clock.runs:
            clock.start()
        now[0] += 0.001 if step < 4 else 0.1
        ran += 1
        if clock.ended(None):
            break
    clock.stop()
    assert ran == 4 + clock.steps
    assert clock.us == pytest.approx(100_000 * clock.steps)


@pytest.mark.parametrize(
    ("ahead", "foreseen", "passed"),
    [(4, 90, 4), (4, None, 4), (64, None, 4), (64, 90, 16), (4, 30, 2), (4, 20, 0), (0, 90, 0)],
)
def test_batches_that_workers_have_ready_go_by_where_the_loop_is_long(
    ahead: int, foreseen: int | None, passed: int
) -> None:
    early = _child_early.Early(SimpleNamespace(ahead=ahead, number=10), None, 0)
    early.foreseen = foreseen
    assert early.passing(18) == passed
