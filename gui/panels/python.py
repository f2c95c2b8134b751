"""Python functions by name."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from PySide6.QtWidgets import QWidget

from core.figures.model import StatTable
from core.source_frames import is_launcher_frame
from core.trace import Trace
from gui.models.columns import ColumnModel
from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.widgets.stat_box import stat_columns
from gui.widgets.table import TableBox


class PythonPanel(TableBox):
    """Uses the document's ``analysisChanged``; opening a row zooms to the slowest slice of that name."""

    def __init__(self, session: Session, document: Document) -> None:
        self._document = document
        self._shown: object = None
        super().__init__(ColumnModel([]), document.go_to_slice, name=document.tr("Python"))
        self.set_empty(self.tr("The figures are being worked out."))
        document.analysisChanged.connect(self.show_all)
        self.show_all()

    def show_all(self) -> None:
        """Show the figures when they are there."""
        analysis = self._document.analysis
        if analysis is None or analysis.figures is self._shown:
            return
        self._shown = analysis.figures
        stats = without_launcher(self._document.trace, analysis.figures.python)
        self.model.replace(stat_columns(self._document.trace, stats), stats.first_slice)
        self.note.setText(self.tr("Double-click a row to see its slowest call."))
        self.set_empty(self.tr("No Python frames were recorded: record with with_stack=True."))
        self.refresh()


def without_launcher(trace: Trace, stats: StatTable) -> StatTable:
    """Rows but those of what started the script under the profiler: they are no part of the user's program."""
    foreign = [is_launcher_frame(trace.strings[int(i)]) for i in stats.name_id]
    if not any(foreign):
        return stats
    kept = ~np.asarray(foreign, np.bool_)
    return replace(stats, **{field.name: getattr(stats, field.name)[kept] for field in fields(stats)})


def create(session: Session, document: Document | None) -> QWidget:
    """Make the panel."""
    assert document is not None
    return PythonPanel(session, document)


PANEL = PanelSpec("python", "Python", "bottom", create)
