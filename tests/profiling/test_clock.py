"""How many steps are timed without the profiler."""

from __future__ import annotations

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


@pytest.mark.parametrize("step_s", [0.0003, 0.001, 0.003, 0.02])
def test_a_loop_left_after_forty_quick_steps_has_had_its_window(monkeypatch: pytest.MonkeyPatch, step_s: float) -> None:
    schedule = Schedule()
    early = max(_child_early.FEW_STEPS, schedule.skip + schedule.warmup)
    primed = 1
    assert early + timed_steps(monkeypatch, step_s, None) + primed + schedule.active <= 40
