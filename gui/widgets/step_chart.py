"""Step times of successive rounds as bars, with what was predicted for each."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from gui import text, theme
from gui.painting import guarded

BAR_PX, BAR_GAP_PX, CHART_PX = 46, 14, 150


class StepChart(QWidget):
    """Step time of each round as a bar, the prediction for it as a line across."""

    def __init__(self) -> None:
        super().__init__()
        self._rounds: list[tuple[int, float | None, float | None]] = []
        self.setFixedHeight(CHART_PX)

    def show_rounds(self, rounds: list[tuple[int, float | None, float | None]]) -> None:
        """``(number, measured ns, predicted ns)`` of each round; None is unknown."""
        self._rounds = rounds
        self.setMinimumWidth(len(rounds) * (BAR_PX + BAR_GAP_PX) + BAR_GAP_PX)
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
        t, painter = theme.current(), QPainter(self)
        metrics = painter.fontMetrics()
        line = metrics.height()
        room = self.height() - 2 * line - 10
        for at, (number, measured, predicted) in enumerate(self._rounds):
            left = BAR_GAP_PX + at * (BAR_PX + BAR_GAP_PX)
            tall = room * (measured or 0.0) / max(values)
            top = line + 4 + room - tall
            box = QRectF(left, top, BAR_PX, max(tall, 1.0))
            if measured is not None:
                painter.fillRect(box, QColor(t.wait if at == 0 else t.accent))
            painter.setPen(QColor(t.text if measured is not None else t.faint))
            words = QRectF(left - BAR_GAP_PX / 2, top - line - 2, BAR_PX + BAR_GAP_PX, line)
            shown = metrics.elidedText(text.duration(measured), Qt.TextElideMode.ElideRight, BAR_PX + BAR_GAP_PX)
            painter.drawText(words, int(Qt.AlignmentFlag.AlignCenter), shown)
            if predicted is not None:
                y = line + 4 + room * (1 - predicted / max(values))
                painter.setPen(QPen(QColor(t.saved), 2))
                painter.drawLine(int(left) - 4, int(y), int(left) + BAR_PX + 4, int(y))
            painter.setPen(QColor(t.dim))
            below = QRectF(left, self.height() - line - 2, BAR_PX, line)
            painter.drawText(below, int(Qt.AlignmentFlag.AlignCenter), str(number))
        painter.end()
