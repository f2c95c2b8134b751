"""The whole trace in one line, with the view in it."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap, QResizeEvent
from PySide6.QtWidgets import QWidget

from core.kinds import SliceKind, TrackKind
from core.lanes import Lane, LaneIndex
from core.lod import covered_before, share_between
from gui.painting import guarded
from gui.session import Document, Session
from gui.timeline.counters import CounterData
from gui.timeline.header import header_font
from gui.timeline.hits import hit_lanes
from gui.timeline.labels import draw_text
from gui.timeline.palette import Palette, blend, fill, palette
from gui.timeline.rects import draw_rects
from gui.timeline.scaled import Scaled
from gui.timeline.waits import sync_lane

MINIMAP_PX, LOW_MINIMAP_PX = 34, 22
SUMS = 4096  # pieces of the trace of which is known how much of each is covered: a screen has no more pixels
EDGE_PX = 5  # the view's borders can be taken within this


class Minimap(Scaled):
    """CPU above, device below, waits in red; drag moves the view, dragging a border resizes it."""

    def __init__(
        self,
        session: Session,
        document: Document,
        index: LaneIndex,
        counters: CounterData,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._session, self._document, self._index, self._counters = session, document, index, counters
        self._ground: QPixmap | None = None
        self._covered: WeakKeyDictionary[Lane, NDArray[np.float64]] = WeakKeyDictionary()
        self._grab = ""
        self._grab_ns = 0.0
        self._low = False
        self.follow_text_size(session)
        self.rescaled()
        self.setMouseTracking(True)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName(self.tr("Whole trace"))
        self.setAccessibleDescription(self.tr("Overview of the trace with the visible part marked; drag to move it."))
        document.viewChanged.connect(self.update)
        document.highlightChanged.connect(self.update)
        document.searchChanged.connect(self.update)
        document.marksChanged.connect(self.update)
        document.selectionChanged.connect(self.update)
        document.analysisChanged.connect(self.redraw)
        session.themeChanged.connect(self.redraw)

    def sizeHint(self) -> QSize:
        return QSize(600, self.outer(MINIMAP_PX))

    def rescaled(self) -> None:
        """Keep the height in texts."""
        self._ground = None
        self.setFixedHeight(self.outer(LOW_MINIMAP_PX if self._low else MINIMAP_PX))

    def set_low(self, low: bool) -> None:
        """Take less height in a low window."""
        if low != self._low:
            self._low = low
            self.rescaled()

    def redraw(self) -> None:
        """Draw the ground anew."""
        self._ground = None
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._ground = None

    # Time <-> x ----------------------------------------------------------------------------------------------

    def _x(self, time_ns: float) -> float:
        view = self._document.viewport
        return self.head_px + (time_ns - view.first_ns) / view.span_ns * (self.wide() - self.head_px)

    def _time(self, x: float) -> float:
        view = self._document.viewport
        return view.first_ns + (x - self.head_px) / max(self.wide() - self.head_px, 1) * view.span_ns

    # Painting ------------------------------------------------------------------------------------------------

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = self.own_painter()
        self.paint(painter)
        painter.end()

    def paint(self, painter: QPainter) -> None:
        """Draw the whole trace and the view in it with a painter of own pixels, whose clip is left behind."""
        pal = palette(self._session.dark)
        if self._ground is None or self._ground.devicePixelRatio() != self.ratio():
            self._ground = self._make_ground(pal)
        painter.drawPixmap(QPointF(0, 0), self._ground)
        # A stretch may begin before the trace does, and must not cover the heading.
        painter.setClipRect(QRectF(self.head_px, 0, self.wide() - self.head_px, self.high()))
        self._hits(painter, pal)
        self._ticks(painter, self._evidence_columns(), pal.accent)
        for mark in self._document.marks:
            painter.fillRect(QRectF(self._x(mark.start_ns), 1, 2, self.high() - 3), pal.good)
        chosen = self._document.selected_range
        if chosen is not None:
            soft = QColor(pal.accent)
            soft.setAlpha(60)
            x = self._x(chosen.start_ns)
            painter.fillRect(QRectF(x, 1, max(self._x(chosen.end_ns) - x, 2), self.high() - 3), soft)
        self._view_box(painter, pal)

    def _view_box(self, painter: QPainter, pal: Palette) -> None:
        view = self._document.viewport
        x0, x1 = max(self._x(view.start_ns), self.head_px), min(self._x(view.end_ns), self.wide() - 1.0)
        if x1 - x0 < 6:
            middle = (x0 + x1) / 2
            x0, x1 = middle - 3, middle + 3
        veil = QColor(pal.strip)
        veil.setAlpha(130 if pal.dark else 150)
        painter.fillRect(QRectF(self.head_px, 1, x0 - self.head_px, self.high() - 2), veil)
        painter.fillRect(QRectF(x1, 1, self.wide() - x1, self.high() - 2), veil)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.setPen(QPen(pal.text, 1.4))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(QRectF(x0 + 0.5, 1.5, x1 - x0 - 1, self.high() - 4), 3, 3)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)

    def _hits(self, painter: QPainter, pal: Palette) -> None:
        hits, view = self._document.search_hits, self._document.viewport
        if len(hits):
            columns = hit_lanes(self._document.trace, hits).pixels(
                view.first_ns, view.span_ns, self.wide() - self.head_px
            )
            self._ticks(painter, columns, pal.warn)

    def _evidence_columns(self) -> np.ndarray:
        if not self._document.highlighted:
            return np.zeros(0)
        ids = np.asarray(self._document.highlighted, np.int64)
        ids = ids[(ids >= 0) & (ids < len(self._document.trace.slices))]
        view, lanes = self._document.viewport, self.wide() - self.head_px
        return np.unique((self._document.trace.slices.start_ns[ids] - view.first_ns) / view.span_ns * lanes // 1)

    def _ticks(self, painter: QPainter, columns: np.ndarray, colour: QColor) -> None:
        if not len(columns):
            return
        n = len(columns)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        draw_rects(
            painter, np.column_stack((columns + self.head_px, np.full(n, 1.0), np.full(n, 2.0), np.full(n, 6.0)))
        )

    def _make_ground(self, pal: Palette) -> QPixmap:
        ratio = self.ratio()
        pixmap = QPixmap(QSize(self.wide(), self.high()) * ratio)
        pixmap.setDevicePixelRatio(ratio)
        pixmap.fill(pal.strip)
        painter = QPainter(pixmap)
        painter.setFont(header_font(small=True))
        draw_text(painter, QRectF(20, 0, self.head_px - 24, self.high() - 2), self.tr("Whole trace"), pal.muted)
        columns = max(self.wide() - self.head_px, 1)
        view = self._document.viewport
        edges = np.linspace(view.first_ns, view.last_ns, columns + 1).astype(np.int64)
        cpu, device = self._busiest(), self._device_lanes()
        middle = self.high() * (0.5 if device else 1.0)
        if cpu is not None:
            colour = fill(SliceKind.CPU_OP, 4, pal.dark)
            self._columns(painter, self._share(cpu, edges), 3.0, middle - 2, blend(colour, pal.strip, 0.8))
        for i, lane in enumerate(device):
            each = (self.high() - middle - 3) / len(device)
            colour = blend(fill(SliceKind.KERNEL, 4, pal.dark), pal.strip, 0.85)
            self._columns(painter, self._share(lane, edges), middle + i * each, middle + (i + 1) * each - 1, colour)
        analysis = self._document.analysis
        if analysis is not None and len(analysis.figures.syncs):
            lane, _ = sync_lane(analysis.figures)
            share = self._share(lane, edges)
            self._columns(painter, np.where(share > 0, np.maximum(share, 0.35), 0), 3.0, middle - 2, pal.wait, 0.55)
        painter.setPen(QPen(pal.line, 1))
        painter.drawLine(QPointF(0, self.high() - 0.5), QPointF(self.wide(), self.high() - 0.5))
        painter.end()
        return pixmap

    def _share(self, lane: Lane, edges_ns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Share of each bin that a lane covers, from a sum that is taken once for windows of all widths."""
        if not len(lane):
            return np.zeros(len(edges_ns) - 1)
        view = self._document.viewport
        times = np.linspace(view.first_ns, view.last_ns, SUMS + 1).astype(np.int64)
        if lane not in self._covered:
            self._covered[lane] = covered_before(lane, times)
        return share_between(np.interp(edges_ns, times, self._covered[lane]), edges_ns)

    def _columns(
        self, painter: QPainter, share: np.ndarray, top: float, bottom: float, colour: QColor, opacity: float = 1.0
    ) -> None:
        height = np.where(share > 0, np.maximum(np.round(share * (bottom - top)), 1.0), 0.0)
        at = np.flatnonzero(np.append(True, height[1:] != height[:-1]))  # level stretches are one rectangle
        width = np.append(at[1:], len(height)) - at
        rects = np.column_stack((at + float(self.head_px), bottom - height[at], width, height[at]))[height[at] > 0]
        painter.setOpacity(opacity)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        draw_rects(painter, rects)
        painter.setOpacity(1.0)

    def _busiest(self) -> Lane | None:
        """Outermost lane of the operators of the main thread, else of the thread with most of them."""
        tracks = self._document.trace.tracks
        for kind in (TrackKind.CPU_OPS, TrackKind.CPU_RANGES, TrackKind.CPU_PYTHON, TrackKind.OTHER):
            mine = np.flatnonzero(tracks.kind == kind)
            counts = tracks.end_id[mine] - tracks.first_id[mine]
            if counts.any():
                return self._index.lane(int(mine[counts.argmax()]), 0)
        return None

    def _device_lanes(self) -> list[Lane]:
        return [self._counters.busy(device) for device in self._counters.working[:4]]

    # Pointer -------------------------------------------------------------------------------------------------

    def _border(self, x: float) -> str:
        view = self._document.viewport
        x0, x1 = self._x(view.start_ns), self._x(view.end_ns)
        if x1 - x0 > 4 * EDGE_PX:
            if abs(x - x0) <= EDGE_PX:
                return "start"
            if abs(x - x1) <= EDGE_PX:
                return "end"
        return "view" if x0 - 3 <= x <= x1 + 3 else ""

    def mousePressEvent(self, event: QMouseEvent) -> None:
        x = self.inner(event.position()).x()
        if event.button() != Qt.MouseButton.LeftButton or x < self.head_px:
            return
        view = self._document.viewport
        view.remember()
        self._grab = self._border(x)
        if not self._grab:
            half = view.width_ns / 2
            self._document.zoom_to(self._time(x) - half, self._time(x) + half, remember=False)
            self._grab = "view"
        self._grab_ns = self._time(x) - view.start_ns

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        x, view = self.inner(event.position()).x(), self._document.viewport
        if not self._grab:
            shape = {"start": Qt.CursorShape.SizeHorCursor, "end": Qt.CursorShape.SizeHorCursor}
            self.setCursor(shape.get(self._border(x), Qt.CursorShape.ArrowCursor))
            return
        time = self._time(x)
        if self._grab == "view":
            start = time - self._grab_ns
            self._document.zoom_to(start, start + view.width_ns, remember=False)
        elif self._grab == "start" and time < view.end_ns:
            self._document.zoom_to(time, view.end_ns, remember=False)
        elif self._grab == "end" and time > view.start_ns:
            self._document.zoom_to(view.start_ns, time, remember=False)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._grab = ""

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self._document.viewport.fit(remember=True)
        self._document.viewChanged.emit()
