"""What the figures on top mean: every one with its value, its definition, and how to record it when it is unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from gui import text
from gui.widgets.labels import button, heading, label


@dataclass(frozen=True)
class Shown:
    """One figure: name, value, what it means, and how to record it when it is unknown."""

    name: str
    value: str
    meaning: str
    how: str = ""
    is_main: bool = False  # of several step times, the one to go by
    is_aside: bool = False  # another of them

    @property
    def is_unknown(self) -> bool:
        """The trace does not tell."""
        return self.value == text.unknown()

    def explanation(self) -> str:
        """Definition, with how to record it where it is unknown."""
        return self.meaning + ("\n" + self.how if self.is_unknown and self.how else "")


class FiguresPage(QDialog):
    """All figures of a trace, defined."""

    def __init__(self, figures: Sequence[Shown], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("What the figures mean"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        inner = QWidget()
        inner.setObjectName("scrolled")
        lines = QVBoxLayout(inner)
        lines.setContentsMargins(20, 16, 20, 8)
        lines.setSpacing(2)
        go_by = self.tr("{name} (the one to go by)")
        for shown in figures:
            top = QHBoxLayout()
            name = go_by.format(name=shown.name) if shown.is_main else shown.name
            top.addWidget(heading(name, 1))
            top.addStretch(1)
            top.addWidget(heading(shown.value, 1))
            lines.addLayout(top)
            lines.addWidget(label(shown.explanation(), "dim", wrap=True, select=True))
            lines.addSpacing(10)
        lines.addStretch(1)
        area = QScrollArea()
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        area.setAccessibleName(self.windowTitle())
        area.setWidget(inner)
        close = button(self.tr("Close"), self.accept)
        foot = QHBoxLayout()
        foot.setContentsMargins(20, 4, 20, 14)
        foot.addStretch(1)
        foot.addWidget(close)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(area, 1)
        box.addLayout(foot)
        room = self.screen().availableGeometry()
        self.resize(min(560, room.width() - 40), min(620, room.height() - 80))
