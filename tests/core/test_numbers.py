"""Which number each suggestion has, and which are shown unasked."""

from __future__ import annotations

from dataclasses import replace

from core.analysis import Analysis
from core.figures.compute import compute_figures
from core.reporting import html, text
from core.reporting.phrases import note_rows
from core.suggestions import PlanStep, Saving, Suggestion
from tests.core.reporting.cases import NOTE, training


def fix(rule: str, ns: int | None, together_ns: int | None = None) -> Suggestion:
    pct = None if ns is None else ns / 10_000
    return Suggestion(rule, f"Title of {rule}", saving=Saving(ns, pct, None if ns is None else "replayed", together_ns))


def analysis() -> Analysis:
    """A plan of three, the last two of them a group whose first saves nothing alone; one fix outside; a small one."""
    figures = compute_figures(training().build())
    figures = replace(figures, summary=replace(figures.summary, sustained_step_ns=1_000_000.0))
    found = (
        fix("best", 300_000, 300_000),
        fix("first-of-two", 0, 1_000),
        fix("last-of-two", 5_000, 200_000),
        fix("outside", 27_000),
        fix("small", 3_000),
        NOTE,
    )
    note = {"members": 2, "group_pct": 20.0}
    plan = (
        PlanStep((0,), ("best",), 700_000),
        PlanStep((1,), ("first-of-two",), 699_000, note="Fix 1 of 2.", note_values={**note, "position": 1}),
        PlanStep((2,), ("last-of-two",), 499_000, note="The last of 2.", note_values={**note, "position": 2}),
    )
    return Analysis(figures, found, plan)


def test_members_of_a_group_are_shown_together_and_numbers_have_no_holes() -> None:
    found = analysis()
    assert not found.is_small(1)  # alone it saves nothing; the other saves nothing without it
    assert found.headlined() == (0, 1, 2, 3)
    assert found.numbers() == {0: 1, 1: 2, 2: 3}
    assert found.is_small(4)


def test_a_fix_outside_the_plan_says_so() -> None:
    found = analysis()
    assert [found.is_left_out(i) for i in range(6)] == [False, False, False, True, True, False]
    trace = training().build()
    said = text.report(trace, found)
    assert said.index("1. Title of best") < said.index("2. Title of first-of-two") < said.index("Fix 1 of 2.")
    assert said.index("Fix 1 of 2.") < said.index("3. Title of last-of-two") < said.index("The last of 2.")
    assert said.index("The last of 2.") < said.index("–  Title of outside")
    assert "not in the plan: after its fixes this saves less than 1 % more" in " ".join(said.split())
    assert "1 more would save less than 1 % each" in said
    page = html.page(trace, found)
    assert "Not in the plan: after its fixes this saves less than 1 % more." in page
    assert "saves &lt;1 %" in page


def test_without_a_plan_all_are_numbered_and_the_small_ones_last() -> None:
    bare = replace(analysis(), suggestions=(fix("small", 3_000), fix("large", 30_000), NOTE), plan=())
    assert bare.numbers() == {1: 1, 0: 2}
    assert not bare.is_left_out(0)


def test_notes_that_read_the_same_are_told_apart() -> None:
    waits = [replace(NOTE, title="It waits", values={"range": name}) for name in ("warm up", "measure", "measure")]
    assert note_rows([*waits, NOTE]) == [
        "It waits — in the range warm up",
        "It waits — in the range measure (2 places)",
        "No step is marked",
    ]
