"""The time axis above the rows: drag on it selects a stretch of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QRectF, QSize, Qt
from PySide6.QtGui import QContextMenuEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QMenu

from gui import text
from gui.painting import guarded
from gui.timeline.axis import AXIS_PX, Origin, paint_axis
from gui.timeline.frame import HEADER_PX
from gui.timeline.header import header_font
from gui.timeline.labels import draw_text
from gui.timeline.palette import palette
from gui.timeline.scaled import Scaled

if TYPE_CHECKING:
    from gui.timeline.view import TimelineView


class AxisBar(Scaled):
    """Ticks of the visible time. A press chooses what they count from when made on the left part."""

    def __init__(self, view: TimelineView) -> None:
        super().__init__(view)
        self._view, self._document = view, view.document
        self._dragging = False
        self.follow_text_size(view.session)
        self.rescaled()
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName(self.tr("Time axis"))
        self.setAccessibleDescription(self.tr("Drag to select a stretch of time."))
        self.setToolTip(self.tr("Drag to select a stretch of time. Click at the left to choose what times count from."))
        self._document.viewChanged.connect(self.update)
        self._document.selectionChanged.connect(self.update)
        self._document.marksChanged.connect(self.update)
        view.session.themeChanged.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(600, self.outer(AXIS_PX))

    def rescaled(self) -> None:
        """One line of text."""
        self.setFixedHeight(self.outer(AXIS_PX))

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = self.own_painter()
        self.paint(painter)
        painter.end()

    def paint(self, painter: QPainter) -> None:
        """Draw ticks, marks, the selected stretch, and what the left end says; own pixels."""
        pal, view = palette(self._view.session.dark), self._document.viewport
        painter.fillRect(0, 0, self.wide(), self.high(), pal.header)
        lanes = QRectF(self.head_px, 0, self.wide() - self.head_px, self.high())
        painter.setClipRect(lanes)
        paint_axis(painter, pal, lanes, (view.start_ns, view.end_ns), self._view.origin_ns())
        for mark in self._document.marks:
            x = self.head_px + view.x_of(mark.start_ns, lanes.width())
            painter.fillRect(QRectF(x, 2, 7, 8), pal.good)
            painter.fillRect(QRectF(x, 2, 1, AXIS_PX), pal.good)
        chosen = self._document.selected_range
        if chosen is not None:
            x0 = self.head_px + view.x_of(chosen.start_ns, lanes.width())
            x1 = self.head_px + view.x_of(chosen.end_ns, lanes.width())
            painter.fillRect(QRectF(x0, AXIS_PX - 4, x1 - x0, 4), pal.accent)
        painter.setClipping(False)
        if self._view.hasFocus():  # keys go to the timeline
            painter.fillRect(QRectF(0, AXIS_PX - 2, self.head_px - 1, 2), pal.accent)
        painter.setFont(header_font(small=True))
        head, width = self.head_px, text.duration(view.width_ns)
        narrow = head < HEADER_PX - 20  # no room for whole words
        shown = width if narrow else self.tr("{width} in view").format(width=width)
        origin = "▾" if narrow else self.origin_text() + " ▾"
        left = head - 24 if narrow else 112
        draw_text(painter, QRectF(20, 0, left - 20, AXIS_PX), shown, pal.muted)
        draw_text(painter, QRectF(left, 0, head - 4 - left, AXIS_PX), origin, pal.dim,
                  int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight))  # fmt: skip

    def origin_text(self) -> str:
        """What the times count from, one word."""
        return {
            Origin.TRACE: self.tr("trace"),
            Origin.STEP: self.tr("step"),
            Origin.SELECTION: self.tr("selection"),
        }[self._view.origin]

    def _choose_origin(self, place: QPoint) -> None:
        menu = QMenu(self)
        for origin, words in (
            (Origin.TRACE, self.tr("Count from the start of the trace")),
            (Origin.STEP, self.tr("Count from the start of the step")),
            (Origin.SELECTION, self.tr("Count from the start of the selection")),
        ):
            action = menu.addAction(words)
            action.setCheckable(True)
            action.setChecked(origin is self._view.origin)
            action.setData(origin)
        menu.triggered.connect(lambda action: self._view.set_origin(action.data()))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(place)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self._choose_origin(event.globalPos())

    def _time(self, event: QMouseEvent) -> float:
        return self._document.viewport.time_at(
            self.inner(event.position()).x() - self.head_px, self.wide() - self.head_px
        )

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        if self.inner(event.position()).x() < self.head_px:
            self._choose_origin(event.globalPosition().toPoint())
            return
        self._dragging = True
        self._view.gestures.begin_range(self._time(event))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._dragging:
            self._view.gestures.drag_range(self._time(event))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._dragging = False
