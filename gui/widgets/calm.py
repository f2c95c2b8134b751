"""Fields that the mouse wheel changes only while they have the keyboard: who scrolls a page changes nothing in it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QComboBox, QDoubleSpinBox, QSpinBox


class CalmSpin(QSpinBox):
    """A whole number."""

    def __init__(self) -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # by default the wheel itself would give it the focus

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802 - Qt's name
        """Leave the wheel to the page around."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class CalmDoubleSpin(QDoubleSpinBox):
    """A number."""

    def __init__(self) -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802 - Qt's name
        """Leave the wheel to the page around."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class CalmCombo(QComboBox):
    """A list to choose from."""

    def __init__(self) -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802 - Qt's name
        """Leave the wheel to the page around."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()
