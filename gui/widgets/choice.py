"""A list to choose from that gives way where a row has no room."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QComboBox, QStyle, QStyleOptionComboBox, QStylePainter

from gui.painting import guarded
from gui.widgets.calm import CalmCombo
from gui.widgets.labels import plain_tip

LEAST_PX = 72


class Choice(CalmCombo):
    """As wide as its longest item where there is room, else narrower.

    Parameters
    ----------
    name
        What is chosen: tooltip, and name for readers of the screen.
    items
        Words and value of each item.
    on_choice
        Called when the user has chosen.
    """

    def __init__(self, name: str, *items: tuple[str, object], on_choice: Callable[[], object] | None = None) -> None:
        super().__init__()
        for words, value in items:
            self.addItem(words, value)
        self.setAccessibleName(name)
        self.setToolTip(plain_tip(name))
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        if on_choice is not None:
            self.activated.connect(lambda _index: on_choice())

    def choose(self, value: object) -> None:
        """Choose the item of a value, as the user would."""
        self.setCurrentIndex(self.findData(value))
        self.activated.emit(self.currentIndex())

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Words without room end in dots: Qt would cut a letter in two."""
        painter, option = QStylePainter(self), QStyleOptionComboBox()
        self.initStyleOption(option)
        field = self.style().subControlRect(
            QStyle.ComplexControl.CC_ComboBox, option, QStyle.SubControl.SC_ComboBoxEditField, self
        )
        if self.width() < self.sizeHint().width():
            words = self.fontMetrics().elidedText(self.currentText(), Qt.TextElideMode.ElideRight, field.width())
            option.currentText = words  # type: ignore[attr-defined]
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)
        painter.end()

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Narrow: the words are cut."""
        return QSize(LEAST_PX, super().minimumSizeHint().height())
