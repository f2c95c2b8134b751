"""Several fixes are priced by one replay: their savings do not add up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import resources
from core.analysis import analyze
from core.importing import open_trace
from core.joint import predicted_together

SAMPLE = Path(resources.__file__).parent / "samples" / "story_stage0_simulated.json.gz"


@pytest.fixture(scope="module")
def story():
    trace = open_trace(SAMPLE)
    return trace, analyze(trace)


def at(analysis, *rules: str) -> list[int]:
    return [next(i for i, s in enumerate(analysis.suggestions) if s.rule_id == rule) for rule in rules]


def test_the_beginning_of_the_plan_is_the_plans_own_figure(story):
    trace, analysis = story
    first = [i for step in analysis.plan[:2] for i in step.suggestions]
    assert predicted_together(trace, analysis, first) == analysis.plan[1].predicted_step_ns


def test_waits_together_save_more_than_the_sum_of_each(story):
    trace, analysis = story
    every = at(analysis, "constant-copied-each-step", "control-flow-on-device-tensor", "host-list-index")
    now = analysis.figures.summary.sustained_step_ns
    shuffled = replace(analysis, plan=())  # so that the replay has to tell
    together = now - predicted_together(trace, shuffled, every)
    assert together > 1.5 * sum(analysis.suggestions[i].saving.ns for i in every)
    assert now - together == pytest.approx(analysis.plan[2].predicted_step_ns, rel=0.01)


def test_what_cannot_be_replayed_is_unknown(story):
    trace, analysis = story
    note = next(i for i, s in enumerate(analysis.suggestions) if not s.effects)
    assert predicted_together(trace, analysis, [0, note]) is None
    assert predicted_together(trace, analysis, []) is None
