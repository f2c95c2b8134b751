"""Three small drawings: a histogram, falling bars of the plan, and a line over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetrics, QHelpEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QToolTip, QWidget

from gui import text, theme
from gui.painting import guarded
from gui.widgets.labels import plain_tip


def _small(widget: QWidget) -> QFont:
    font = QFont(widget.font())
    font.setPointSizeF(max(6.5, font.pointSizeF() - 1.5))
    return font


class Histogram(QWidget):
    """Durations on a linear axis, the selected one marked."""

    BINS = 16

    def __init__(self) -> None:
        super().__init__()
        self._counts = np.empty(0, np.int64)
        self._low = self._high = 0.0
        self._mark: float | None = None
        self.height_px = 0
        self.setMinimumWidth(160)
        self.set_height(96)

    def set_height(self, height_px: int) -> None:
        """Give it a height, scale included."""
        self.height_px = height_px
        self.setFixedHeight(height_px)

    def show_values(self, values: np.ndarray, mark: float | None) -> None:
        """Count ``values`` (ns) into bins; ``mark`` is the selected one's value."""
        if len(values):
            low, high = float(values.min()), float(values.max())
            high = high if high > low else low + 1.0
            self._counts, _ = np.histogram(values, bins=min(self.BINS, max(1, len(values))), range=(low, high))
            self._low, self._high = low, high
        else:
            self._counts = np.empty(0, np.int64)
        self._mark = mark
        self.setAccessibleName(
            self.tr("Histogram of durations from {low} to {high}").format(
                low=text.duration(self._low), high=text.duration(self._high)
            )
        )
        self.update()

    def words_at(self, x_px: float) -> str:
        """What the bar at a place says."""
        if not len(self._counts):
            return ""
        k = min(max(int(x_px / max(self.width(), 1) * len(self._counts)), 0), len(self._counts) - 1)
        wide = (self._high - self._low) / len(self._counts)
        return text.counted(
            self.tr(
                "{count} {count|call|calls} of {low} to {high}. The selected one is in the bar of the other colour."
            ),
            int(self._counts[k]),
            low=text.duration(self._low + k * wide),
            high=text.duration(self._low + (k + 1) * wide),
        )

    def event(self, event: QEvent) -> bool:
        """Tooltip: what the bar under the pointer says."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), plain_tip(self.words_at(event.pos().x())), self)
            return True
        return super().event(event)

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw bars, ends of the axis, and the mark."""
        if not len(self._counts):
            return
        t, painter = theme.current(), QPainter(self)
        painter.setFont(_small(self))
        line = painter.fontMetrics().height()
        area = QRectF(0, 2, self.width(), self.height() - line - 6)
        width, top = area.width() / len(self._counts), int(self._counts.max())
        share = (self._mark - self._low) / (self._high - self._low) if self._mark is not None else -1.0
        marked = min(int(share * len(self._counts)), len(self._counts) - 1) if share >= 0 else -1
        for k, n in enumerate(self._counts):
            if n:
                height = max(2.0, area.height() * float(n) / top)
                bar = QRectF(area.left() + k * width + 1, area.bottom() - height, max(1.0, width - 2), height)
                painter.fillRect(bar, QColor(t.warn if k == marked else t.accent))
        painter.setPen(QColor(t.dim))
        below = QRectF(0, area.bottom() + 3, self.width(), line)
        painter.drawText(below, int(Qt.AlignmentFlag.AlignLeft), text.duration(self._low))
        painter.drawText(below, int(Qt.AlignmentFlag.AlignRight), text.duration(self._high))
        painter.end()


LABEL_GAP_PX = 6.0  # between two numbers under the bars
GROUP_PX = 2.0  # the line under bars that only pay together


class FallingBars(QWidget):
    """Step time now and after each fix of the plan; ticked ones are drawn as done, and a click opens one's card."""

    picked = Signal(int)  # what `show_values` was given as the bar's number

    def __init__(self) -> None:
        super().__init__()
        self._cards: list[tuple[int, str]] = []
        self.setMouseTracking(True)
        self._values: list[float] = []
        self._done: frozenset[int] = frozenset()
        self._groups: list[tuple[int, int]] = []
        self.setFixedHeight(72)

    def show_values(
        self,
        values: Sequence[float],
        done: Iterable[int] = (),
        cards: Sequence[tuple[int, str]] = (),
        groups: Sequence[tuple[int, int]] = (),
    ) -> None:
        """``values`` in ns, the first is now; ``done`` are positions of bars whose fix is ticked.

        ``cards`` has number and title of the fix that leads to each bar after the first, ``groups`` the first and last
        bar of those that only pay together: a line under them joins them.
        """
        self._groups = list(groups)
        self._values, self._done, self._cards = list(values), frozenset(done), list(cards)
        self.setAccessibleName(
            self.tr("Predicted step time after each fix: {times}").format(
                times=", ".join(text.duration(v) for v in self._values)
            )
        )
        self.update()

    def _pitch_px(self) -> float:
        return min(self.width() / max(len(self._values), 1), 72.0)

    def bar_at(self, x_px: float) -> int:
        """Position of the bar at a place; -1 beside them."""
        k = int(x_px // self._pitch_px()) if x_px >= 0 else -1
        return k if k < len(self._values) else -1

    def words_at(self, x_px: float) -> str:
        """What the bar at a place says."""
        k = self.bar_at(x_px)
        if k < 0:
            return ""
        time = text.duration(self._values[k])
        if k == 0:
            return self.tr("The step now: {time}.").format(time=time)
        if k > len(self._cards):
            return time
        words = self.tr("{time} after this fix, predicted: {title}. A click opens its card.")
        for first, last in self._groups:
            if first <= k <= last:
                words += " " + self.tr("It is one of {count} that only pay together.").format(count=last - first + 1)
        return words.format(time=time, title=self._cards[k - 1][1])

    def event(self, event: QEvent) -> bool:
        """Tooltip: what the bar under the pointer says."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), plain_tip(self.words_at(event.pos().x())), self)
            return True
        return super().event(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Show that a bar can be clicked."""
        can = 0 < self.bar_at(event.position().x()) <= len(self._cards)
        self.setCursor(Qt.CursorShape.PointingHandCursor if can else Qt.CursorShape.ArrowCursor)

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Ask for the card of the bar."""
        k = self.bar_at(event.position().x())
        if event.button() == Qt.MouseButton.LeftButton and 0 < k <= len(self._cards):
            self.picked.emit(self._cards[k - 1][0])

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw one bar per value, its time below it where there is room."""
        if not self._values:
            return
        t, painter = theme.current(), QPainter(self)
        painter.setFont(_small(self))
        line, top = painter.fontMetrics().height(), max(self._values)
        pitch = self._pitch_px()
        area_px, unit = self.height() - line - 6, _unit_of(top)
        for k, value in enumerate(self._values):
            height = max(2.0, area_px * value / top) if top > 0 else 2.0
            box = QRectF(k * pitch + 2, area_px - height + 2, max(2.0, pitch - 6), height)
            color = QColor(t.saved if k in self._done else t.wait if k == 0 else t.accent)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(color)
            painter.drawRoundedRect(box, 2, 2)
        for first, last in self._groups:
            under = QRectF(first * pitch + 2, area_px + 3, (last - first + 1) * pitch - 6, GROUP_PX)
            painter.fillRect(under, QColor(t.dim))
        painter.setPen(QColor(t.dim))
        for k, place in self.labels(painter.fontMetrics(), pitch).items():
            under = QRectF(place, self.height() - line, self.width(), line)
            painter.drawText(under, int(Qt.AlignmentFlag.AlignLeft), _bare(self._values[k], unit))
        painter.end()

    def labels(self, metrics: QFontMetrics, pitch: float) -> dict[int, float]:
        """Bars whose time is written, and where it begins, px: the first, the last, and of the others what has room."""
        unit, count, placed = _unit_of(max(self._values)), len(self._values), dict[int, tuple[float, float]]()
        for k in dict.fromkeys((0, count - 1, *range(count))):
            width = float(metrics.horizontalAdvance(_bare(self._values[k], unit)))
            left = min(max((k + 0.5) * pitch - 1 - width / 2, 0.0), max(self.width() - width, 0.0))
            if all(left >= end + LABEL_GAP_PX or left + width + LABEL_GAP_PX <= at for at, end in placed.values()):
                placed[k] = (left, left + width)
        return {k: left for k, (left, _) in placed.items()}


def _unit_of(ns: float) -> float:
    return 1e3 if ns < 10e6 else 1e6


def _bare(ns: float, unit: float) -> str:
    value = ns / unit
    return text.count(round(value)) if value >= 100 else f"{value:.1f}"


def bars_unit(ns: float) -> str:
    """Unit of the numbers under `FallingBars` for a largest value."""
    return "µs" if _unit_of(ns) == 1e3 else "ms"


def _stairs(x: np.ndarray, y: np.ndarray, end: float) -> list[QPointF]:
    """Line that holds each value until the next."""
    points = [QPointF(float(x[0]), float(y[0]))]
    for at, value in zip(x[1:].tolist(), y[1:].tolist(), strict=True):
        points += [QPointF(at, points[-1].y()), QPointF(at, value)]
    return [*points, QPointF(end, points[-1].y())]


def _in_pixels(column: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places and values to draw: of each pixel the highest value, then the one that holds from there on."""
    first = np.flatnonzero(np.diff(column, prepend=-1))
    last = np.append(first[1:], len(y)) - 1
    x = np.column_stack((column[first], column[first] + 1))
    return x.ravel(), np.column_stack((np.maximum.reduceat(y, first), y[last])).ravel()


class LineChart(QWidget):
    """A step line of one quantity over time, with its peak; a second one may lie above it."""

    picked = Signal(float)  # time that was clicked, ns

    def __init__(self) -> None:
        super().__init__()
        self._x = self._y = self._above = np.empty(0)
        self._peak = ""
        self._from, self._to = 0.0, 1.0  # ns, what the width stands for
        self._write: Callable[[float], str] = str
        self.setMinimumHeight(72)

    def show_values(
        self,
        x: np.ndarray,
        y: np.ndarray,
        write: Callable[[float], str],
        above: np.ndarray | None = None,
        extent_ns: tuple[float, float] | None = None,
    ) -> None:
        """``x`` in ns, ascending; ``write`` makes a text of a ``y``, for the peak and the value under the pointer.

        ``above`` is drawn as a line of its own at the same times, on the same axis. ``extent_ns`` is what the width
        stands for, the same for charts that stand over each other; without it, from the first to the last value.
        """
        if len(x):
            self._from, self._to = extent_ns or (float(x[0]), float(x[-1]))
            self._to = max(self._to, self._from + 1.0)
        self._above = np.empty(0) if above is None else above.astype(np.float64)
        self._write, peak = write, write(float(y.max())) if len(y) else ""
        self._x, self._y, self._peak = x.astype(np.float64), y.astype(np.float64), peak
        self.setAccessibleName(self.tr("Chart over time; the peak is {peak}").format(peak=peak))
        self.update()

    def value_at(self, x_px: float) -> tuple[float, float] | None:
        """Time (ns) at a place, and the value that held there; before the first it is not known."""
        if not len(self._x) or self.width() < 2:
            return None
        time = self._from + (self._to - self._from) * min(max(x_px / (self.width() - 1), 0.0), 1.0)
        if time < self._x[0]:
            return None
        return float(time), float(self._y[max(int(np.searchsorted(self._x, time, "right")) - 1, 0)])

    def event(self, event: QEvent) -> bool:
        """Tooltip: time and value under the pointer."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            found = self.value_at(event.pos().x())
            if found is not None:
                words = self.tr("{value} at {time}").format(value=self._write(found[1]), time=text.duration(found[0]))
                QToolTip.showText(event.globalPos(), plain_tip(words), self)
            return True
        return super().event(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Tell the time that was clicked."""
        found = self.value_at(event.position().x())
        if event.button() == Qt.MouseButton.LeftButton and found is not None:
            self.picked.emit(found[0])

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw at most two values a pixel: the highest in it, and the one that holds from there on."""
        if not len(self._x):
            return
        t, painter = theme.current(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        width, height = self.width(), self.height() - 18
        top = max(self._y.max(), self._above.max(initial=1.0))
        column = ((self._x - self._from) / (self._to - self._from) * (width - 1)).astype(np.int64)
        if len(self._above):
            x, y = _in_pixels(column, self._above)
            painter.setPen(QPen(QColor(t.dim), 1))
            painter.drawPolyline(_stairs(x, 16 + height * (1 - y / top), width))
        x, y = _in_pixels(column, self._y)
        line = _stairs(x, 16 + height * (1 - y / top), width)
        steps = [QPointF(float(x[0]), 16 + height), *line, QPointF(width, 16 + height)]
        fill = QColor(t.accent)
        fill.setAlpha(70)
        painter.setPen(QPen(QColor(t.accent), 1))
        painter.setBrush(fill)
        painter.drawPolygon(QPolygonF(steps))
        painter.setPen(QColor(t.dim))
        painter.setFont(_small(self))
        painter.drawText(QRectF(0, 0, width, 16), int(Qt.AlignmentFlag.AlignRight), self._peak)
        painter.end()
