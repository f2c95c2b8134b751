"""The plan says why its cards stand in their order, and what cards that hide one another save together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from core.analysis import analyze
from core.importing import open_trace
from core.run_folder import SAMPLES
from core.suggestions import PlanStep
from gui import plan_order
from gui.panels.plan import PlanPanel
from gui.session import Document
from tests.trace_builder import TraceBuilder

FALLS = "A card counts after those above; next is the card that then saves most."
RISES = FALLS.replace(";", ", which can uncover it;")


def test_the_order_and_the_groups_are_told() -> None:
    analysis = analyze(open_trace(SAMPLES / "story_stage0_simulated.json.gz"))
    now = analysis.figures.summary.sustained_step_ns
    assert now is not None
    ((first, last, saved_ns),) = plan_order.chains(analysis, now)
    assert (first, last) == (2, 3)
    assert round(saved_ns) == analysis.plan[0].predicted_step_ns - analysis.plan[2].predicted_step_ns
    assert "A card counts after those above" in plan_order.caption(analysis, now)
    words = plan_order.headings(analysis)
    assert sorted(words) == [1, 2]
    assert words[1] == words[2]
    assert words[1].startswith("These 2 hide one another's waits: together −219")
    assert plan_order.headings(analysis, 10 * saved_ns)[1].replace("\u202f", " ").endswith("together −10 %")


def test_cards_that_only_pay_together_stand_under_one_heading(window) -> None:
    path = SAMPLES / "story_stage0_simulated.json.gz"
    document = Document(open_trace(path))
    document.set_analysis(analyze(document.trace))
    panel = PlanPanel(window.session, document)
    for _ in range(2):  # made anew, it stands there once
        (chain,) = panel._chains
        # Not by `itemAt`: Python knows what it returns beyond its end, when a style of Qt's stands at its address.
        assert chain.column.count() == 2
        assert [chain.column.indexOf(card) for card in panel._cards[1:3]] == [0, 1]
        assert [panel._column.indexOf(one) for one in (panel._cards[0], chain)] == [0, 1]
        assert "appears with the last" in chain.why.text()
        assert chain.toolTip() == ""  # it would repeat the heading, over the cards
        panel._make_cards(document.analysis.suggestions)
    panel.deleteLater()


def test_a_plan_of_one_card_needs_no_order() -> None:
    analysis = analyze(TraceBuilder().op("aten::add", 0, 5).build())
    assert plan_order.in_words(analysis) == ""
    alone = replace(analysis, plan=(PlanStep((0,), ("x",), 90), PlanStep((1,), ("y",), 80)))
    assert plan_order.in_words(alone) == FALLS


def test_the_caption_says_it_where_a_card_saves_more_than_one_above() -> None:
    """Nothing beside the bars may deny them: the first saves 4, then come 9 in one, or a group of 1 and 8."""
    analysis = analyze(TraceBuilder().op("aten::add", 0, 5).build())
    summary = replace(analysis.figures.summary, sustained_step_ns=20)
    found = replace(analysis, figures=replace(analysis.figures, summary=summary))
    steps = [PlanStep((k,), ("x",), ns) for k, ns in enumerate((16, 7, 6))]
    assert plan_order.in_words(replace(found, plan=tuple(steps))) == RISES
    of_group = {"members": 2, "position": 1}
    group = [PlanStep((k,), ("x",), ns, note_values=of_group | {"position": k}) for k, ns in ((1, 15), (2, 7))]
    said = plan_order.in_words(replace(found, plan=(steps[0], *group)))
    assert said == RISES.replace("the card", "the card or group")
    falling = replace(found, plan=(PlanStep((0,), ("x",), 10), *group))
    assert plan_order.in_words(falling) == FALLS.replace("the card", "the card or group")


def test_what_is_smaller_is_a_share_of_the_step_only_where_there_are_steps(tmp_path: Path) -> None:
    marked = analyze(TraceBuilder().step(0, 0, 990).op("aten::mm", 10, 100).build(tmp_path / "a.json"))
    unmarked = analyze(TraceBuilder().op("aten::mm", 10, 100).build(tmp_path / "b.json"))
    assert plan_order.small_words(marked, 2) == "Smaller, below 1 % of the step: 2"
    assert plan_order.small_words(unmarked, 2) == "Smaller, below 1 %: 2"


def test_a_bar_is_ticked_only_with_all_before_it() -> None:
    assert plan_order.ticked_bars([True, True, False, True]) == ([1, 2], False)
    assert plan_order.ticked_bars([False, True]) == ([], False)
    assert plan_order.ticked_bars([True, True]) == ([1, 2], True)
    assert plan_order.ticked_bars([False]) == ([], True)


def test_the_bars_of_a_group_are_joined() -> None:
    analysis = analyze(open_trace(SAMPLES / "story_stage0_simulated.json.gz"))
    steps = len(analysis.plan)
    assert plan_order.bar_groups(analysis, [False] * steps) == [(2, 3)]
    assert plan_order.bar_groups(analysis, [True] + [False] * (steps - 1)) == [(1, 2)]
    assert plan_order.bar_groups(analysis, [False, True] + [False] * (steps - 2)) == []  # one alone is no group


def test_a_tick_with_a_gap_before_it_is_explained_and_not_proved_by_a_word(window) -> None:
    document = Document(open_trace(SAMPLES / "story_stage0_simulated.json.gz"))
    document.set_analysis(analyze(document.trace))
    panel = PlanPanel(window.session, document)
    panel._priced = (1,)
    document.set_suggestion_state(1, "done")
    panel._priced = (1,)
    panel._show_ticked((1,), 1_000_000.0)
    assert panel.caption.text().endswith("predicted. A bar counts every card above it, too.")
    assert panel.bars._done == frozenset()
    assert panel._cards[1].mark.text() == "done by you, not measured"
    assert panel._cards[1].tick.property("state") == "current"  # green is what a run has shown
    document.set_suggestion_state(0, "done")
    assert panel.bars._done == frozenset({1, 2})
    panel.deleteLater()
