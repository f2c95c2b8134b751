"""A check box whose words go on in the next line where there is no room for them in one (Qt's are cut)."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QPaintEvent, QPalette
from PySide6.QtWidgets import QCheckBox, QSizePolicy, QStyle, QStyleOptionButton, QStylePainter

from gui.painting import guarded

_WRAPPED = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap)


class WrappingCheck(QCheckBox):
    """As wide as there is room, as high as its words need; its box stands beside their first line."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def _line(self) -> tuple[QStyleOptionButton, QRect]:
        """The first line as Qt would draw it, without its words, and where these go."""
        option = QStyleOptionButton()
        self.initStyleOption(option)
        option.rect = QRect(0, 0, self.width(), super().sizeHint().height())  # type: ignore[attr-defined]
        words = self.style().subElementRect(QStyle.SubElement.SE_CheckBoxContents, option, self)
        option.text = ""  # type: ignore[attr-defined]
        return option, words

    def _words_height(self, width_px: int) -> int:
        room = QRect(0, 0, max(width_px, 1), 1 << 20)
        return self.fontMetrics().boundingRect(room, _WRAPPED, self.text()).height()

    def hasHeightForWidth(self) -> bool:  # noqa: N802 - Qt's name
        """The narrower, the higher."""
        return True

    def heightForWidth(self, width_px: int) -> int:  # noqa: N802 - Qt's name
        """Room for all lines."""
        _, words = self._line()
        one = self.fontMetrics().height()
        return super().sizeHint().height() + max(0, self._words_height(width_px - words.left()) - one)

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Its longest word would do; a few letters are asked for."""
        return QSize(self.fontMetrics().averageCharWidth() * 16, super().sizeHint().height())

    def hitButton(self, pos: QPoint) -> bool:  # noqa: N802 - Qt's name
        """Every line can be pressed."""
        return self.rect().contains(pos)

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw the box, and the words beside it."""
        painter = QStylePainter(self)
        option, words = self._line()
        painter.drawControl(QStyle.ControlElement.CE_CheckBox, option)
        one = self.fontMetrics().height()
        top = words.top() + max(0, (words.height() - one) // 2)
        room = QRect(words.left(), top, self.width() - words.left(), self.height() - top)
        painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
        painter.drawText(room, _WRAPPED, self.text())
        painter.end()
