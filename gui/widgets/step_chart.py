"""Step times of successive rounds as bars, with what was predicted for each."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from gui import text, theme
from gui.painting import guarded

BAR_PX, BAR_GAP_PX, CHART_PX = 46, 14, 150
PALE = 90  # of 255
SPACE_PX = 6  # between the words over two rounds, at least
FAR, CUT_AT = 2.5, 1.5  # times the longest that is sure: a disturbed bar beyond the first is cut at the second
GAP_PX = 14  # of a cut bar's top, above the gap that says so


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

    def bars(self) -> list[QRectF]:
        """Where the bar of each round stands; of no height where it has none."""
        largest, line = self._largest(), self.fontMetrics().height()
        pitch = min(BAR_PX + BAR_GAP_PX, (self.width() - BAR_GAP_PX) / max(len(self._rounds), 1))  # many: narrower bars
        bar_px, room = pitch * BAR_PX / (BAR_PX + BAR_GAP_PX), self.height() - 2 * line - 10
        tall = [min(room * (measured or 0.0) / largest, room) for _, measured, _ in self._rounds]
        lefts = [BAR_GAP_PX + at * pitch for at in range(len(tall))]
        return [QRectF(x, line + 4 + room - y, bar_px, y) for x, y in zip(lefts, tall, strict=True)]

    def labels(self) -> list[tuple[int, QRectF, str]]:
        """What is written over the rounds: number, place and words; rounds side by side that lack the same share one.

        Where there is no room for all, the newest have theirs.
        """
        metrics, bars = self.fontMetrics(), self.bars()
        line, placed = metrics.height(), list[tuple[int, QRectF, str]]()
        at = len(bars) - 1
        while at >= 0:
            number, measured, predicted = self._rounds[at]
            shown, last = self._shown(number, measured), at
            while measured is None and at > 0 and self._rounds[at - 1][1] is None and self._word(at - 1) == shown:
                at -= 1
            room = bars[last].right() - bars[at].left() + 2 * BAR_GAP_PX - 4  # not as far as the next bars
            parts = [shown]
            if metrics.horizontalAdvance(shown) > room and measured is None:
                parts = shown.split(" ")  # where there is no bar there is room for lines
            wide, middle = max(map(metrics.horizontalAdvance, parts)), (bars[at].left() + bars[last].right()) / 2
            bottom = bars[last].top() - 2
            for y in (self._line_y(self._rounds[k][2]) for k in range(at, last + 1)):
                if y is not None and bottom - line - 2 < y < bottom + 3:  # it would cross the words: they stand above
                    bottom = max(y - 3, line)
            place = QRectF(middle - wide / 2, bottom - len(parts) * line, wide, len(parts) * line)
            others = (other.adjusted(-SPACE_PX, 0, SPACE_PX, 0) for _, other, _ in placed)
            if wide <= room and not any(place.intersects(other) for other in others):
                placed.append((number, place, "\n".join(parts)))
            at -= 1
        return placed[::-1]

    def _word(self, at: int) -> str:
        return self._shown(*self._rounds[at][:2])

    def _largest(self) -> float:
        """The longest step that has room, ns. A run that other programs disturbed far more makes no others tiny."""
        sure = [(self._least.get(number, measured), predicted) for number, measured, predicted in self._rounds]
        longest = max((v for pair in sure for v in pair if v), default=0.0)
        every = max((v for _, measured, predicted in self._rounds for v in (measured, predicted) if v), default=1.0)
        return CUT_AT * longest if 0.0 < FAR * longest < every else every

    def is_cut(self, measured: float | None) -> bool:
        """Whether a step is longer than its bar."""
        return measured is not None and measured > self._largest()

    @property
    def cuts(self) -> bool:
        """Whether some bar is shorter than its step."""
        return any(self.is_cut(measured) for _, measured, _ in self._rounds)

    def _line_y(self, predicted: float | None) -> float | None:
        """Where the line of a prediction is."""
        line = self.fontMetrics().height()
        room = self.height() - 2 * line - 10
        return None if predicted is None else line + 4 + room * (1 - predicted / self._largest())

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw the bars from the left; what is unknown gets words instead of a bar."""
        if all(measured is None and predicted is None for _, measured, predicted in self._rounds):
            return
        painter, t = QPainter(self), theme.current()
        first = next((at for at, (_, measured, _) in enumerate(self._rounds) if measured is not None), -1)
        line = self.fontMetrics().height()
        for at, (row, bar) in enumerate(zip(self._rounds, self.bars(), strict=True)):
            self._draw_round(painter, QColor(t.wait if at == first else t.accent), row, bar)
            painter.setPen(QColor(t.dim))
            below = QRectF(bar.left() - 4, self.height() - line - 2, bar.width() + 8, line)
            painter.drawText(below, int(Qt.AlignmentFlag.AlignCenter), str(row[0]))
        known = {number for number, measured, _ in self._rounds if measured is not None}
        for number, place, words in self.labels():
            painter.setPen(QColor(t.text if number in known else t.faint))
            painter.drawText(place.adjusted(-2, 0, 2, 0), int(Qt.AlignmentFlag.AlignCenter), words)
        painter.end()

    def _draw_round(
        self, painter: QPainter, colour: QColor, row: tuple[int, float | None, float | None], bar: QRectF
    ) -> None:
        number, measured, predicted = row
        if measured is not None:
            shown = min(measured, self._largest())
            sure = bar.height() * min(self._least.get(number, measured) / max(shown, 1.0), 1.0)
            painter.fillRect(QRectF(bar.left(), bar.bottom() - sure, bar.width(), max(sure, 1.0)), colour)
            colour.setAlpha(PALE)
            painter.fillRect(QRectF(bar.left(), bar.top(), bar.width(), bar.height() - sure), colour)
        if self.is_cut(measured):
            painter.setPen(QPen(QColor(theme.current().window), 3))
            left, right, cut_y = int(bar.left()) - 2, int(bar.right()) + 2, int(bar.top()) + GAP_PX
            painter.drawLine(left, cut_y + 4, right, cut_y - 4)
        y = self._line_y(predicted)
        if y is not None:
            painter.setPen(QPen(QColor(theme.current().saved), 2))
            painter.drawLine(int(bar.left()) - 4, int(y), int(bar.right()) + 4, int(y))
