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
        why = self.tr("Each frees a wait that the next one then shows: most of the gain appears with the last.")
        self.why = label(why, "faint", wrap=True)
        box = QVBoxLayout(self)
        box.setContentsMargins(8, 0, 0, 0)
        box.setSpacing(8)
        head = QVBoxLayout()
        head.setSpacing(1)
        head.addWidget(self.words)
        head.addWidget(self.why)
        box.addLayout(head)
        self.column = QVBoxLayout()
        self.column.setSpacing(8)
        box.addLayout(self.column)
