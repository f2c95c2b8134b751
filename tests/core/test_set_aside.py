"""A plan without what was allowed: priced anew, and what was taken out is named."""

from __future__ import annotations

import pytest

from core.reporting import html, text
from core.set_aside import priced_without, set_aside
from tests.core.reporting.cases import analysed, training


@pytest.fixture(scope="module")
def case():
    return analysed(training(item=True))


def test_what_is_set_aside_leaves_the_plan_and_the_rest_is_priced_without_it(case):
    trace, analysis = case
    first = analysis.suggestions[analysis.plan[0].suggestions[0]]
    rest, gone = set_aside(trace, analysis, {first.key: "allowed: meant"})
    assert gone == ((first, "allowed: meant"),)
    assert first.key not in {s.key for s in rest.suggestions}
    assert len(rest.suggestions) == len(analysis.suggestions) - 1
    assert all(first.rule_id not in step.rules for step in rest.plan)
    assert rest.figures is analysis.figures
    assert rest.rules is analysis.rules
    last = rest.plan[-1].predicted_step_ns if rest.plan else rest.figures.summary.sustained_step_ns
    assert last > analysis.plan[-1].predicted_step_ns


def test_without_anything_to_set_aside_nothing_is_worked_out_again(case):
    trace, analysis = case
    assert set_aside(trace, analysis, {"none": "allowed"}) == (analysis, ())


def test_reports_list_it_apart(case):
    trace, analysis = case
    words = {s.key: "allowed: meant" for s in analysis.suggestions if not s.informational}
    rest, gone = set_aside(trace, analysis, words)
    for said in (text.report(trace, rest, aside=gone), html.page(trace, rest, aside=gone)):
        assert "Not counted in the plan" in said
        assert "allowed: meant" in said
        assert "Nothing else was found" in " ".join(said.split())
        assert "Healthy: nothing" not in said


def test_kept_in_the_list_it_is_priced_as_the_reports_do(case):
    trace, analysis = case
    first = analysis.suggestions[analysis.plan[0].suggestions[0]]
    rest, _ = set_aside(trace, analysis, {first.key: "dismissed"})
    kept = priced_without(trace, analysis, {first.key})
    assert kept.aside == {first.key}
    assert kept.plan == rest.plan
    assert kept.suggestions[:-1] == rest.suggestions
    assert kept.suggestions[-1].key == first.key
    assert len(kept.suggestions) - 1 not in kept.numbers()
    assert not kept.is_left_out(len(kept.suggestions) - 1)
    again = priced_without(trace, kept, ())
    assert again.plan == analysis.plan
    assert again.suggestions == analysis.suggestions
