"""Rows without a slice in view: their headings are dimmed, and they are left out where the user wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

if TYPE_CHECKING:
    from gui.timeline.view import TimelineView

SETTLE_MS = 350


class EmptyRows(QObject):
    """Tells the layout of a view which rows are empty in it.

    A row comes back at once when it has slices in view again; those that have none any more go when the view rests,
    so that nothing jumps while it moves. In a canvas too low for CPU and device together empty rows keep one lane,
    which changes only when the view rests, too.
    """

    def __init__(self, view: TimelineView) -> None:
        super().__init__(view)
        self._rows, self._document, self._canvas = view.rows, view.document, view.canvas
        self._fitted: frozenset[str] = frozenset()  # what was empty when the rows were fitted last
        self._settle = QTimer(self)
        self._settle.setSingleShot(True)
        self._settle.setInterval(SETTLE_MS)
        self._settle.timeout.connect(self.settle)
        self._document.viewChanged.connect(self._moved)

    def _now(self) -> frozenset[str]:
        view = self._document.viewport
        return self._rows.rows_without_slices(view.start_ns, view.end_ns)

    def _moved(self) -> None:
        now = self._now()
        if not self._rows.hides_empty:
            self._take(now)
            if self._rows.cramped and now != self._fitted:
                self._settle.start()
            return
        self._take(now & self._rows.empty_in_view)
        if now != self._rows.empty_in_view:
            self._settle.start()

    def settle(self) -> None:
        """Take over what is empty now; in a low canvas the rows without a slice in view lend their lanes to others."""
        if self._canvas.quiet:  # something is being dragged
            self._settle.start()
            return
        self._take(self._now())
        if self._rows.cramped and self._rows.empty_in_view != self._fitted:
            self._fitted = self._rows.empty_in_view
            self._canvas.fit_rows()

    def _take(self, keys: frozenset[str]) -> None:
        version = self._rows.version
        self._rows.note_empty(keys)
        if self._rows.version != version:
            self._document.layoutChanged.emit()

    def toggle(self) -> None:
        """Leave the rows without a slice in view out, or show them again."""
        self.settle()
        self._rows.hide_empty(not self._rows.hides_empty)
        self._document.layoutChanged.emit()
