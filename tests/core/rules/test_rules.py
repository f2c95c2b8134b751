"""What every rule must do: explain itself, find its fault, and leave its near miss alone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from core.rule_runner import load_rules
from core.rule_tools.texts import rule_texts
from core.suggestions import Outcome, Suggestion
from tests.core.rules import cases_device, cases_host, cases_recording, cases_waits, write_docs
from tests.core.rules.kit import run_rule

CASES = cases_waits.CASES | cases_host.CASES | cases_device.CASES | cases_recording.CASES
RULES = {item.rule.id: item for item in load_rules()}
LONGEST_TITLE = 60  # characters: two lines of a card at the window's first width
HEADINGS = ["What it finds", "Why it costs time", "Blind spots", "How to fix", "Sources"]
GOLDEN_FILE = Path(__file__).with_name("golden.json")
GOLDEN = json.loads(GOLDEN_FILE.read_text(encoding="utf-8")) if GOLDEN_FILE.exists() else {}


def summary(suggestion: Suggestion) -> dict[str, object]:
    """What is compared with the golden file."""
    return {
        "headline": suggestion.headline,
        "why": suggestion.explanation,
        "occurrences": suggestion.occurrences,
        "steps": list(suggestion.steps),
        "evidence": [[e.label, e.value, e.unit, len(e.slices)] for e in suggestion.evidence],
        "effects": [[e.kind.value, len(e.slices), round(e.factor, 3)] for e in suggestion.effects],
    }


def test_every_rule_of_the_catalogue_is_there_and_has_its_cases() -> None:
    assert len(RULES) == 85
    assert set(CASES) == set(RULES)


@pytest.mark.parametrize("rule_id", sorted(RULES))
def test_a_rule_explains_itself(rule_id: str) -> None:
    item = RULES[rule_id]
    assert not item.error, item.details
    assert item.module is not None
    assert item.module.__name__.rsplit(".", 1)[-1] == rule_id.replace("-", "_")
    text = item.module.__doc__ or ""
    found = re.findall(r"^(\w[^\n]*)\n-+$", text, re.MULTILINE)
    assert found == HEADINGS
    for body in re.split(r"^\w[^\n]*\n-+$", text, flags=re.MULTILINE)[1:]:
        assert len(body.strip()) > 10
    assert item.rule.title
    for param in item.rule.params:
        assert param.why
        assert param.unit


@pytest.mark.parametrize("rule_id", sorted(CASES))
def test_a_rule_finds_its_fault(rule_id: str) -> None:
    trace = CASES[rule_id].found()
    result = run_rule(rule_id, trace)
    assert result.outcome is Outcome.FOUND, (result.reason, result.details)
    for suggestion in result.suggestions:
        assert suggestion.rule_id == rule_id
        assert "{" not in suggestion.headline + suggestion.explanation
        assert len(suggestion.explanation) > 40
        assert suggestion.fix.summary
        assert suggestion.occurrences >= 1
        assert suggestion.evidence
        for evidence in suggestion.evidence:
            assert evidence.slices, f"no slices behind {evidence.label!r}"
            assert all(0 <= i < len(trace.slices) for i in evidence.slices)
        for effect in suggestion.effects:
            assert effect.slices
            assert all(0 <= i < len(trace.slices) for i in effect.slices)
    assert [summary(s) for s in result.suggestions] == GOLDEN.get(rule_id)


@pytest.mark.parametrize("rule_id", sorted(CASES))
def test_a_rule_leaves_its_near_miss_alone(rule_id: str) -> None:
    result = run_rule(rule_id, CASES[rule_id].near())
    assert result.outcome in (Outcome.CLEAN, Outcome.NOT_CHECKED), result.details or [
        s.headline for s in result.suggestions
    ]
    if result.outcome is Outcome.NOT_CHECKED:
        assert result.reason


@pytest.mark.parametrize("rule_id", sorted(CASES))
def test_a_title_fits_into_two_lines_of_a_card(rule_id: str) -> None:
    for suggestion in run_rule(rule_id, CASES[rule_id].found()).suggestions:
        assert len(suggestion.headline) <= LONGEST_TITLE, suggestion.headline
        assert not suggestion.headline.endswith(".")


def test_the_documentation_lists_every_rule_as_it_is() -> None:
    listed = {rule for ids in write_docs.GROUPS.values() for rule in ids.split()}
    assert listed == set(RULES)
    assert write_docs.table() in write_docs.DOCS.read_text(encoding="utf-8"), (
        "run python -m tests.core.rules.write_docs"
    )


@pytest.mark.parametrize("rule_id", sorted(CASES))
def test_every_text_that_is_shown_can_be_listed_for_translation(rule_id: str) -> None:
    module = RULES[rule_id].module
    assert module is not None
    texts = rule_texts(module)
    assert RULES[rule_id].rule.title in texts
    for suggestion in run_rule(rule_id, CASES[rule_id].found()).suggestions:
        assert suggestion.title in texts
        assert suggestion.why in texts


@pytest.mark.parametrize("rule_id", sorted(CASES))
def test_an_explanation_does_not_begin_with_its_title_again(rule_id: str) -> None:
    for suggestion in run_rule(rule_id, CASES[rule_id].found()).suggestions:
        title = set(re.findall(r"[a-z]{3,}", suggestion.headline.lower()))
        first = re.findall(r"[a-z]{3,}", suggestion.explanation.split(". ")[0].lower())
        assert len(title & set(first)) < 0.8 * len(title), suggestion.explanation
