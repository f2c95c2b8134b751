"""One figure of the verdict: its name over its value, or beside it where a line is all there is."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QBoxLayout, QWidget

from gui.widgets.cut_name import CutName, CutValue
from gui.widgets.glossary import Shown
from gui.widgets.labels import plain_tip, restyle


class Metric(QWidget):
    """Name over value; the tooltip defines it, a click shows the definitions of all."""

    clicked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setCursor(Qt.CursorShape.WhatsThisCursor)
        self.name = CutName("dim")
        self.value = CutValue(2.5)
        self.shown: Shown | None = None
        self._box = box = QBoxLayout(QBoxLayout.Direction.TopToBottom, self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(1)
        box.addWidget(self.name)
        box.addWidget(self.value)

    def set_in_line(self, in_line: bool) -> None:
        """Name and value beside each other, or over each other."""
        self._box.setDirection(QBoxLayout.Direction.LeftToRight if in_line else QBoxLayout.Direction.TopToBottom)
        self._box.setSpacing(6 if in_line else 1)

    def show_figure(self, shown: Shown) -> None:
        """Show one figure."""
        self.shown = shown
        unknown = shown.is_unknown
        self.name.setText(shown.name)
        restyle(self.name, "role", "main" if shown.is_main else "dim")
        self.value.setText(shown.value)
        restyle(self.value, "role", "unknown" if unknown else "dim" if shown.is_aside else "")
        tip = shown.explanation()
        self.setToolTip(plain_tip(tip))
        self.setAccessibleName(f"{shown.name}: {shown.value}")
        self.setAccessibleDescription(tip)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Ask for the definitions."""
        if event.button() == Qt.MouseButton.LeftButton:
            self.clicked.emit()
