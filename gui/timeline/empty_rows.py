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
    so that nothing jumps while it moves.
    """

    def __init__(self, view: TimelineView) -> None:
        super().__init__(view)
        self._rows, self._document = view.rows, view.document
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
            return
        self._take(now & self._rows.empty_in_view)
        if now != self._rows.empty_in_view:
            self._settle.start()

    def settle(self) -> None:
        """Take over what is empty now."""
        self._take(self._now())

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
