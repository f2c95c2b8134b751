"""What the machine did while steps were timed is kept beside the time."""

from __future__ import annotations

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
