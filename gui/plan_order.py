"""Why the plan has its order, in words: what comes next, and which cards only pay together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from PySide6.QtCore import QCoreApplication

from core.analysis import Analysis
from gui import text
from gui.widgets.charts import bars_unit

translate = QCoreApplication.translate


def chains(analysis: Analysis, now_ns: float) -> list[tuple[int, int, float]]:
    """Numbers of the first and last card of each group of fixes that pay together, and what they save, ns."""
    found: list[tuple[int, int, float]] = []
    numbers = analysis.numbers()
    before, start, start_ns = now_ns, 0, now_ns
    for step in analysis.plan:
        members, position = step.note_values.get("members"), step.note_values.get("position")
        card = numbers[step.suggestions[0]]
        if members and position == 1:
            start, start_ns = card, before
        before = float(step.predicted_step_ns)
        if members and position == members and start:
            found.append((start, card, start_ns - before))
            start = 0
    return found


def headings(analysis: Analysis, step_ns: float | None = None) -> dict[int, str]:
    """Heading of each card, by its position, that only pays together with others.

    With ``step_ns`` what they save is said as a share of that step.
    """
    found: dict[int, str] = {}
    now_ns = analysis.figures.summary.sustained_step_ns
    for first, last, saved_ns in chains(analysis, now_ns) if now_ns is not None else ():
        saved = text.saving(saved_ns) if not step_ns else text.change(-100.0 * saved_ns / step_ns)
        words = translate("plan", "These {count} hide one another's waits: together {saving}")
        members = [at for at, number in analysis.numbers().items() if first <= number <= last]
        found |= dict.fromkeys(members, words.format(count=last - first + 1, saving=saved))
    return found


def bars(analysis: Analysis, left_out: Sequence[bool]) -> list[tuple[int, str]]:
    """Position and title of the first card of each step of the plan that is not left out: one for each falling bar."""
    kept = (step.suggestions[0] for step, is_out in zip(analysis.plan, left_out, strict=True) if not is_out)
    return [(i, text.filled(analysis.suggestions[i].title, analysis.suggestions[i].values)) for i in kept]


def bar_groups(analysis: Analysis, left_out: Sequence[bool]) -> list[tuple[int, int]]:
    """First and last falling bar of each group of fixes that pay together; the bar of the step now is 0."""
    found: list[tuple[int, int]] = []
    at, first = 0, 0
    for step, is_out in zip(analysis.plan, left_out, strict=True):
        members, position = step.note_values.get("members"), step.note_values.get("position")
        at += not is_out
        if members and position == 1:
            first = at + is_out
        if members and position == members and 0 < first < at:
            found.append((first, at))
    return found


def ticked_bars(ticked: Sequence[bool]) -> tuple[list[int], bool]:
    """Bars whose fix is ticked and all before it, since a bar counts those; whether that is all that is ticked.

    ``ticked`` has one value for each bar after that of the step now.
    """
    first = next((k for k, is_ticked in enumerate(ticked) if not is_ticked), len(ticked))
    return list(range(1, first + 1)), not any(ticked[first:])


def small_words(analysis: Analysis, count: int) -> str:
    """Title over the suggestions that save next to nothing; without steps it is a share of no step."""
    if not len(analysis.figures.steps):
        return translate("plan", "Smaller, below 1 %: {count}").format(count=count)
    return translate("plan", "Smaller, below 1 % of the step: {count}").format(count=count)


def in_words(analysis: Analysis) -> str:
    """Say why the cards stand in this order; nothing where there is one card or none.

    Each fix, or group of fixes, is the one that saves most after those above it. That can be more than one above
    saves, where the fixes before it uncover it.
    """
    if len(analysis.plan) < 2:
        return ""
    words = (
        translate("plan", "A card counts after those above, which can uncover it; next is {what} that then saves most.")
        if _rises(analysis)
        else translate("plan", "A card counts after those above; next is {what} that then saves most.")
    )
    grouped = any(step.note_values.get("members") for step in analysis.plan)
    return words.format(what=translate("plan", "the card or group") if grouped else translate("plan", "the card"))


def _rises(analysis: Analysis) -> bool:
    """Whether a card, or a group of them, saves more than one before it."""
    before = analysis.figures.summary.sustained_step_ns
    saved: list[float] = []
    for step in analysis.plan if before is not None else ():
        members, position = step.note_values.get("members"), step.note_values.get("position")
        if members == position:  # the last of a group, or one that pays by itself: neither is known
            saved.append((before or 0.0) - step.predicted_step_ns)
            before = step.predicted_step_ns
    return any(later > earlier for earlier, later in pairwise(saved))


def caption(analysis: Analysis, now_ns: float) -> str:
    """Say what the bars of the plan are, and why they stand in their order."""
    words = translate("plan", "Predicted step after each fix, {unit}.").format(unit=bars_unit(now_ns))
    joined = translate("plan", "Bars over one line are such a group.") if chains(analysis, now_ns) else ""
    hint = translate("plan", "A click on a card's number ticks it.")
    return " ".join(w for w in (words, in_words(analysis), joined, hint) if w)
