"""What stands behind the names of rows: a counter's range, how many sync points there are, rows that were left out."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from gui import text
from gui.session import Document
from gui.timeline.counters import CounterData, subtitle
from gui.timeline.frame import Frame
from gui.timeline.row import Row, RowKind


def _tr(words: str) -> str:
    return QCoreApplication.translate("timeline", words)


def notes_of(document: Document, counters: CounterData, frame: Frame, rows: list[Row]) -> dict[str, str]:
    """Notes of rows, by key."""
    notes = {r.key: _note(document, counters, frame, r) for r in rows if r.kind in (RowKind.COUNTER, RowKind.SYNCS)}
    for row in rows if frame.layout.aside else ():
        count = frame.layout.left_out_above(row)
        if count and not row.pinned:
            words = _tr("1 row left out") if count == 1 else _tr("{count} rows left out")
            notes[row.key] = "⋯ " + words.format(count=count)
    return notes


def _note(document: Document, counters: CounterData, frame: Frame, row: Row) -> str:
    if row.kind is RowKind.COUNTER:
        return "" if row.key.startswith("busy/") else subtitle(counters, frame, row)
    if frame.figures is None:
        return _tr("unknown") if document.analysis_error is not None else _tr("measuring…")
    count = text.count(len(frame.figures.syncs))
    many = len(frame.figures.steps) > 1 and len(frame.figures.syncs) > 0  # elsewhere they are counted per step
    return _tr("{count} in all").format(count=count) if many else count
