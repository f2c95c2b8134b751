"""A page that scrolls as a whole where its window is too low for it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from gui.widgets.labels import named


def scrolled(page: QWidget, name: str) -> QVBoxLayout:
    """Give a page a scroll area, called ``name`` for readers of the screen; returns the layout of what it scrolls.

    What stands in that layout keeps its least height; where the window has more, it is shared out as in any layout.
    """
    inner = QWidget()
    inner.setObjectName("scrolled")
    area = named(QScrollArea(page), name)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setWidgetResizable(True)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidget(inner)
    outer = QVBoxLayout(page)
    outer.setContentsMargins(0, 0, 0, 0)
    outer.addWidget(area)
    return QVBoxLayout(inner)
