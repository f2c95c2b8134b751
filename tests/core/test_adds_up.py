"""What must hold of the figures and prices of any trace: time adds up, and no saving exceeds what it is taken from."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from core.analysis import Analysis, analyze
from core.figures.compute import compute_figures
from core.importing import open_trace
from core.intervals import Spans, intersect, union
from core.kinds import GapCause, SyncKind
from core.pricing import price
from core.replay.replay import Replay
from core.suggestions import Effect, EffectKind, Outcome, Rule, RuleResult, Suggestion
from core.trace import Trace
from tests.core.replay.helpers import effects_of
from tests.shared import needs_shared, trace_path
from tests.simulator import simulate
from tests.simulator.random_programs import RandomProgram, random_program
from tests.simulator.rich_programs import rich_program

ROUNDING_NS = 2
# Small ones of every kind: steps marked, inferred, none; ranks, ROCm, graphs, CPU only, device only.
REAL = ("d03", "d04", "d08", "d09", "d10", "d13", "m06", "m07", "m12", "m16", "m19", "m20", "m28", "m35", "m36", "m37",
        "m38", "m39", "m47", "m58")  # fmt: skip


def check_time(trace: Trace, analysis: Analysis) -> None:
    """Busy and idle make up each step's period; no idle instant of a device is charged twice, or while it works."""
    figures = analysis.figures
    budget, gaps = figures.budget, figures.gaps
    if budget.period_ns is not None:
        assert budget.busy_ns is not None
        assert budget.busy_ns + sum(budget.idle_by_cause_ns.values()) == budget.period_ns
        assert min(budget.idle_by_cause_ns.values(), default=0) >= 0
    for device in figures.devices:
        mine = gaps.device == device
        charged = Spans(gaps.start_ns[mine], gaps.end_ns[mine])
        assert (charged.start[1:] >= charged.end[:-1]).all()
        own = trace.device_ids[trace.tracks.device[trace.slices.track_id[trace.device_ids]] == device]
        work = union(trace.slices.start_ns[own], trace.end_ns[own])
        assert intersect(union(charged.start, charged.end), work).total_ns == 0
        _each_step(figures, work, charged)


def _each_step(figures, work: Spans, charged: Spans) -> None:
    """Inside the host step of every step the budget covers: work and charged gaps leave nothing out."""
    for row in np.flatnonzero(figures.step_figures.counted).tolist():
        step = union(figures.steps.start_ns[row : row + 1], figures.steps.end_ns[row : row + 1])
        busy, idle = intersect(work, step).total_ns, intersect(union(charged.start, charged.end), step).total_ns
        assert busy + idle == step.total_ns


def check_savings(analysis: Analysis) -> None:
    """No saving exceeds the step; what the plan saves grows with every fix and stays below it."""
    summary = analysis.figures.summary
    step = summary.sustained_step_ns
    for suggestion in analysis.suggestions:
        saving = suggestion.saving
        if saving.ns is not None:
            assert saving.ns >= 0
            assert saving.pct is not None
            assert 0 <= saving.pct <= 100.0001
        if saving.ns is not None and step is not None:
            assert saving.ns <= step + ROUNDING_NS
        assert saving.together_ns is None or saving.together_ns >= 0
    predicted = [one.predicted_step_ns for one in analysis.plan]
    assert predicted == sorted(predicted, reverse=True)
    if step is not None and predicted:
        assert predicted[0] <= step + ROUNDING_NS
        assert predicted[-1] >= 0
        together = sum(s.saving.together_ns or 0 for s in analysis.suggestions)
        assert together == pytest.approx(step - predicted[-1], abs=ROUNDING_NS * (len(predicted) + 1))


def check_waits(trace: Trace, analysis: Analysis) -> None:
    """Letting all waits go saves no more than what the device idles; each alone no more than all together."""
    figures = analysis.figures
    replay = Replay(trace, figures)
    if not replay or not len(figures.syncs) or not figures.devices or figures.budget.busy_ns is None:
        return
    rows = np.flatnonzero(figures.syncs.kind != SyncKind.ALLOC)
    calls = [int(i) for i in figures.syncs.slice_id[rows]]
    together = replay.what_if([Effect(EffectKind.REMOVE_WAIT, tuple(calls))])
    assert together.saved_ns <= together.bound_ns + ROUNDING_NS
    for call in calls[:6]:
        alone = replay.what_if([Effect(EffectKind.REMOVE_WAIT, (call,))])
        assert alone.saved_ns <= together.saved_ns + max(ROUNDING_NS, 0.002 * replay.step_ns)


def analysis_of(trace: Trace, program: RandomProgram) -> Analysis:
    """Price one suggestion per fault of a program."""
    found = [
        Suggestion(
            rule_id=fault.name.replace(" ", "-"), title="", effects=tuple(effects_of(trace, program, (fault.name,)))
        )
        for fault in program.faults
    ]
    results = [RuleResult(Rule(s.rule_id, s.rule_id), Outcome.FOUND, suggestions=(s,)) for s in found]
    return price(trace, compute_figures(trace), results)


def programs() -> Iterable[RandomProgram]:
    for seed in range(400, 415):
        yield random_program(seed)
        yield rich_program(seed)


def test_time_and_savings_of_random_programs_add_up(tmp_path: Path) -> None:
    for program in programs():
        trace = open_trace(simulate(program.step, steps=5, sustained=False).write(tmp_path / "t.json"))
        analysis = analysis_of(trace, program)
        check_time(trace, analysis)
        check_savings(analysis)
        check_waits(trace, analysis)


@needs_shared
@pytest.mark.parametrize("trace_id", REAL)
def test_time_and_savings_of_real_traces_add_up(trace_id: str) -> None:
    trace = open_trace(trace_path(trace_id))
    analysis = analyze(trace)
    check_time(trace, analysis)
    check_savings(analysis)
    check_waits(trace, analysis)
    assert set(analysis.figures.budget.idle_by_cause_ns) <= {int(cause) for cause in GapCause}
