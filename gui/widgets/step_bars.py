"""Time per step of one thing as a row of small bars: outliers show where a mean hides them."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np
from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QHelpEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from core.figures.per_step import PerStep
from gui import text, theme
from gui.painting import guarded
from gui.widgets.labels import plain_tip

BAR_PX, LEAST_PX = 14, 2  # width of a bar at most and at least; more steps than that share one, which shows the longest


class StepBars(QWidget):
    """One bar per step; a click asks for the longest slice of the step."""

    opened = Signal(int)

    def __init__(self, height_px: int) -> None:
        super().__init__()
        self._steps: PerStep | None = None
        self._numbers: Sequence[int | str] = ()
        self._mark = -1
        self._height_px = height_px
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(60)

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """As wide as the bars are at most."""
        count = 0 if self._steps is None else len(self._steps)
        return QSize(min(max(count * BAR_PX, 60), 400), self._height_px)

    def show_steps(self, steps: PerStep, numbers: Sequence[int | str], mark: int = -1) -> None:
        """Show these; ``numbers`` are what the steps are called, ``mark`` is the row of the selected one."""
        self._steps, self._numbers, self._mark = steps, numbers, mark
        self.setAccessibleName(self.summary())
        self.updateGeometry()
        self.update()

    def summary(self) -> str:
        """Return the spread in words."""
        steps = self._steps
        if steps is None or not len(steps):
            return ""
        low, high = (text.duration(int(v)) for v in (steps.time_ns.min(), steps.time_ns.max()))
        if low == high:
            return self.tr("Per step: {time}").format(time=low)
        number = self._numbers[int(np.argmax(steps.time_ns))]
        return self.tr("Per step: {low} to {high}, most in step {number}").format(low=low, high=high, number=number)

    def _pitch(self) -> float:
        count = 1 if self._steps is None else max(len(self._steps), 1)
        return min(float(BAR_PX), self.width() / count)

    def step_at(self, x_px: float) -> int:
        """Row of the step under a place, of several that share a bar the longest; -1 none."""
        if self._steps is None:
            return -1
        pitch = self._pitch()
        first = int(x_px / pitch)
        if not 0 <= first < len(self._steps):
            return -1
        if pitch >= LEAST_PX:
            return first
        column = int(x_px / LEAST_PX) * LEAST_PX
        a = min(ceil(column / pitch), len(self._steps) - 1)
        b = max(ceil((column + LEAST_PX) / pitch), a + 1)
        return a + int(np.argmax(self._steps.time_ns[a:b]))

    def words_at(self, x_px: float) -> str:
        """What the bar at a place says."""
        row, steps = self.step_at(x_px), self._steps
        if row < 0 or steps is None:
            return ""
        words = self.tr("Step {step}: {time} in {count} {count|call|calls}")
        if not steps.counted[row]:
            words = self.tr("Step {step}, which no mean counts: {time} in {count} {count|call|calls}")
        return text.counted(
            words,
            int(steps.calls[row]),
            step=str(self._numbers[row]),
            time=text.duration(int(steps.time_ns[row])),
        )

    def event(self, event: QEvent) -> bool:
        """Tooltip: what the bar under the pointer says."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), plain_tip(self.words_at(event.pos().x())), self)
            return True
        return super().event(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Ask for the longest slice of the step."""
        row = self.step_at(event.position().x())
        if event.button() == Qt.MouseButton.LeftButton and self._steps is not None and row >= 0:
            slice_id = int(self._steps.longest[row])
            if slice_id >= 0:
                self.opened.emit(slice_id)

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw the bars; steps that no mean counts are paler, the marked one has another colour."""
        steps = self._steps
        if steps is None or not len(steps):
            return
        t, painter, pitch = theme.current(), QPainter(self), self._pitch()
        top, room = max(int(steps.time_ns.max()), 1), self.height() - 2
        shown = range(len(steps))
        if pitch < LEAST_PX:
            shown = sorted({self.step_at(x + 0.5) for x in range(0, self.width(), LEAST_PX)})  # type: ignore[assignment]
        for row in shown:
            if row < 0:
                continue
            height = room * float(steps.time_ns[row]) / top
            colour = QColor(t.warn if row == self._mark else t.accent)
            colour.setAlpha(255 if steps.counted[row] else 110)
            width = max(pitch - (2 if pitch > 5 else 0.5), 1.0)
            height = max(height, 1.0)
            painter.fillRect(QRectF(row * pitch, room - height + 1, width, height), colour)
        painter.setPen(QColor(t.border))
        painter.drawLine(0, self.height() - 1, int(len(steps) * pitch), self.height() - 1)
        painter.end()
