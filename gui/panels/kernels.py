"""Kernels, copies and memsets by name."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from gui.models.columns import ColumnModel
from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.widgets.stat_box import stat_columns
from gui.widgets.table import TableBox


class KernelsPanel(TableBox):
    """Uses the document's ``analysisChanged``; opening a row zooms to the slowest slice of that name."""

    def __init__(self, session: Session, document: Document) -> None:
        self._document = document
        self._shown: object = None
        super().__init__(ColumnModel([]), document.go_to_slice, name=document.tr("Kernels"))
        self.set_empty(self.tr("The figures are being worked out."))
        document.analysisChanged.connect(self.show_all)
        self.show_all()

    def show_all(self) -> None:
        """Show the figures when they are there."""
        analysis = self._document.analysis
        if analysis is None or analysis.figures is self._shown:
            return
        self._shown = analysis.figures
        stats = analysis.figures.kernels
        self.model.replace(stat_columns(self._document.trace, stats, device_only=True), stats.first_slice)
        self.note.setText(self.tr("Double-click a row to see its slowest one."))
        self.set_empty(
            self.tr("No device work was recorded: record with ProfilerActivity.CUDA, or your accelerator's activity.")
        )
        self.refresh()


def create(session: Session, document: Document | None) -> QWidget:
    """Make the panel."""
    assert document is not None
    return KernelsPanel(session, document)


PANEL = PanelSpec("kernels", "Kernels", "bottom", create)
