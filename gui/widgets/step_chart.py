"""Step times of successive rounds as bars, with what was predicted for each."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from gui import text, theme
from gui.painting import guarded

BAR_PX, BAR_GAP_PX, CHART_PX = 46, 14, 150
PALE = 90  # of 255


class StepChart(QWidget):
    """Step time of each round as a bar, the prediction for it as a line across."""

    def __init__(self) -> None:
        super().__init__()
        self._rounds: list[tuple[int, float | None, float | None]] = []
        self._least: dict[int, float] = {}
        self.setFixedHeight(CHART_PX)

    def show_rounds(
        self, rounds: list[tuple[int, float | None, float | None]], least: dict[int, float] | None = None
    ) -> None:
        """``(number, measured ns, predicted ns)`` of each round; None is unknown.

        ``least`` says of some how short the step may be (ns, by number): the bar is pale above that.
        """
        self._rounds, self._least = rounds, least or {}
        self.setAccessibleName(
            self.tr("Step time of each round: {times}").format(
                times=", ".join(text.duration(measured) for _, measured, _ in rounds)
            )
        )
        self.update()

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw the bars from the left; what is unknown gets a word instead of a bar."""
        values = [v for _, measured, predicted in self._rounds for v in (measured, predicted) if v is not None]
        if not values:
            return
        painter = QPainter(self)
        pitch = min(BAR_PX + BAR_GAP_PX, (self.width() - BAR_GAP_PX) / len(self._rounds))  # many rounds: narrower bars
        for at, row in enumerate(self._rounds):
            self._draw_round(painter, at, row, BAR_GAP_PX + at * pitch, pitch, max(values))
        painter.end()

    def _draw_round(
        self,
        painter: QPainter,
        at: int,
        row: tuple[int, float | None, float | None],
        left: float,
        pitch: float,
        largest: float,
    ) -> None:
        number, measured, predicted = row
        t, metrics = theme.current(), painter.fontMetrics()
        line, bar_px = metrics.height(), pitch * BAR_PX / (BAR_PX + BAR_GAP_PX)
        room = self.height() - 2 * line - 10
        tall = room * (measured or 0.0) / largest
        top = line + 4 + room - tall
        if measured is not None:
            colour = QColor(t.wait if at == 0 else t.accent)
            sure = tall * min(self._least.get(number, measured) / max(measured, 1.0), 1.0)
            painter.fillRect(QRectF(left, top + tall - sure, bar_px, max(sure, 1.0)), colour)
            colour.setAlpha(PALE)
            painter.fillRect(QRectF(left, top, bar_px, tall - sure), colour)
        words = QRectF(left - (pitch - bar_px) / 2, top - line - 2, pitch, line)
        if predicted is not None:
            y = line + 4 + room * (1 - predicted / largest)
            painter.setPen(QPen(QColor(t.saved), 2))
            painter.drawLine(int(left) - 4, int(y), int(left + bar_px) + 4, int(y))
            if words.top() - 2 < y < words.bottom() + 3:  # the line would cross the words: they stand above it
                words.moveBottom(max(y - 3, line))
        shown = text.duration(measured)
        if metrics.horizontalAdvance(shown) <= pitch + 4:
            painter.setPen(QColor(t.text if measured is not None else t.faint))
            painter.drawText(words.adjusted(-2, 0, 2, 0), int(Qt.AlignmentFlag.AlignCenter), shown)
        painter.setPen(QColor(t.dim))
        below = QRectF(left - 4, self.height() - line - 2, bar_px + 8, line)
        painter.drawText(below, int(Qt.AlignmentFlag.AlignCenter), str(number))
