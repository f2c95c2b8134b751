"""A line that opens and closes what is below it."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from gui.widgets.labels import button


class Fold(QWidget):
    """A link with a small triangle, and a column of widgets that it shows. Closed and hidden while it is empty."""

    toggled = Signal(bool)

    def __init__(self, spacing_px: int = 8) -> None:
        super().__init__()
        self._words = ""
        self._inside = QWidget()
        self.column = QVBoxLayout(self._inside)
        self.column.setContentsMargins(0, 0, 0, 4)
        self.column.setSpacing(spacing_px)
        self._inside.setVisible(False)
        self.link = button("", self.toggle, "link")
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(4)
        box.addWidget(self.link)
        box.addWidget(self._inside)

    @property
    def opened(self) -> bool:
        """Whether what is below the line is shown."""
        return not self._inside.isHidden()

    def set_words(self, words: str) -> None:
        """Set the text of the line; without any, nothing is shown."""
        self._words = words
        if self.parentWidget() is not None or not words:  # without one it would be a window of its own for a moment
            self.setVisible(bool(words))
        self._show()

    def open(self, opened: bool = True) -> None:
        """Open or close it."""
        if opened == self.opened:
            return
        self._inside.setVisible(opened)
        self._show()
        self.toggled.emit(opened)

    def toggle(self) -> None:
        """Open it when it is closed, and close it when it is open."""
        self.open(not self.opened)

    def _show(self) -> None:
        self.link.setText(("▾ " if self.opened else "▸ ") + self._words)
