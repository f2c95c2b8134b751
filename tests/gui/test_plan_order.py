"""The plan says why its cards stand in their order, and what cards that hide one another save together."""

from __future__ import annotations

from dataclasses import replace

from core.analysis import analyze
from core.importing import open_trace
from core.run_folder import SAMPLES
from core.suggestions import PlanStep
from gui import plan_order
from tests.trace_builder import TraceBuilder


def test_the_order_and_the_groups_are_told() -> None:
    analysis = analyze(open_trace(SAMPLES / "story_stage0_simulated.json.gz"))
    now = analysis.figures.summary.sustained_step_ns
    assert now is not None
    ((first, last, saved_ns),) = plan_order.chains(analysis, now)
    assert (first, last) == (2, 3)
    assert round(saved_ns) == analysis.plan[0].predicted_step_ns - analysis.plan[2].predicted_step_ns
    words = plan_order.in_words(analysis, now)
    assert "saves most after the fixes above it" in words
    assert "Cards 2 to 3 hide one another's waits: together −219" in words


def test_a_plan_of_one_card_needs_no_order() -> None:
    analysis = analyze(TraceBuilder().op("aten::add", 0, 5).build())
    assert plan_order.in_words(analysis, 100.0) == ""
    alone = replace(analysis, plan=(PlanStep((0,), ("x",), 90), PlanStep((1,), ("y",), 80)))
    assert plan_order.in_words(alone, 100.0) == "Next is always what saves most after the fixes above it."
