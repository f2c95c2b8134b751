"""Idle stretches of each device, shaded by their cause behind its busiest stream."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
from PySide6.QtCore import QCoreApplication, QRectF
from PySide6.QtGui import QColor, QPainter

from core.kinds import TrackKind
from core.lod import LEVELS
from gui import text
from gui.timeline.frame import Frame
from gui.timeline.kept import fold_kept, in_view
from gui.timeline.labels import draw_text, slice_font
from gui.timeline.palette import blend, gap_colour, palette
from gui.timeline.rects import RectBatch
from gui.timeline.row import Row, RowKind
from gui.timeline.waits import gap_lane

TEXT_FROM_PX = 110


def paint(painter: QPainter, frame: Frame) -> None:
    """Shade the gaps of each device behind its busiest visible stream: they are the device's, not a stream's."""
    if frame.figures is None or not len(frame.figures.gaps):
        return
    busiest: dict[int, Row] = {}
    tracks = frame.trace.tracks
    for row in frame.visible_rows():
        if row.kind is RowKind.SLICES and row.track_kind == TrackKind.DEVICE_STREAM and not row.communication:
            best = busiest.get(row.device)
            count = int(tracks.end_id[row.track_id] - tracks.first_id[row.track_id])
            if best is None or count > int(tracks.end_id[best.track_id] - tracks.first_id[best.track_id]):
                busiest[row.device] = row
    for row in busiest.values():
        _paint_row(painter, frame, row)


def _paint_row(painter: QPainter, frame: Frame, row: Row) -> None:
    assert frame.figures is not None
    lane = gap_lane(frame.figures, row.device)
    causes = frame.figures.gaps.cause
    boxes = fold_kept(lane, causes, frame)
    seen, x0, width = in_view(boxes, frame, beyond_px=0.0)
    if not len(seen):
        return
    shown = boxes.slice_id[seen]
    y = np.full(len(x0), float(frame.row_y(row) + frame.pad_px - 1))
    height = np.full(len(x0), float(row.height - 2 * frame.pad_px + 1))
    batch = RectBatch()
    batch.add(x0, y, width, height, causes[shown].astype(np.int32) * (LEVELS + 1) + boxes.level[seen])
    batch.draw(painter, partial(_shade, dark=frame.palette.dark))
    single = int(np.searchsorted(seen, boxes.single))
    _name(painter, frame, shown[:single], np.column_stack((x0, y, width, height))[:single])


@lru_cache(maxsize=256)
def _shade(code: int, dark: bool) -> QColor:
    colour = gap_colour(code // (LEVELS + 1), dark)
    return blend(colour, palette(dark).lanes, (code % (LEVELS + 1)) / LEVELS)


def _name(painter: QPainter, frame: Frame, gap_ids: np.ndarray, rects: np.ndarray) -> None:
    assert frame.figures is not None
    gaps = frame.figures.gaps
    painter.setFont(slice_font())
    colour = QColor(frame.palette.muted)
    for i in np.flatnonzero(rects[:, 2] >= TEXT_FROM_PX).tolist():
        gap = int(gap_ids[i])
        words = text.gap_cause(int(gaps.cause[gap]))
        length = text.duration(int(gaps.end_ns[gap] - gaps.start_ns[gap]))
        rect = QRectF(rects[i, 0] + 6, rects[i, 1], rects[i, 2] - 12, min(rects[i, 3], frame.slice_px + 2.0))
        draw_text(painter, rect, _idle(length, words), colour)


def _idle(length: str, cause: str) -> str:
    return QCoreApplication.translate("timeline", "idle {length}: {cause}").format(length=length, cause=cause)
