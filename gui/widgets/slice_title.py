"""The name of a slice as a title: what it does, and under it the whole name where that is another."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout, QWidget

from gui.widgets.labels import Elided


class SliceTitle(QWidget):
    """One line in bold, or two; both give way in the middle and can be read whole as tooltips."""

    def __init__(self, brief: str, whole: str) -> None:
        super().__init__()
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        name = Elided(brief, mono=True)
        font = name.font()
        font.setBold(True)
        name.setFont(font)
        box.addWidget(name)
        if whole != brief:
            box.addWidget(Elided(whole, "dim", mono=True))
