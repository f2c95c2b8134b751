"""How many steps are timed without the profiler."""

from __future__ import annotations

import pytest

from profiling import _child_clock, _child_pace


@pytest.mark.parametrize(
    ("step_s", "left", "timed"),
    [
        (0.011, None, 12),  # a script of thirty steps is left with its window
        (0.011, 34, 12),  # its loader would have had more
        (0.001, None, 50),
        (0.005, None, 20),
        (0.05, None, 6),
        (1.0, None, 3),
        (0.011, 0, 3),
    ],
)
def test_few_steps_are_timed_so_that_a_window_is_left(
    monkeypatch: pytest.MonkeyPatch, step_s: float, left: int | None, timed: int
) -> None:
    now = [0.0]
    monkeypatch.setattr(_child_clock.time, "perf_counter", lambda: now[0])
    clock = _child_clock.Clock(lambda: None, _child_pace.Pace())
    clock.start()
    for _ in range(100):
        now[0] += step_s * 1.0001
        if clock.ended(left):
            break
    assert clock.steps == timed
