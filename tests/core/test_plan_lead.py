"""A verdict and the first card of its plan are tied together in words, or it is said that no card answers."""

from __future__ import annotations

import inspect
from dataclasses import replace

import pytest

from core.analysis import Analysis, analyze
from core.plan_lead import ANSWERS, TEMPLATES, lead
from core.reporting.html import page
from core.reporting.text import report
from core.rule_runner import load_rules
from core.suggestions import PlanStep, Saving, Suggestion
from core.trace import Trace
from core.words import fill
from tests.core.test_outlook import host_bound


def planned(verdict: str, *rules: str, unpriced: str = "") -> tuple[Trace, Analysis]:
    trace = host_bound().build()
    figures = analyze(trace).figures
    figures = replace(figures, summary=replace(figures.summary, verdict=verdict, sustained_step_ns=1_000_000))
    found = [Suggestion(rule, rule.title(), saving=Saving(1000, 1.0, "replayed")) for rule in rules]
    found += [Suggestion(unpriced, "Without a price")] if unpriced else []
    plan = [PlanStep((i,), (rule,), 1_000_000 - i) for i, rule in enumerate(rules)]
    return trace, Analysis(figures, tuple(found), tuple(plan))


def words_of(analysis: Analysis) -> str:
    found = lead(analysis)
    return "" if found is None else fill(found.template, found.values)


def test_the_first_card_that_answers_needs_no_words():
    assert lead(planned("sync_bound", "scalar-read-back", "launch-bound")[1]) is None


def test_a_later_card_that_answers_is_named():
    _, analysis = planned("communication_bound", "launch-bound", "loader-without-workers", "exposed-communication")
    found = lead(analysis)
    assert found is not None
    assert found.card == 2
    assert words_of(analysis).startswith("Card 3 is about communication")


def test_one_without_a_number_is_named_by_its_title_in_reports():
    trace, analysis = planned("communication_bound", "tensor-read-back", unpriced="communication-share")
    assert "without a number" in words_of(analysis)
    for shown in (report(trace, analysis), page(trace, analysis)):
        assert "“Without a price”" in " ".join(shown.split())


def test_a_card_about_little_of_the_cause_is_not_shown_as_its_answer():
    """A fix of 5 % beside a card of 44 % that no saving can be foretold for."""
    _, analysis = planned("communication_bound", "launch-bound", "exposed-communication", unpriced="straggler")
    whole = Suggestion("communication-share", "In 44 % of the step the GPU only communicates")
    analysis = replace(analysis, suggestions=(*analysis.suggestions, whole))
    found = lead(analysis)
    assert found is not None
    assert found.card == 3
    assert words_of(analysis).startswith("Card 2 is about a small part of communication")


@pytest.mark.parametrize("verdict", sorted(ANSWERS))
def test_where_no_card_answers_it_is_said_plainly(verdict):
    other = "loader-without-workers" if verdict != "input_bound" else "scalar-read-back"
    trace, analysis = planned(verdict, other)
    assert words_of(analysis).startswith("No card is about")
    assert "No card is about" in report(trace, analysis)


@pytest.mark.parametrize("verdict", ["healthy", "unknown"])
def test_a_verdict_without_a_cause_needs_none(verdict):
    assert lead(planned(verdict, "launch-bound")[1]) is None


def test_nothing_is_claimed_of_a_rule_that_is_not_known():
    assert lead(planned("input_bound", "team-rule")[1]) is None
    assert lead(planned("input_bound", "launch-bound", "team-rule")[1]) is None


def test_only_rules_that_there_are_answer_and_every_verdict_has_its_words():
    known = {r.rule.id for r in load_rules()}
    assert frozenset().union(*ANSWERS.values()) <= known
    for verdict in ANSWERS:
        assert {f"later_{verdict}", f"none_{verdict}"} <= set(TEMPLATES)


def test_every_rule_that_can_be_in_a_plan_has_a_subject():
    with_price = {r.rule.id for r in load_rules() if r.module is not None and "Effect(" in inspect.getsource(r.module)}
    assert "launch-bound" in with_price
    assert with_price <= frozenset().union(*ANSWERS.values())
