"""What a card says a fix saves: the number of the reports, no signed zero, a step only where there are steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.analysis import Analysis, analyze
from core.kinds import GapCause
from core.reporting.phrases import CAUSES
from core.suggestions import PlanStep, Saving, Suggestion
from gui import diagnosing, suggestion_text, text
from gui.models import args_text, slice_facts
from tests.trace_builder import TraceBuilder


def suggestion(**saving: Any) -> Suggestion:
    return Suggestion("x", "Title", saving=Saving(**saving))


@pytest.mark.parametrize(
    ("saving", "words"),
    [
        ({"ns": 2_000_000, "pct": 20.0, "basis": "replayed", "together_ns": 500_000}, "−500\u202fµs"),
        ({"ns": 2_000_000, "pct": 20.0, "basis": "replayed"}, "−2.00\u202fms"),
        ({"ns": 2_000_000, "pct": 20.0, "basis": "replayed", "together_ns": 0}, "nothing more"),
        ({"ns": 0, "pct": 0.0, "basis": "replayed"}, "nothing alone"),
        ({"ns": 0, "pct": 0.0, "basis": "replayed", "together_ns": 500_000}, "−500\u202fµs"),
        ({}, "unknown"),
    ],
)
def test_the_number_on_a_card_is_the_one_in_the_plan(saving: dict[str, Any], words: str) -> None:
    assert suggestion_text.saving(None, 0, suggestion(**saving)) == words


def test_a_saving_that_is_still_worked_out_is_not_called_unknown() -> None:
    trace = TraceBuilder().op("aten::mm", 0, 10).build()
    found = suggestion()
    waiting = Analysis(analyze(trace).figures, (found,), awaits_prices=True)
    assert suggestion_text.saving(waiting, 0, found) == "…"
    assert "being worked out" in suggestion_text.saves(waiting, 0, found)
    ended = diagnosing.given_up(waiting)
    assert ended.suggestions is not waiting.suggestions  # its cards are made anew
    assert suggestion_text.saving(ended, 0, found) == text.unknown()
    assert "unknown" in suggestion_text.saves(ended, 0, found)


def test_a_card_says_what_kind_of_number_it_shows() -> None:
    """Alone, after the fixes above it, or in no plan: never a bare number that another part of the window denies."""
    found = (
        suggestion(ns=2_000_000, pct=20.0, basis="replayed", together_ns=2_000_000),
        suggestion(ns=2_070_000, pct=20.7, basis="replayed", together_ns=14_400_000),
        suggestion(ns=0, pct=0.0, basis="replayed", together_ns=500_000),
        suggestion(ns=26_800, pct=2.8, basis="rough"),
        suggestion(),
        replace(suggestion(), informational=True),
        suggestion(ns=0, pct=0.0, basis="rough", together_ns=0),
    )
    plan = tuple(PlanStep((i,), ("x",), 1_000_000) for i in (0, 1, 2, 6))
    of_plan = replace(analysis(3), suggestions=found, plan=plan)
    words = [suggestion_text.basis(of_plan, i, s) for i, s in enumerate(found)]
    assert words == ["", "alone −2.07\u202fms", "alone nothing", "alone ≈ −26.8\u202fµs", "", "", ""]
    assert suggestion_text.saving(of_plan, 6, found[6]) == "nothing alone"  # which is said once
    assert suggestion_text.saving(of_plan, 3, found[3]) == "saves <1 %"  # "more" would read as slower
    assert "not in the plan" in suggestion_text.saves(of_plan, 3, found[3])
    assert list(of_plan.numbers()) == [0, 1, 2, 6]
    without = replace(of_plan, plan=())
    assert suggestion_text.basis(without, 3, found[3]) == "alone"
    assert without.numbers() == {0: 1, 1: 2, 2: 3, 3: 4, 4: 5, 6: 6}


def analysis(steps: int) -> Analysis:
    builder = TraceBuilder()
    for number in range(max(steps, 1)):
        if steps:
            builder.step(number, number * 100, 100)
        builder.launch("k", at=number * 100 + 1, call=3, start=number * 100 + 5, dur=60)
    return analyze(builder.build())


def test_without_steps_nothing_is_said_of_a_step() -> None:
    rough = suggestion(ns=2_000_000, pct=20.0, basis="rough")
    words = suggestion_text.saves(analysis(0), 0, rough)
    assert "of the whole recording" in words
    assert "a step," not in words
    assert "no steps are marked" in words
    assert "a step," in suggestion_text.saves(replace(analysis(3), suggestions=(rough,)), 0, rough)


def test_nothing_is_said_in_words() -> None:
    later = replace(suggestion(), saving=Saving(0, 0.0, "replayed", 500_000))
    words = suggestion_text.saves(replace(analysis(3), suggestions=(later,)), 0, later)
    assert words.startswith("Alone it saves nothing")
    assert "in the plan, after the fixes above it, it saves 500\u202fµs more" in words.lower()


def test_numbers_of_things_have_the_right_word_and_sizes_one_unit() -> None:
    assert text.counted("{count} {count|slice|slices}", 1) == "1 slice"
    assert text.counted("{count} {count|slice|slices}", 1200) == "1\u202f200 slices"
    assert text.counted("{count} {count|run|runs} ({size})", 1, size="{odd|name}") == "1 run ({odd|name})"
    assert text.saving(0) == "nothing"
    assert text.size(65_536) == "64.0\u202fKiB"


def test_operations_are_counted_and_set_beside_the_time_of_their_work() -> None:
    assert text.operations(999) == "999\u202fFLOP"
    assert text.operations(2_097_152) == "2.10\u202fMFLOP"
    args = {"flops": 2_000_000_000, "Input Dims": [[2, 3]], "Ev Idx": 5}
    rows = args_text.with_rate(args_text.lines(args), args, 1_000_000, True)
    assert rows == [
        ("Input Dims", "[[2, 3]]"),
        ("flops", "2.00\u202fGFLOP"),
        ("rate on the device", "2.00\u202fTFLOP/s"),
        ("Ev Idx", "5"),
    ]
    assert text.rate_of_operations(1000, 1_000_000, False) == ("rate on the CPU", "1.00\u202fMFLOP/s")
    assert text.rate_of_operations(1000, 0, False)[1] == text.unknown()
    assert args_text.with_rate([("flops", "many")], {"flops": "many"}, 1, False) == [("flops", "many")]
    made = TraceBuilder().op("aten::mm", 0, 50).launch("gemm", at=5, call=5, start=40, dur=20).op("aten::add", 60, 9)
    trace = made.build()
    named = {trace.name(i): slice_facts.time_at_work_ns(trace, i) for i in range(len(trace.slices))}
    assert (named["aten::mm"], named["aten::add"]) == ((20_000, True), (9_000, False))


def test_an_operator_without_a_line_is_named_with_the_range_that_it_ran_in() -> None:
    path = "aten::to > aten::_to_copy > aten::copy_"
    found = replace(suggestion(), source=None, values={"op": "aten::to", "op_path": f"{path} [## load:wait ##]"})
    ranged = replace(found, values={**found.values, "range": "## load:wait ##"})
    assert suggestion_text.place(ranged).startswith("aten::to in the range load:wait")
    assert suggestion_text.place(found).startswith("aten::to > ")


def test_a_note_has_no_share_of_an_occurrence_and_promises_nothing() -> None:
    note = Suggestion("x", "Title", informational=True, occurrences=2, steps=(0, 1, 2, 3, 4, 5))
    assert suggestion_text.place(note) == "2 times in 6 steps · note"
    assert suggestion_text.place(replace(note, occurrences=1)) == "1 time in 6 steps · note"
    assert suggestion_text.place(replace(note, occurrences=12)) == "2 times per step · note"
    assert suggestion_text.saves(None, 0, note) == ""
    assert "unknown" in suggestion_text.saves(None, 0, suggestion())


def test_causes_of_idling_are_called_the_same_in_reports_and_in_the_window() -> None:
    assert {cause: f"idle: {text.gap_cause(cause)}" for cause in GapCause} == CAUSES


def test_what_saves_nothing_by_itself_says_what_its_chain_saves() -> None:
    fix = replace(suggestion(ns=0, pct=0.0, basis="rough", together_ns=0), severity="medium")
    step = PlanStep((0,), ("x",), 630_000, "note", note_values={"members": 2, "position": 1, "group_pct": 6.5})
    of_plan = replace(analysis(3), suggestions=(fix,), plan=(step,))
    assert suggestion_text.saving(of_plan, 0, fix) == "nothing alone"
    assert suggestion_text.basis(of_plan, 0, fix).replace("\u202f", " ") == "6.5 % with its chain"
