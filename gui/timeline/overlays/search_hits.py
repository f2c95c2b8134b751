"""Hits of a search, underlined; the current one is the selection."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter

from gui.timeline.frame import Frame
from gui.timeline.hits import HitLanes, hit_lanes
from gui.timeline.kept import fold_kept, in_view
from gui.timeline.rects import draw_rects
from gui.timeline.row import Row, RowKind

UNDERLINE_PX = 3


def paint(painter: QPainter, frame: Frame) -> None:
    """Underline the hits in view."""
    hits = frame.document.search_hits
    if not len(hits):
        return
    lanes = hit_lanes(frame.trace, hits)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(frame.palette.warn)
    for row in frame.visible_rows():
        if row.kind is RowKind.SLICES:
            _paint_row(painter, frame, row, lanes)


def _paint_row(painter: QPainter, frame: Frame, row: Row, lanes: HitLanes) -> None:
    collapsed_python = row.is_python and not row.expanded
    first = row.skip_lanes + min(row.first_lane, max(0, row.lanes - row.shown_lanes))
    for number in range(0 if collapsed_python else row.shown_lanes):
        y = frame.row_y(row) + frame.pad_px + number * frame.lane_px + frame.slice_px - UNDERLINE_PX
        if y < (0 if row.pinned else frame.layout.pinned_px) or y > frame.height_px:
            continue
        boxes = fold_kept(lanes.lane(row.track_id, first + number), frame.no_looks, frame)
        _, x0, width = in_view(boxes, frame)
        width = np.maximum(width - 1, 2.0)
        n = len(x0)
        draw_rects(painter, np.column_stack((x0, np.full(n, float(y)), width, np.full(n, float(UNDERLINE_PX)))))
