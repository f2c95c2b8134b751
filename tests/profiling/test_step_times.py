"""What a step takes without the profiler: one slow step among the few that are timed does not decide it."""

from __future__ import annotations

import pytest

from profiling.events import Gathered
from profiling.notices import notices_of, step_times


def gathered(timed: list[float], recorded: list[float], devices: list[int], lag_us: float = 0.0) -> Gathered:
    times = [[n, "wall", us] for n, us in enumerate(timed)] + [[9 + n, "window", us] for n, us in enumerate(recorded)]
    summary = {"source": "loader", "steps": 9, "times": times, "wall": [[len(timed), sum(timed) + lag_us]]}
    found = Gathered(torch_version="2.5.1")
    found.summaries.append(summary)
    found.traces.append({"path": "trace.json", "kind": "own", "steps": [9], "devices": devices})
    return found


def test_one_slow_step_of_three_does_not_count_on_the_cpu():
    times = step_times(gathered([1000, 9000, 1100], [1200, 1300, 1250], []))
    assert times.wall_us == 1100
    assert times.profiled_us == 1250
    assert times.timed == 3


def test_on_a_device_the_queue_counts_and_the_slow_step_does_not():
    # The host queues each step in 100 us, and then waits 2.7 ms for the device: a step takes a millisecond.
    assert step_times(gathered([100, 100, 100], [1200], [0], 2700)).wall_us == pytest.approx(1000)
    assert step_times(gathered([100, 5100, 100], [1200], [0], 2700)).wall_us == pytest.approx(1000)


def test_a_step_that_is_slower_without_the_profiler_is_said_to_be_disturbed():
    slow = gathered([3000, 3000, 3000], [1200, 1200], [])
    assert any("longer without the profiler (3 ms)" in n for n in notices_of(slow, slow.traces, 0, ""))
    fine = gathered([1000, 9000, 1100], [1200, 1300], [])
    assert not any("without the profiler" in n for n in notices_of(fine, fine.traces, 0, ""))


def test_nothing_timed_is_unknown():
    times = step_times(Gathered())
    assert (times.wall_us, times.profiled_us, times.timed) == (None, None, 0)
