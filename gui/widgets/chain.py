"""Cards that only pay together, held by a line at their side under a heading that says so."""

from __future__ import annotations

from PySide6.QtWidgets import QFrame, QVBoxLayout

from gui.widgets.labels import label


class Chain(QFrame):
    """A frame with a heading; cards are added to ``column``."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.setProperty("role", "chain")
        self.words = label(words, "dim", wrap=True)
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(8, 0, 0, 0)
        self.column.setSpacing(8)
        self.column.addWidget(self.words)
