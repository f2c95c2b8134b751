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


BURSTS = [1000, 18000, 1100, 17900, 900, 18100, 1000, 18000, 1050, 17950, 1000, 18000]  # of a loader with two workers
OF_FOUR = [1000, 1000, 1000, 17000] * 3


@pytest.mark.parametrize("steps", [BURSTS, BURSTS[1:], BURSTS[:-1]])
def test_batches_that_come_in_bursts_are_a_rhythm_and_the_step_is_its_mean(steps):
    times = step_times(gathered(steps, BURSTS[:5], []))
    assert times.wall_us == pytest.approx(9500, rel=0.01)
    assert times.error_pct is not None
    assert times.error_pct < 2
    assert times.profiled_us == pytest.approx(7780, rel=0.01)


def test_one_hiccup_among_bursts_does_not_count():
    assert step_times(gathered([*BURSTS[:-1], 90000], [1200], [])).wall_us == pytest.approx(9500, rel=0.02)


def test_steps_without_a_rhythm_are_as_unsure_as_they_scatter():
    steps = [1000, 1000, 3000, 1000, 3000, 3000, 3000, 1000]
    times = step_times(gathered(steps, [1200], []))
    assert times.wall_us == 2000
    assert times.error_pct == pytest.approx(100 * 1069 / 8**0.5 / 2000, rel=0.01)


def test_bursts_are_no_hiccups_on_a_device_either():
    assert step_times(gathered(OF_FOUR, [1200], [0])).wall_us == pytest.approx(5000)
    assert step_times(gathered(OF_FOUR, [1200], [])).wall_us == pytest.approx(5000)


def test_recorded_steps_that_are_uneven_accuse_nobody():
    fine = gathered(BURSTS, [1000, 18000, 1000, 1100, 900], [])  # 9.5 ms without the profiler, 4.4 ms with it
    assert not any("without the profiler" in n for n in notices_of(fine, fine.traces, 0, ""))


def test_steps_that_went_by_before_the_timing_do_not_count():
    found = gathered([10, 10, 10, 10, 1000, 1000, 1000], [1200], [])
    found.summaries[0]["wall"] = [[3, 3000]]
    assert (step_times(found).wall_us, step_times(found).timed) == (1000, 3)
