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
        self._words: dict[int, str] = {}
        self.setFixedHeight(CHART_PX)

    def show_rounds(
        self,
        rounds: list[tuple[int, float | None, float | None]],
        least: dict[int, float] | None = None,
        words: dict[int, str] | None = None,
    ) -> None:
        """``(number, measured ns, predicted ns)`` of each round; None is unknown.

        ``least`` says of some how short the step may be (ns, by number): the bar is pale above that.
        ``words`` stand in place of a bar.
        """
        self._rounds, self._least, self._words = rounds, least or {}, words or {}
        self.setAccessibleName(
            self.tr("Step time of each round: {times}").format(
                times=", ".join(self._shown(number, measured) for number, measured, _ in rounds)
            )
        )
        self.update()

    def _shown(self, number: int, measured: float | None) -> str:
        """What stands over a round: its step time, or why it has none."""
        return self._words.get(number) or text.duration(measured) if measured is None else text.duration(measured)

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw the bars from the left; what is unknown gets a word instead of a bar."""
        values = [v for _, measured, predicted in self._rounds for v in (measured, predicted) if v is not None]
        if not values:
            return
        painter = QPainter(self)
        pitch = min(BAR_PX + BAR_GAP_PX, (self.width() - BAR_GAP_PX) / len(self._rounds))  # many rounds: narrower bars
        first = next((at for at, (_, measured, _) in enumerate(self._rounds) if measured is not None), -1)
        for at, row in enumerate(self._rounds):
            self._draw_round(painter, at == first, row, BAR_GAP_PX + at * pitch, pitch, max(values))
        painter.end()

    def _draw_round(
        self,
        painter: QPainter,
        is_base: bool,
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
            colour = QColor(t.wait if is_base else t.accent)
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
        shown = self._shown(number, measured)
        parts = [shown] if measured is not None else shown.split(" ")  # where there is no bar there is room
        if max(map(metrics.horizontalAdvance, parts)) <= pitch + 4:
            words.setTop(words.bottom() - len(parts) * line)
            painter.setPen(QColor(t.text if measured is not None else t.faint))
            painter.drawText(words.adjusted(-2, 0, 2, 0), int(Qt.AlignmentFlag.AlignCenter), "\n".join(parts))
        painter.setPen(QColor(t.dim))
        below = QRectF(left - 4, self.height() - line - 2, bar_px + 8, line)
        painter.drawText(below, int(Qt.AlignmentFlag.AlignCenter), str(number))
