"""Waits of the CPU: hatched bands on the blocked calls, ticks on the sync lane."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFontMetrics, QPainter, QPen, QPixmap

from core.kernel_names import short_op_name
from gui import text
from gui.timeline.frame import Frame
from gui.timeline.kept import fold_kept, in_view
from gui.timeline.labels import draw_text, slice_font
from gui.timeline.palette import Palette, blend
from gui.timeline.rects import draw_rects
from gui.timeline.row import RowKind
from gui.timeline.waits import HATCH_FROM_PX, LABEL_FROM_PX, sync_lane


@lru_cache(maxsize=8)
def hatch(colour: str, ground: str, dpr: float) -> QBrush:
    """Brush of diagonal stripes, 8 px apart."""
    size = round(8 * dpr)
    pixmap = QPixmap(size, size)
    pixmap.fill(QColor(ground))
    pixmap.setDevicePixelRatio(dpr)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor(colour), 2.4))
    for shift in (-8, 0, 8):
        painter.drawLine(QLineF(shift - 1, 9, shift + 9, -1))
    painter.end()
    return QBrush(pixmap)


def wait_brush(palette: Palette, dpr: float) -> QBrush:
    """Hatching of a wait."""
    ground = blend(palette.wait, palette.lanes, 0.34 if palette.dark else 0.22)
    return hatch(palette.wait.name(), ground.name(), dpr)


def paint(painter: QPainter, frame: Frame) -> None:
    """Draw the sync lane and the bands."""
    if frame.figures is None or not len(frame.figures.syncs):
        return
    _paint_lane(painter, frame)
    _paint_bands(painter, frame)


def _paint_lane(painter: QPainter, frame: Frame) -> None:
    row = frame.layout.by_key.get("syncs")
    if row is None or row.kind is not RowKind.SYNCS or not frame.shows(row):
        return
    assert frame.figures is not None
    lane, waited = sync_lane(frame.figures)
    boxes = fold_kept(lane, waited, frame)
    seen, x0, width = in_view(boxes, frame, min_px=2.0)
    if not len(seen):
        return
    y, height = frame.row_y(row) + 3.0, row.height - 6.0
    rects = np.column_stack((x0, np.full(len(x0), y), width, np.full(len(x0), height)))
    red = waited[boxes.slice_id[seen]] > 0
    _fill(painter, frame, rects[~red], frame.palette.grey)
    wide = red & (width >= HATCH_FROM_PX)
    _fill(painter, frame, rects[red & ~wide], frame.palette.wait)
    for x, top, w, h in rects[wide].tolist():
        _band(painter, frame, QRectF(x, top, w, h))


def _fill(painter: QPainter, frame: Frame, rects: NDArray[np.float64], colour: QColor) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    draw_rects(painter, rects)


def _band(painter: QPainter, frame: Frame, rect: QRectF) -> None:
    painter.save()  # Qt 6.11: after a brush with a picture, static texts of this painter lose the scale of the screen
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(wait_brush(frame.palette, frame.dpr))
    painter.setBrushOrigin(rect.topLeft())
    painter.drawRect(rect)
    painter.restore()


def _paint_bands(painter: QPainter, frame: Frame) -> None:
    """Bands over the blocked calls: plain and batched where narrow, hatched where wide."""
    assert frame.figures is not None
    syncs = frame.figures.syncs
    lane, _ = sync_lane(frame.figures)
    lo, hi = lane.window(frame.start_ns, frame.end_ns)
    ids = lane.ids[lo:hi]
    ids = ids[syncs.wait_ns[ids] > 0]
    drawn = [row.track_id for row in frame.visible_rows() if row.kind is RowKind.SLICES]  # of hundreds of ranks, some
    ids = ids[np.isin(frame.trace.slices.track_id[syncs.slice_id[ids]], drawn)]
    if not len(ids):
        return
    x0 = frame.x(syncs.wait_start_ns[ids])
    width = syncs.wait_ns[ids] / frame.ns_per_px
    narrow = np.flatnonzero(width < HATCH_FROM_PX)
    _narrow_bands(painter, frame, syncs.slice_id[ids[narrow]], x0[narrow], np.maximum(width[narrow], 1.0))
    wide = np.flatnonzero(width >= HATCH_FROM_PX)
    for i in wide.tolist():
        place = frame.place_of(int(syncs.slice_id[ids[i]]))
        if place is None:
            continue
        left, right = max(float(x0[i]), frame.left_px - 2.0), min(float(x0[i] + width[i]), frame.width_px + 2.0)
        if right <= left:
            continue
        band = QRectF(left, place[1], right - left, frame.slice_px)
        _band(painter, frame, band)
        if band.width() >= LABEL_FROM_PX:
            _label(painter, frame, band, int(syncs.slice_id[ids[i]]), int(syncs.wait_ns[ids[i]]))


def _label(painter: QPainter, frame: Frame, band: QRectF, slice_id: int, wait_ns: int) -> None:
    """Name of the call and its wait, on a ground that keeps it readable over the stripes."""
    painter.setFont(slice_font())
    left = max(band.left(), frame.left_px) + 3
    room = band.right() - left - 3
    words = label_words(painter.fontMetrics(), short_op_name(frame.trace.name(slice_id)), wait_ns, room - 6)
    width = min(painter.fontMetrics().horizontalAdvance(words) + 10, room)
    ground = blend(frame.palette.wait, frame.palette.lanes, 0.3 if frame.palette.dark else 0.16)
    painter.fillRect(QRectF(left, band.top() + 1, width, band.height() - 2), ground)
    draw_text(painter, QRectF(left + 4, band.top(), width - 6, band.height()), words, frame.palette.label)


def label_words(metrics: QFontMetrics, name: str, wait_ns: int, room_px: float) -> str:
    """Name of a call and its wait, or the name alone where half a number would be left of the wait."""
    words = f"{name} · {text.duration(wait_ns)}"
    return words if metrics.horizontalAdvance(words) <= room_px else name


def _narrow_bands(painter: QPainter, frame: Frame, slices: NDArray[Any], x: NDArray[Any], width: NDArray[Any]) -> None:
    """One rectangle per pixel column, lane and track at most."""
    if not len(slices):
        return
    tracks, depth = frame.trace.slices.track_id[slices], frame.trace.slices.depth[slices]
    pixel = np.floor(x).astype(np.int64)
    key = (tracks.astype(np.int64) * 4096 + np.minimum(depth, 4095)) * 65536 + np.clip(pixel, 0, 65535)
    _, first = np.unique(key, return_index=True)
    for track in np.unique(tracks[first]).tolist():
        row = frame.layout.row_of_track(track)
        mine = first[tracks[first] == track]
        if row is None or not frame.shows(row):
            continue
        lanes = {
            int(d): frame.layout.lane_position(row, int(slices[mine[depth[mine] == d][0]])) for d in set(depth[mine])
        }
        position = np.array([lanes[int(d)] for d in depth[mine]], float)
        mine, position = mine[position >= 0], position[position >= 0]
        y = frame.row_y(row) + float(frame.pad_px) + position * frame.lane_px
        rects = np.column_stack((np.floor(x[mine]), y, width[mine], np.full(len(mine), float(frame.slice_px))))
        _fill(painter, frame, rects, frame.palette.wait)
