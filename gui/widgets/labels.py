"""Labels and buttons with the app's manners: plain text always, wrapping, elided in the middle, named for readers."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import TypeVar

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import (
    QContextMenuEvent,
    QFont,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QMenu,
    QPushButton,
    QSizePolicy,
    QStyle,
    QStyleOptionButton,
    QStylePainter,
    QWidget,
)

from core.words import visible_code
from gui import theme
from gui.painting import guarded
from gui.text import BREAK, breakable_anywhere, with_units
from gui.widgets.line_breaks import line_starts

W = TypeVar("W", bound=QWidget)
SELECTABLE = Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard


def label(text: str = "", role: str = "", *, wrap: bool = False, mono: bool = False, select: bool = False) -> QLabel:
    """Plain-text label; ``role`` picks its colour (dim, faint, wait, saved, warn)."""
    made = Wrapped(text) if wrap else QLabel(text)
    made.setTextFormat(Qt.TextFormat.PlainText)
    if role:
        made.setProperty("role", role)
    if mono:
        made.setFont(theme.mono_font())
    if select:
        made.setTextInteractionFlags(SELECTABLE)
    return made


def form_text(role: str = "") -> FormText:
    """Words of some lines in a form, to be selected."""
    made = FormText()
    made.setTextFormat(Qt.TextFormat.PlainText)
    made.setAlignment(Qt.AlignmentFlag.AlignTop)
    made.setTextInteractionFlags(SELECTABLE)
    if role:
        made.setProperty("role", role)
    return made


class Wrapped(QLabel):
    """Text of as many lines as it needs; a word that is too long for one goes on in the next."""

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._text = ""
        self.setWordWrap(True)
        self.setText(text)

    def text(self) -> str:
        """The text as it was set."""
        return self._text

    def setText(self, text: str) -> None:  # noqa: N802 - Qt's name
        """Replace the text."""
        self._text = text
        super().setText(breakable_anywhere(text))

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Copy what is selected without the places where its words may break."""
        if event.matches(QKeySequence.StandardKey.Copy) and self.hasSelectedText():
            self._copy()
            event.accept()
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802 - Qt's name
        """Offer the same of what is selected."""
        if not self.hasSelectedText():
            super().contextMenuEvent(event)
            return
        menu = QMenu(self)
        menu.addAction(self.tr("Copy"), self._copy)
        menu.exec(event.globalPos())

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.selectedText().replace(BREAK, ""))


def named(widget: W, words: str) -> W:
    """Give a widget its name for readers of the screen; returns it."""
    widget.setAccessibleName(words)
    return widget


def plain_tip(text: str) -> str:
    """Tooltip that shows ``text`` as it is: Qt would take a text with tags for rich text."""
    return "<qt>" + html.escape(with_units(visible_code(text))).replace("\n", "<br>") + "</qt>" if text else ""


def heading(text: str, delta: float = 2.0, *, wrap: bool = False) -> QLabel:
    """Bold label, ``delta`` points larger than the text."""
    made = label(text, wrap=wrap)
    font = QFont(made.font())
    font.setPointSizeF(font.pointSizeF() + delta)
    font.setWeight(QFont.Weight.Bold)
    made.setFont(font)
    return made


def button(
    text: str, handler: Callable[[], object] | None = None, role: str = "", tip: str = "", *, yields: bool = False
) -> QPushButton:
    """Push button; ``role`` is primary, flat, link, chip, tick or empty. ``yields``: it may be cut, as links may."""
    made = (Link if yields or role == "link" else QPushButton)(text.replace("&", "&&"))
    made.setAccessibleName(text)
    if role:
        made.setProperty("role", role)
    if role in ("link", "chip", "flat"):
        made.setCursor(Qt.CursorShape.PointingHandCursor)
    if tip:
        made.setToolTip(plain_tip(tip))
    if handler is not None:
        made.clicked.connect(lambda _checked=False: handler())
    made.setAutoDefault(False)
    return made


class FormText(Wrapped):
    """Wrapped text in a form, which gives a row the greater of the hinted height and that of its lines in its width.

    So a line is hinted at, however wide it is now: a hint that went with the width would be known a layout too late.
    """

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """A line."""
        return QSize(super().sizeHint().width(), self.fontMetrics().lineSpacing())

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """A line."""
        return QSize(super().minimumSizeHint().width(), self.fontMetrics().lineSpacing())


class Link(QPushButton):
    """A link or button that gives way in the middle where there is no room for all of it; a button keeps its arrow."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Any width will do."""
        return QSize(24, super().minimumSizeHint().height())

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Enter follows it, as Space does; else the card around it would take the key."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.menu() is None:
            self.click()
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        """No tooltip that repeats what can be read."""
        whole = self.width() >= self.sizeHint().width()
        if (
            event.type() == QEvent.Type.ToolTip
            and whole
            and self.toolTip() == plain_tip(self.text().replace("&&", "&"))
        ):
            event.ignore()
            return True
        return super().event(event)

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw as much of the text as fits."""
        painter, option = QStylePainter(self), QStyleOptionButton()
        self.initStyleOption(option)
        wanted = self.sizeHint().width()
        if self.width() < wanted:
            metrics = self.fontMetrics()
            room = self.width() - max(0, wanted - metrics.horizontalAdvance(self.text()))  # less its edges
            arrow = next((c for c in self.text() if c in "←→"), "") if self.property("role") == "flat" else ""
            fitting = arrow or metrics.elidedText(self.text(), Qt.TextElideMode.ElideMiddle, room)
            option.text = fitting  # type: ignore[attr-defined]
        painter.drawControl(QStyle.ControlElement.CE_PushButton, option)
        painter.end()


def rule() -> QFrame:
    """A hairline."""
    line = QFrame()
    line.setFixedHeight(1)
    line.setStyleSheet(f"background: {theme.current().border};")
    return line


def restyle(widget: QWidget, name: str, value: object) -> None:
    """Set a dynamic property and have the style sheet look at it again."""
    if widget.property(name) != value:
        widget.setProperty(name, value)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


class Elided(QLabel):
    """One line that gives way in the middle; the whole text is its tooltip and its accessible name.

    ``at_end``: it gives way at its end, as a sentence does.
    """

    def __init__(
        self,
        text: str = "",
        role: str = "",
        *,
        mono: bool = False,
        parent: QWidget | None = None,
        at_end: bool = False,
    ) -> None:
        super().__init__(parent)
        self._text = ""
        self._elide = Qt.TextElideMode.ElideRight if at_end else Qt.TextElideMode.ElideMiddle
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        if role:
            self.setProperty("role", role)
        if mono:
            self.setFont(theme.mono_font())
        self.set_text(text)

    def set_text(self, text: str) -> None:
        """Replace the text."""
        self._text = " ".join(text.split())
        self.setAccessibleName(self._text)
        self._tell_whole()
        self.updateGeometry()
        self.update()

    def setText(self, text: str) -> None:  # noqa: N802 - Qt's name
        """Replace the text, as for any label."""
        self.set_text(text)

    def full_text(self) -> str:
        """The text, whole."""
        return self._text

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Room for the whole text."""
        metrics = self.fontMetrics()
        return QSize(metrics.horizontalAdvance(self._text) + 2, metrics.height() + 2)

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Any width will do."""
        return QSize(24, self.fontMetrics().height() + 2)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Offer the whole text as tooltip when it is cut."""
        super().resizeEvent(event)
        self._tell_whole()

    def fitting(self, room_px: int) -> str:
        """As much of the text as there is room for."""
        return self.fontMetrics().elidedText(self._text, self._elide, room_px)

    def _tell_whole(self) -> None:
        cut = self.fontMetrics().horizontalAdvance(self._text) > self.width()
        self.setToolTip(plain_tip(self._text[:2000]) if cut else "")

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw as much as fits."""
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        text = self.fitting(self.width())
        painter.drawText(self.rect(), int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), text)
        painter.end()


WORD_PART = 9  # letters of a cut word that are left out with it


class Clamped(QLabel):
    """Bold text of at most so many lines; what does not fit is elided and shown as tooltip. 0 lines: no limit."""

    def __init__(self, text: str, limit: int) -> None:
        super().__init__(text)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(True)
        self.setMinimumWidth(60)
        self._limit = limit
        font = QFont(self.font())
        font.setWeight(QFont.Weight.Bold)
        self.setFont(font)
        self.setAccessibleName(text.replace("\u200b", ""))

    def set_limit(self, limit: int) -> None:
        """Allow this many lines."""
        if limit != self._limit:
            self._limit = limit
            self.updateGeometry()
            self.update()

    def lines(self, width_px: int) -> list[str]:
        """Text as it is broken for a width, the last allowed line elided where more would follow."""
        starts = line_starts(self.text(), self.font(), width_px)
        text, ends = self.text(), [*starts[1:], len(self.text())]
        broken = [text[a:b].rstrip() for a, b in zip(starts, ends, strict=True)]
        if not 0 < self._limit < len(broken):
            return broken
        rest = text[starts[self._limit - 1] :]
        last = self.fontMetrics().elidedText(rest, Qt.TextElideMode.ElideRight, width_px)
        words, _, part = last.rpartition(" ")
        if words and len(part) < WORD_PART:  # no pieces of words
            last = words.rstrip(" ,;:") + " …"
        return [*broken[: self._limit - 1], last]

    def hasHeightForWidth(self) -> bool:  # noqa: N802 - Qt's name
        """The narrower, the higher."""
        return True

    def heightForWidth(self, width_px: int) -> int:  # noqa: N802 - Qt's name
        """Room for the lines."""
        return len(self.lines(width_px)) * self.fontMetrics().lineSpacing() + 1

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """As wide as there is room."""
        width = min(self.fontMetrics().horizontalAdvance(self.text()) + 2, 260)
        return QSize(width, self.heightForWidth(width))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """A line."""
        return QSize(60, self.fontMetrics().lineSpacing() + 1)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Offer the whole text as tooltip when it is cut."""
        super().resizeEvent(event)
        shown = self.lines(self.width())
        self.setToolTip(plain_tip(self.text()) if shown and shown[-1].endswith("…") else "")

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw the lines."""
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        metrics = self.fontMetrics()
        for number, line in enumerate(self.lines(self.width())):
            painter.drawText(0, number * metrics.lineSpacing() + metrics.ascent(), line)
        painter.end()
