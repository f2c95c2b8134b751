"""Why the plan has its order, in words: what comes next, and which cards only pay together."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from core.analysis import Analysis
from gui import text
from gui.widgets.charts import bars_unit

translate = QCoreApplication.translate


def chains(analysis: Analysis, now_ns: float) -> list[tuple[int, int, float]]:
    """First and last card (counted from 1) of each group of fixes that pay together, and what they save, ns."""
    found: list[tuple[int, int, float]] = []
    before, start, start_ns = now_ns, 0, now_ns
    for step in analysis.plan:
        members, position = step.note_values.get("members"), step.note_values.get("position")
        card = step.suggestions[0] + 1
        if members and position == 1:
            start, start_ns = card, before
        before = float(step.predicted_step_ns)
        if members and position == members and start:
            found.append((start, card, start_ns - before))
            start = 0
    return found


def in_words(analysis: Analysis, now_ns: float) -> str:
    """Say why the cards stand in this order; nothing where there is one card or none."""
    if len(analysis.plan) < 2:
        return ""
    words = [translate("plan", "Next is always what saves most after the fixes above it.")]
    for first, last, saved_ns in chains(analysis, now_ns):
        template = translate("plan", "Cards {first} to {last} hide one another's waits: together {saving}.")
        words.append(template.format(first=first, last=last, saving=text.saving(saved_ns)))
    return " ".join(words)


def caption(analysis: Analysis, now_ns: float) -> str:
    """Say what the bars of the plan are, and why they stand in their order."""
    words = translate("plan", "Predicted step after each fix, {unit}.").format(unit=bars_unit(now_ns))
    return f"{words} {in_words(analysis, now_ns)}".strip()
