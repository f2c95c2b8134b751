"""Hits of a search, underlined; the current one is the selection."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter

from gui.timeline.frame import Frame
from gui.timeline.layout import LANE_PX, PAD_PX, SLICE_PX
from gui.timeline.rects import draw_rects


def paint(painter: QPainter, frame: Frame) -> None:
    """Underline the hits in view, each pixel column of a lane once."""
    hits = frame.document.search_hits
    if not len(hits):
        return
    slices = frame.trace.slices
    starts = slices.start_ns[hits]
    inside = hits[(starts < frame.end_ns) & (frame.trace.end_ns[hits] >= frame.start_ns)]
    if not len(inside):
        return
    tracks = slices.track_id[inside]
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(frame.palette.warn)
    for row in frame.visible_rows():
        mine = inside[tracks == row.track_id] if row.track_id >= 0 else inside[:0]
        if not len(mine):
            continue
        x0 = np.maximum(frame.x(slices.start_ns[mine]), frame.left_px)
        width = np.maximum(np.minimum(frame.x(frame.trace.end_ns[mine]), frame.width_px) - x0 - 1, 2.0)
        depth = slices.depth[mine].astype(np.int64)
        _, first = np.unique(depth * 65536 + np.clip(x0, 0, 65535).astype(np.int64), return_index=True)
        lanes = {d: frame.layout.lane_position(row, int(mine[depth == d][0])) for d in np.unique(depth[first]).tolist()}
        position = np.array([lanes[d] for d in depth[first].tolist()], float)
        y = frame.row_y(row) + PAD_PX + position * LANE_PX + SLICE_PX - 3
        keep = (position >= 0) & (y > (0 if row.pinned else frame.layout.pinned_px))
        rects = np.column_stack((x0[first], y, width[first], np.full(len(first), 3.0)))
        draw_rects(painter, rects[keep])
