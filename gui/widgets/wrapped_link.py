"""A link of as many lines as its words need: what it tells is never cut."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QStyle, QStyleOptionButton, QStylePainter

from gui.painting import guarded
from gui.text import breakable
from gui.widgets.labels import Link, plain_tip
from gui.widgets.line_breaks import line_starts


class WrappedLink(Link):
    """Words as a link; where there is no room for one line they go on in the next."""

    def __init__(self, words: str, handler: Callable[[], object], tip: str = "") -> None:
        super().__init__("")
        self.setProperty("role", "link")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAutoDefault(False)
        self.setToolTip(plain_tip(tip))
        self.clicked.connect(lambda _checked=False: handler())
        policy = QSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)  # "fixed" would be one line
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.set_words(words)

    def set_words(self, words: str) -> None:
        """Replace the words."""
        self.setText(words.replace("&", "&&"))
        self.setAccessibleName(words)
        self.updateGeometry()

    def lines(self, width_px: int) -> list[str]:
        """The words as they are broken for a width."""
        words = breakable(self.text().replace("&&", "&"))
        starts = line_starts(words, self.font(), width_px)
        return [words[a:b].rstrip() for a, b in zip(starts, [*starts[1:], len(words)], strict=True)]

    def hasHeightForWidth(self) -> bool:  # noqa: N802 - Qt's name
        """The narrower, the higher."""
        return True

    def heightForWidth(self, width_px: int) -> int:  # noqa: N802 - Qt's name
        """Room for the lines; one line is as high as that of any other link."""
        more = len(self.lines(width_px)) - 1
        return super().sizeHint().height() + more * self.fontMetrics().lineSpacing()

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Any width will do."""
        return QSize(24, super().sizeHint().height())

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw the lines."""
        painter, option = QStylePainter(self), QStyleOptionButton()
        self.initStyleOption(option)
        option.text = "\n".join(self.lines(self.width())).replace("&", "&&")  # type: ignore[attr-defined]
        painter.drawControl(QStyle.ControlElement.CE_PushButton, option)
        painter.end()
