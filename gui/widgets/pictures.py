"""Small drawings of the start page: what each way in is, and what a wait looks like. Drawn, so that themes fit."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QWidget

from core.kinds import SliceKind
from gui import theme
from gui.painting import guarded


class Pictogram(QWidget):
    """A sign of 32 px: ``open``, ``profile`` or ``learn``."""

    def __init__(self, sign: str) -> None:
        super().__init__()
        self._sign = sign
        self.setFixedSize(32, 32)

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw it in the accent colour."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        color = QColor(theme.current().accent)
        pen = QPen(color, 2.2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin)
        painter.setPen(pen)
        if self._sign == "open":  # into a tray
            painter.drawPolyline(QPolygonF([QPointF(4, 19), QPointF(4, 27), QPointF(28, 27), QPointF(28, 19)]))
            painter.drawLine(QPointF(16, 4), QPointF(16, 20))
            painter.drawPolyline(QPolygonF([QPointF(10, 14.5), QPointF(16, 20.5), QPointF(22, 14.5)]))
        elif self._sign == "profile":
            painter.drawEllipse(QRectF(3, 3, 26, 26))
            painter.setBrush(QBrush(color))
            painter.drawPolygon(QPolygonF([QPointF(13, 11), QPointF(13, 21), QPointF(21.5, 16)]))
        else:  # one stop after the other
            painter.drawPolyline(QPolygonF([QPointF(5, 26), QPointF(13, 15), QPointF(19, 20), QPointF(27, 7)]))
            painter.setBrush(QBrush(color))
            for x, y in ((5, 26), (13, 15), (19, 20), (27, 7)):
                painter.drawEllipse(QPointF(x, y), 2.4, 2.4)
        painter.end()


# Left and right end of what runs, in shares of the width: a step whose CPU waits, and the GPU idle after it.
_CPU = ((0.0, 0.07), (0.08, 0.13), (0.14, 0.24), (0.58, 0.66), (0.67, 0.80), (0.81, 0.86))
_WAIT = (0.25, 0.57)
_GPU = ((0.05, 0.20), (0.205, 0.37), (0.375, 0.56), (0.68, 0.78), (0.785, 0.92), (0.925, 1.0))
_IDLE = (0.565, 0.675)


class WaitPicture(QWidget):
    """CPU and GPU on one timeline: the CPU waits for the GPU, and then the GPU has nothing to do."""

    NAMES_PX, ROW_PX, GAP_PX = 40, 22, 12

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(
            self.tr("Picture: the CPU waits until the GPU is done, and then the GPU has nothing to do.")
        )

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Twice as wide as high, and more."""
        return QSize(340, self.minimumSizeHint().height())

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Two rows, and a line of words above and below them; the names at their left."""
        names, row = self._measures()
        return QSize(names + 200, 2 * (self.fontMetrics().height() + row) + self.GAP_PX + 22)

    def _measures(self) -> tuple[int, int]:
        """Width of the names and height of a row, px: as much as the texts need."""
        fit = self.fontMetrics()
        widest = max(fit.horizontalAdvance(name) for name in (self.tr("CPU"), self.tr("GPU")))
        return max(self.NAMES_PX, widest + 10), max(self.ROW_PX, fit.height())

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw two rows, the wait between them, and what it costs."""
        t, painter, middle = theme.current(), QPainter(self), int(Qt.AlignmentFlag.AlignVCenter)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        names, row = self._measures()
        width, line = self.width() - names - 1, painter.fontMetrics().height()
        cpu, gpu = line + 6.0, line + 6.0 + row + self.GAP_PX

        def box(ends: tuple[float, float], y: float) -> QRectF:
            return QRectF(names + ends[0] * width, y, max((ends[1] - ends[0]) * width - 1, 1), row)

        painter.setPen(QColor(t.dim))
        for name, y in ((self.tr("CPU"), cpu), (self.tr("GPU"), gpu)):
            painter.drawText(QRectF(0, y, names, row), middle, name)
        painter.setPen(Qt.PenStyle.NoPen)
        for kind, runs, y in ((SliceKind.CPU_OP, _CPU, cpu), (SliceKind.KERNEL, _GPU, gpu)):
            painter.setBrush(QColor(theme.slice_color(kind, t.dark)))
            for ends in runs:
                painter.drawRoundedRect(box(ends, y), 2, 2)
        wait, idle = box(_WAIT, cpu), box(_IDLE, gpu)
        painter.setBrush(QBrush(QColor(t.wait), Qt.BrushStyle.BDiagPattern))
        painter.setPen(QPen(QColor(t.wait), 1.2))
        painter.drawRoundedRect(wait, 2, 2)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(t.wait), 1.2, Qt.PenStyle.DashLine))
        painter.drawRect(idle)
        painter.drawLine(QPointF(wait.right(), wait.bottom()), QPointF(wait.right(), gpu))
        painter.setPen(QColor(t.wait))
        painter.drawText(QRectF(wait.left(), 0, width, line), middle, self.tr("the CPU waits"))
        words, fit = self.tr("the GPU idles"), painter.fontMetrics()
        left = min(idle.left(), self.width() - fit.horizontalAdvance(words) - 2)
        painter.drawText(QRectF(left, gpu + row + 4, width, line), middle, words)
        painter.end()
