"""Where the CPU's time goes: names with bars, for a trace in which no device worked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QPushButton, QSizePolicy, QStyle, QStyleOptionFocusRect, QVBoxLayout, QWidget

from gui import text, theme
from gui.painting import guarded
from gui.widgets.labels import heading, label, plain_tip

ROW_PX = 34
BAR_PX = 4


@dataclass(frozen=True)
class Share:
    """One row: a name, its time in ns, how many calls, and what a click does.

    ``whole``: the time holds that of everything it calls, not its own alone. ``per_step``: time and calls of one step.
    """

    name: str
    ns: float
    calls: float
    run: Callable[[], object]
    whole: bool = False
    per_step: bool = False


class ShareRow(QPushButton):
    """A name over a bar; a click or Enter shows the slowest call of it."""

    def __init__(self, share: Share, whole_ns: float, largest_ns: float) -> None:
        super().__init__()
        self._share, self._part = share, share.ns / max(largest_ns, 1.0)
        self._right = text.percent(100 * share.ns / max(whole_ns, 1.0))
        self.setProperty("role", "flat")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        if share.whole:
            words = (
                self.tr(
                    "{name}: {time} a step with all it calls, in {count} {count|call|calls}. A click shows the longest."
                )
                if share.per_step
                else self.tr(
                    "{name}: {time} with all that it calls, in {count} {count|call|calls}. A click shows the longest."
                )
            )
        else:
            words = (
                self.tr("{name}: {time} a step of its own, in {count} {count|call|calls}. A click shows the longest.")
                if share.per_step
                else self.tr("{name}: {time} of its own in {count} {count|call|calls}. A click shows the longest.")
            )
        tip = text.counted(words, share.calls, name=share.name, time=text.duration(share.ns))
        self.setToolTip(plain_tip(tip))
        self.setAccessibleName(tip)
        self.clicked.connect(lambda _checked=False: share.run())

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Two lines."""
        return QSize(160, ROW_PX)

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw name, time and bar."""
        t, painter = theme.current(), QPainter(self)
        if self.underMouse():
            painter.fillRect(self.rect(), QColor(t.card))
        right = f"{text.duration(self._share.ns)} · {self._right}"
        metrics = self.fontMetrics()
        room = metrics.horizontalAdvance(right)
        line = QRectF(4, 2, self.width() - 8, ROW_PX - BAR_PX - 9)
        align = Qt.AlignmentFlag.AlignVCenter
        painter.setPen(QColor(t.dim))
        painter.drawText(line, int(Qt.AlignmentFlag.AlignRight | align), right)
        painter.setPen(QColor(t.text))
        name = metrics.elidedText(self._share.name, Qt.TextElideMode.ElideMiddle, int(line.width()) - room - 12)
        painter.drawText(line, int(Qt.AlignmentFlag.AlignLeft | align), name)
        bar = QRectF(4, ROW_PX - BAR_PX - 4, self.width() - 8, BAR_PX)
        painter.fillRect(bar, QColor(t.border))
        painter.fillRect(QRectF(bar.left(), bar.top(), max(2.0, bar.width() * self._part), BAR_PX), QColor(t.accent))
        if self.hasFocus():
            option = QStyleOptionFocusRect()
            option.initFrom(self)
            self.style().drawPrimitive(QStyle.PrimitiveElement.PE_FrameFocusRect, option, painter, self)
        painter.end()


class Sections(QWidget):
    """Sections of rows, one under the other."""

    def __init__(self) -> None:
        super().__init__()
        self._box = QVBoxLayout(self)
        self._box.setContentsMargins(4, 4, 4, 4)
        self._box.setSpacing(2)

    def clear(self) -> None:
        """Take everything away."""
        while (item := self._box.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()

    def add_title(self, words: str, note: str = "") -> None:
        """Add a heading and what its figures are."""
        if self._box.count():
            self._box.addSpacing(8)
        self._box.addWidget(heading(words, 0.5))
        if note:
            self._box.addWidget(label(note, "faint", wrap=True))

    def add_rows(self, shares: list[Share], whole_ns: float) -> None:
        """Add one row per name, the bars relative to the largest."""
        largest = max((share.ns for share in shares), default=1.0)
        for share in shares:
            self._box.addWidget(ShareRow(share, whole_ns, largest))

    def add_text(self, words: str) -> None:
        """Add a paragraph."""
        self._box.addWidget(label(words, "dim", wrap=True))

    def add_widget(self, widget: QWidget) -> None:
        """Add a button or the like."""
        self._box.addWidget(widget, 0, Qt.AlignmentFlag.AlignLeft)
