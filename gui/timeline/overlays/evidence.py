"""Slices that a suggestion points at."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPainter, QPen

from gui.timeline.frame import Frame
from gui.timeline.rects import draw_rects

OUTLINES_AT_MOST = 400  # outlined one by one; beyond, and where narrow, filled


def paint(painter: QPainter, frame: Frame) -> None:
    """Outline the evidence that is in view."""
    _paint_ids(painter, frame, frame.document.highlighted, frame.palette.accent)


def _paint_ids(painter: QPainter, frame: Frame, chosen: tuple[int, ...], colour: QColor) -> None:
    if not chosen:
        return
    ids = np.asarray(chosen, np.int64)
    slices = frame.trace.slices
    ids = ids[(ids >= 0) & (ids < len(slices))]
    ids = ids[(slices.start_ns[ids] < frame.end_ns) & (frame.trace.end_ns[ids] >= frame.start_ns)]
    if not len(ids):
        return
    if len(ids) > OUTLINES_AT_MOST:
        _fill_many(painter, frame, ids, colour)
        return
    soft = QColor(colour)
    soft.setAlpha(40)
    painter.setBrush(soft)
    painter.setPen(QPen(colour, 1.5))
    for slice_id in ids.tolist():
        rect = frame.rect_of(slice_id)
        if rect is not None:
            painter.drawRect(rect.adjusted(-0.5, -0.5, 0.5, 0.5))


def _fill_many(painter: QPainter, frame: Frame, ids: np.ndarray, colour: QColor) -> None:
    """Underline each pixel column once: thousands of slices at the price of the pixels."""
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    tracks = frame.trace.slices.track_id[ids]
    for track in np.unique(tracks).tolist():
        row = frame.layout.row_of_track(track)
        if row is None or not frame.shows(row):
            continue
        mine = ids[tracks == track]
        depth = frame.trace.slices.depth[mine]
        x0 = np.maximum(frame.x(frame.trace.slices.start_ns[mine]), frame.left_px)
        width = np.maximum(np.minimum(frame.x(frame.trace.end_ns[mine]), frame.width_px) - x0, 2.0)
        _, first = np.unique(depth.astype(np.int64) * 65536 + x0.astype(np.int64), return_index=True)
        shown = [i for i in first.tolist() if frame.layout.lane_position(row, int(mine[i])) >= 0]
        position = np.array([frame.layout.lane_position(row, int(mine[i])) for i in shown], float)
        y = frame.row_y(row) + frame.pad_px + position * frame.lane_px + frame.slice_px - 3
        keep = y > (0 if row.pinned else frame.layout.pinned_px)
        rects = np.column_stack((x0[shown], y, width[shown], np.full(len(shown), 3.0)))
        draw_rects(painter, rects[keep])
