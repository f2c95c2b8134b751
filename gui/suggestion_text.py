"""A suggestion in words: where, how often, and what it saves."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from core.analysis import Analysis
from core.suggestions import Suggestion
from gui import text

translate = QCoreApplication.translate


def place(suggestion: Suggestion) -> str:
    """File, line and how often; the function where the line is not exact."""
    parts = []
    if suggestion.source is not None:
        where = text.place(suggestion.source.file, suggestion.source.line)
        function = suggestion.source.function
        if suggestion.source.exact:
            parts += [where, function]
        else:  # only the line of the function's def is known
            parts.append(f"{function} ({where})" if function else where)
    elif suggestion.values.get("op_path"):
        parts.append(text.elided(str(suggestion.values["op_path"]), 60))
    parts.append(_how_often(suggestion))
    if suggestion.informational:
        parts.append(translate("plan", "to know"))
    return " · ".join(p for p in parts if p)


def _how_often(suggestion: Suggestion) -> str:
    if suggestion.occurrences <= 0:
        return ""
    steps = len(suggestion.steps)
    if steps > 1:
        return translate("plan", "{count} per step").format(count=text.count(suggestion.occurrences / steps))
    return translate("plan", "{count} times").format(count=suggestion.occurrences) if suggestion.occurrences > 1 else ""


def saving(suggestion: Suggestion) -> str:
    """What it saves a step, with a sign that says how sure that is; empty for a note."""
    priced = suggestion.saving
    if priced.ns is None and not priced.together_ns:
        return "" if suggestion.informational else text.unknown()
    best = max(priced.ns or 0, priced.together_ns or 0)
    if best <= 0:
        return translate("plan", "nothing alone") if not suggestion.informational else ""
    if priced.basis == "bounded":
        return translate("plan", "up to {saving}").format(saving=text.saving(best))
    return ("≈ " if priced.basis == "rough" else "") + text.saving(best)


def saves(analysis: Analysis | None, index: int, suggestion: Suggestion) -> str:
    """What it saves alone and after the fixes before it, and how that is known."""
    priced, lines = suggestion.saving, list[str]()
    assumed = any(effect.is_assumed for effect in suggestion.effects)
    basis = {
        "replayed": translate("plan", "from a replay of this trace"),
        "measured": translate("plan", "measured in this trace"),
        "bounded": translate("plan", "an upper bound"),
        "rough": translate("plan", "a rough figure: it rests on the assumption stated above")
        if assumed
        else translate("plan", "a rough figure: the replay does not fit this trace well"),
    }
    if priced.ns is None:
        lines.append(translate("plan", "What it saves is unknown: this trace does not tell."))
    else:
        share = f" ({text.percent(priced.pct)})" if priced.pct is not None else ""
        lines.append(
            translate("plan", "Alone it saves {time}{share} a step, {basis}.").format(
                time=text.duration(priced.ns), share=share, basis=basis.get(priced.basis or "", "?")
            )
        )
    if priced.together_ns is not None and priced.together_ns != priced.ns:
        lines.append(
            translate("plan", "After the fixes before it, it saves {time} more.").format(
                time=text.duration(priced.together_ns)
            )
        )
    for step in analysis.plan if analysis else ():
        if index in step.suggestions and step.note:
            lines.append(translate("rules", step.note))
    return " ".join(lines)
