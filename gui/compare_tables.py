"""The tables of a comparison: their columns, and what a row leads to in the timelines above."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QCoreApplication

from core.compare import CHANGED, GONE, NEW, SAME, Comparison, Difference, Side, sync_name
from core.kinds import DEVICE_WORK, SliceKind
from core.suggestions import Suggestion
from gui import text
from gui.linked_views import typical
from gui.models.columns import NOT_ASKED, Column
from gui.session import Document

translate = QCoreApplication.translate
NESTED = ("operators", "ranges")  # what others can run inside of
KINDS = {
    "operators": (SliceKind.CPU_OP,),
    "kernels": DEVICE_WORK,
    "ranges": (SliceKind.RANGE,),
}


def note(field: str, per_step: bool) -> str:
    """What the times of a table are, and what a double click does."""
    if field == "sync_points":
        times = (
            translate("compare", "Time waited per step.")
            if per_step
            else translate("compare", "Time waited in the whole traces, since steps are unknown on one side.")
        )
    else:
        times = (
            translate("compare", "Times per step.")
            if per_step
            else translate("compare", "Times of the whole traces, since steps are unknown on one side.")
        )
    words = translate("compare", "Double-click a row to see the longest one of a typical step in both timelines.")
    return f"{times} {words}"


def columns(field: str, rows: tuple[Difference, ...], per_step: bool) -> list[Column]:
    """One row for each difference."""
    states = {
        NEW: translate("compare", "new"),
        GONE: translate("compare", "gone"),
        CHANGED: translate("compare", "changed"),
        SAME: "",
    }

    def values(sides: list[Side | None], field: str) -> list[float]:
        return [float(NOT_ASKED) if s is None else float(getattr(s, field) or 0) for s in sides]

    times, calls, own = (
        ("total_per_step_ns", "calls_per_step", "self_per_step_ns") if per_step else ("total_ns", "calls", "self_ns")
    )
    tip = (
        translate("compare", "Per step, in both.")
        if per_step
        else translate("compare", "Of the whole recording: steps are unknown in one.")
    )
    alone = translate("compare", "Without what ran inside. {tip}").format(tip=tip)
    before, after = [r.before for r in rows], [r.after for r in rows]
    better = [0 if r.state == SAME else -1 if r.delta_ns > 0 else 1 if r.delta_ns < 0 else 0 for r in rows]
    columns = [
        Column(translate("compare", "Name"), "name", [r.name for r in rows]),
        Column(translate("compare", "State"), "text", [states[r.state] for r in rows]),
        Column(translate("compare", "Difference"), "signed_ns", [r.delta_ns for r in rows], tip, better),
        Column(translate("compare", "Before"), "side_ns", values(before, times), tip),
        Column(translate("compare", "After"), "side_ns", values(after, times), tip),
        Column(translate("compare", "Calls before"), "side_count", values(before, calls), tip),
        Column(translate("compare", "Calls after"), "side_count", values(after, calls), tip),
    ]
    if field in NESTED:  # nothing runs inside a kernel or a wait
        columns += [
            Column(translate("compare", "Own time before"), "side_ns", values(before, own), alone),
            Column(translate("compare", "Own time after"), "side_ns", values(after, own), alone),
        ]
    return columns


def suggestions(found: Comparison) -> list[Column]:
    """One row for each suggestion of either trace."""
    states = {
        NEW: translate("compare", "appeared"),
        GONE: translate("compare", "vanished"),
        SAME: translate("compare", "still there"),
    }
    changes = found.suggestions
    places = [text.place(c.source.file, c.source.line) if c.source else "" for c in changes]

    def savings(sides: list[Suggestion | None]) -> list[float]:
        return [float(NOT_ASKED) if s is None else -1.0 if s.saving.ns is None else s.saving.ns for s in sides]

    return [
        Column(
            translate("compare", "Suggestion"), "name", [text.filled(c.either.title, c.either.values) for c in changes]
        ),
        Column(translate("compare", "State"), "text", [states[c.state] for c in changes]),
        Column(translate("compare", "Place"), "text", places),
        Column(translate("compare", "Saves before"), "saving_ns", savings([c.before for c in changes])),
        Column(translate("compare", "Saves after"), "saving_ns", savings([c.after for c in changes])),
    ]


def example(document: Document, field: str, name: str) -> int:
    """Return the longest slice that a row stands for: in the typical step, else anywhere; -1 where there is none."""
    trace, analysis = document.trace, document.analysis
    ids: np.ndarray
    if analysis is None:
        return -1
    if field == "sync_points":
        syncs = analysis.figures.syncs
        rows = [i for i in range(len(syncs)) if sync_name(trace, syncs, i) == name]
        ids, lengths = syncs.slice_id[rows], syncs.wait_ns[rows]
    else:
        slices, name_id = trace.slices, trace.strings.id_of(name)
        ids = np.flatnonzero(np.isin(slices.kind, KINDS[field]) & (slices.name_id == name_id))
        lengths = slices.dur_ns[ids]
    step = typical(analysis.figures)
    inside = analysis.figures.step_of[ids] == step if step >= 0 else np.ones(len(ids), np.bool_)
    if inside.any():
        ids, lengths = ids[inside], lengths[inside]
    return int(ids[int(np.argmax(lengths))]) if len(ids) else -1
