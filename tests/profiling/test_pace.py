"""What the machine did while steps were timed is kept beside the time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from profiling import _child_clock, _child_pace
from profiling.events import Gathered
from profiling.notices import step_times


def timed(monkeypatch: pytest.MonkeyPatch, *readings: tuple[float, float, float, float] | None) -> dict:
    """What is found of a stretch for which the system says this, in turn: waited, used, stolen, own (seconds)."""
    left = iter(readings)
    monkeypatch.setattr(_child_pace.Pace, "_now", lambda _: next(left))
    pace = _child_pace.Pace()
    for _ in range(len(readings) // 2):
        pace.start()
        pace.stop()
    return pace.found()


def test_waiting_for_cores_that_others_had_is_kept(monkeypatch):
    monkeypatch.setattr(_child_pace, "is_alone", lambda: True)
    found = timed(monkeypatch, (1.0, 10.0, 0.0, 2.0), (1.25, 11.0, 0.0, 2.5))
    assert found["waited_us"] == pytest.approx(250_000)
    assert found["loop_us"] > 0


def test_what_the_scripts_own_workers_take_is_part_of_the_script(monkeypatch):
    found = timed(monkeypatch, (1.0, 10.0, 0.0, 2.0), (1.5, 11.0, 0.0, 3.0))
    assert (found["waited_us"], found["crowded_us"]) == (0, pytest.approx(500_000))


def test_what_a_host_takes_from_a_virtual_machine_counts(monkeypatch):
    assert timed(monkeypatch, (1.0, 10.0, 0.0, 2.0), (1.0, 11.0, 0.5, 3.0))["waited_us"] == pytest.approx(500_000)


def test_a_stretch_that_is_interrupted_is_summed_and_a_system_that_tells_nothing_is_unknown(monkeypatch):
    one, two = (0.0, 0.0, 0.0, 0.0), (0.1, 5.0, 0.0, 0.0)
    assert timed(monkeypatch, one, two, one, two)["waited_us"] == pytest.approx(200_000)
    assert timed(monkeypatch, one, two, None, two)["waited_us"] is None


def test_a_system_without_proc_is_unknown(monkeypatch):
    monkeypatch.setattr(_child_pace, "_read", lambda path: (_ for _ in ()).throw(FileNotFoundError(path)))
    monkeypatch.setattr(_child_pace.os, "listdir", lambda path: (_ for _ in ()).throw(FileNotFoundError(path)))
    pace = _child_pace.Pace()
    pace.start()
    pace.stop()
    assert pace.found()["waited_us"] is None


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's count is Linux's")
def test_the_systems_own_count_can_be_read():
    pace = _child_pace.Pace()
    clock = _child_clock.Clock(lambda: None, pace)
    clock.start()
    clock.stop()
    assert pace.found()["waited_us"] >= 0


def test_no_yardstick_counts_that_the_scripts_own_workers_ran_beside(monkeypatch):
    alone = iter([True, True, False, True, False, True, True, True, True])
    monkeypatch.setattr(_child_pace, "is_alone", lambda: next(alone))
    monkeypatch.setattr(_child_pace, "yardstick", lambda rounds=10: float(rounds))
    monkeypatch.setattr(_child_pace.Pace, "_now", lambda _: None)
    pace = _child_pace.Pace()  # alone at both ends
    pace.start()  # not alone
    pace.stop()  # alone before it, not alone after it
    assert pace.found()["loop_us"] is None
    pace.start()
    assert pace.found()["loop_us"] == 10.0
    assert pace.apart() == _child_pace.APART_ROUNDS


@pytest.mark.skipif(sys.platform != "linux", reason="states of threads are Linux's")
@pytest.mark.parametrize(("then", "rests"), [("input()", True), ("while True: pass", False)])
def test_a_worker_that_works_is_told_from_one_that_rests(then, rests):
    command = [sys.executable, "-S", "-c", f"print('up', flush=True)\n{then}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdout.readline()
        try:  # a moment passes until it reads, and may pass until it works on
            assert any(_child_pace.is_alone() is rests for _ in range(1000))
        finally:
            worker.kill()


def gathered(steps: list[float], *paces: dict) -> Gathered:
    found = Gathered()
    clocked = [[len(steps) // len(paces), sum(steps) / len(paces), pace] for pace in paces]
    found.summaries.append({"steps": 9, "times": [[n, "wall", us] for n, us in enumerate(steps)], "wall": clocked})
    return found


def test_a_run_says_how_far_its_step_can_be_trusted():
    calm = step_times(gathered([1000.0] * 8, {"waited_us": 80.0, "crowded_us": 800.0, "loop_us": 70.0}))
    assert (calm.waited_pct, calm.error_pct, calm.loop_us) == (pytest.approx(1.0), 0.0, 70.0)
    assert calm.crowded_pct == pytest.approx(10.0)
    uneven = step_times(gathered([1000.0, 1200.0] * 4, {"waited_us": None, "loop_us": 70.0}))
    assert uneven.waited_pct is None
    assert uneven.error_pct == pytest.approx(100 * 1.25 * 200 / 1.35 / 8**0.5 / 1100)
    assert step_times(gathered([1.0, 2.0], {"waited_us": 0.0, "loop_us": None})).error_pct is None


def test_where_the_scripts_own_workers_never_rest_the_pace_is_that_before_and_after_its_loop():
    found = gathered([1000.0] * 8, {"waited_us": 0.0, "loop_us": None})
    assert step_times(found).loop_us is None
    found.summaries[0]["loop_us"] = 70.0
    assert step_times(found).loop_us == 70.0
    beside = gathered([1000.0] * 8, {"waited_us": 0.0, "loop_us": 72.0})
    beside.summaries[0]["loop_us"] = 90.0
    assert step_times(beside).loop_us == 72.0
