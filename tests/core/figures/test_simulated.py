"""Figures of simulated programs against what the simulator knows: waits, steps, periods, busy time."""

from __future__ import annotations

import pytest

from core.figures.compute import compute_figures
from core.importing import open_trace
from tests.simulator.random_programs import random_program
from tests.simulator.run import simulate

WAIT_TOLERANCE_US = 3.0


@pytest.mark.parametrize("seed", range(40))
def test_random_program(seed, tmp_path):
    program = random_program(seed)
    run = simulate(program.step, steps=5)
    trace = open_trace(run.write(tmp_path / "simulated.json"))
    figures = compute_figures(trace)
    origin_us = min(event.start_us for event in run.events)
    truth = sorted((s.start_us - origin_us, s.call, s.wait_us) for s in run.syncs if s.step >= 0)
    found = figures.syncs
    # An allocation may wait, so that it is listed; the simulator's never does.
    kept = [i for i, slice_id in enumerate(found.slice_id) if "Malloc" not in trace.name(int(slice_id))]
    assert [trace.name(int(i)) for i in found.slice_id[kept]] == [call for _, call, _ in truth]
    for (_, _, expected), got in zip(truth, found.wait_ns[kept] / 1e3, strict=True):
        assert got == pytest.approx(expected, abs=WAIT_TOLERANCE_US)
    assert figures.step_figures.dur_ns / 1e3 == pytest.approx(list(run.host_step_us), abs=1.0)
    # The device's pace in the recording is the loop's own, however short the host steps are.
    if figures.summary.period_ns is not None:
        assert figures.summary.period_ns / 1e3 == pytest.approx(run.sustained_step_us, rel=0.05)
    budget = figures.budget
    assert budget.period_ns == budget.busy_ns + sum(budget.idle_by_cause_ns.values())
    if program.device_bound and figures.summary.enqueue_bound:
        assert figures.summary.verdict == "device_bound"
