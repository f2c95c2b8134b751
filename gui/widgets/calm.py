"""Fields that the mouse wheel changes only while they have the keyboard: who scrolls a page changes nothing in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QComboBox, QDoubleSpinBox, QSpinBox, QWidget

MARGINS_PX = 6, 0, 0, 0  # of a number's text: the style sheet's padding does not reach it

if TYPE_CHECKING:
    _Field = QWidget
else:
    _Field = object  # two classes of Qt cannot be joined


class _Calm(_Field):
    """What a field of Qt becomes calm by, named before it among the bases."""

    def __init__(self) -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # by default the wheel itself would give it the focus

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802 - Qt's name
        """Leave the wheel to the page around."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class CalmSpin(_Calm, QSpinBox):
    """A whole number."""

    def __init__(self) -> None:
        super().__init__()
        self.lineEdit().setTextMargins(*MARGINS_PX)


class CalmDoubleSpin(_Calm, QDoubleSpinBox):
    """A number."""

    def __init__(self) -> None:
        super().__init__()
        self.lineEdit().setTextMargins(*MARGINS_PX)


class CalmCombo(_Calm, QComboBox):
    """A list to choose from."""

    def give_way(self, letters: int = 12) -> None:
        """Take no more width than so many letters need, where there is no more: for names of any length."""
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(letters)
