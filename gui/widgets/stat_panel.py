"""The table that operators, ranges and modules share: one `StatTable`, by name, each row with its slowest slice."""

from __future__ import annotations

from collections.abc import Callable

from core.figures.model import Figures, StatTable
from gui.models.columns import ColumnModel
from gui.session import Document
from gui.widgets.stat_box import stat_columns
from gui.widgets.table import TableBox


class StatPanel(TableBox):
    """Uses the document's ``analysisChanged``; opening a row zooms to the slowest slice of that name.

    Parameters
    ----------
    document
        Whose figures are shown.
    pick
        The table to show, of the figures.
    name, note, empty
        Words: of the table, of what a row does, and for a table without rows.
    """

    def __init__(
        self, document: Document, pick: Callable[[Figures], StatTable], *, name: str, note: str, empty: str
    ) -> None:
        self._document, self._pick, self._words = document, pick, (note, empty)
        self._shown: object = None
        super().__init__(ColumnModel([]), document.go_to_slice, name=name)
        self.set_empty(self.tr("The figures are being worked out."))
        document.analysisChanged.connect(self.show_all)
        self.show_all()

    def show_all(self) -> None:
        """Show the figures when they are there."""
        analysis = self._document.analysis
        if analysis is None or analysis.figures is self._shown:
            return
        self._shown = analysis.figures
        stats = self._pick(analysis.figures)
        self.model.replace(stat_columns(self._document.trace, stats), stats.first_slice)
        note, empty = self._words
        self.note.setText(note)
        self.set_empty(empty)
        self.refresh()
