"""A field over the header column: only tracks whose name, or whose group's, holds its text are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit

if TYPE_CHECKING:
    from gui.timeline.view import TimelineView


class TrackFilter(QLineEdit):
    """Stands on the left end of the time axis while it is used or holds a text."""

    def __init__(self, view: TimelineView) -> None:
        super().__init__(view)
        self._view = view
        self.setPlaceholderText(self.tr("Filter tracks"))
        self.setAccessibleName(self.tr("Filter tracks by text"))
        self.setClearButtonEnabled(True)
        self.hide()
        self.textChanged.connect(self._changed)
        self.editingFinished.connect(self._leave_if_empty)
        view.document.layoutChanged.connect(self._follow)
        view.axis.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Move, QEvent.Type.Resize):  # a remembered filter is there before the layout is
            self._place()
        return False

    def _place(self) -> None:
        axis = self._view.axis.geometry()
        self.setGeometry(0, axis.top(), self._view.axis.outer(self._view.axis.head_px - 1), axis.height())

    def open(self) -> None:
        """Show the field and put the cursor into it."""
        self._place()
        self.show()
        self.raise_()
        self.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.selectAll()

    def show_text(self, text: str) -> None:
        """Filter by a text, as remembered."""
        if text:
            self.open()
            self.setText(text)
            self._view.setFocus()

    def _changed(self, text: str) -> None:
        if text.strip().casefold() != self._view.rows.filter_text:
            self._view.set_filter(text)

    def _follow(self) -> None:
        """The filter was given up to bring a row into view."""
        if self.text() and not self._view.rows.filter_text:
            self.blockSignals(True)
            self.clear()
            self.blockSignals(False)
            self._leave_if_empty()

    def _leave_if_empty(self) -> None:
        if not self.text().strip():
            self.hide()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.clear()
            self.hide()
            self._view.setFocus()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Down):
            self._view.setFocus()
            self._leave_if_empty()
        else:
            super().keyPressEvent(event)
