"""Flows of the selected slice: launch to device work, forward to backward.

An end whose lane is not shown is drawn at what stands for it: its row, or the heading of its closed group.
"""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

from gui.timeline.frame import Frame
from gui.timeline.navigation import flow_pairs

CURVE_PX = 60


def paint(painter: QPainter, frame: Frame) -> None:
    """Draw the flows of the selection (all of its children's too, when asked for)."""
    selected = frame.document.selected_slice
    if not 0 <= selected < len(frame.trace.slices):
        return
    pairs, kinds = flow_pairs(frame.trace, selected, deep=frame.all_flows)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    for (source, target), launch in zip(pairs, kinds, strict=True):
        _curve(painter, frame, source, target, frame.palette.accent if launch else QColor("#b08cff"))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)


def _curve(painter: QPainter, frame: Frame, source: int, target: int, colour: QColor) -> None:
    ends = [_end(frame, source, False), _end(frame, target, True)]
    if ends[0] is None or ends[1] is None:
        return
    a, b = ends
    assert a is not None
    assert b is not None
    _leave_label(frame, source, a, b.y())
    if max(a.x(), b.x()) < frame.left_px or min(a.x(), b.x()) > frame.width_px:
        return
    bend = min(max(abs(b.x() - a.x()) / 2, 12.0), CURVE_PX)
    path = QPainterPath(a)
    path.cubicTo(QPointF(a.x() + bend, a.y()), QPointF(b.x() - bend, b.y()), b)
    painter.setPen(QPen(colour, 1.6))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPath(path)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    painter.drawEllipse(QRectF(b.x() - 3, b.y() - 3, 6, 6))


def _leave_label(frame: Frame, source: int, start: QPointF, towards_y: float) -> None:
    """Begin at the border of the slice that is towards the target: its label stays free."""
    place = frame.place_of(source)
    if place is None:
        return
    row, top = place
    border = top + frame.slice_px if towards_y > start.y() else top
    start.setY(border if row.pinned else max(border, frame.layout.pinned_px))


def _end(frame: Frame, slice_id: int, is_target: bool) -> QPointF | None:
    """Where a curve meets a slice: the launch's middle, the work's start; far ends are kept near the view."""
    place, into_px = frame.place_of(slice_id), frame.slice_px // 2
    if place is None:
        place, into_px = frame.stand_in_of(slice_id), 0
    if place is None:
        return None
    start = float(frame.trace.slices.start_ns[slice_id])
    time = start if is_target else start + float(frame.trace.slices.dur_ns[slice_id]) / 2
    x = float(np.clip(frame.x(time), -20_000.0, 20_000.0))
    row, y = place
    y += into_px
    return QPointF(x, y if row.pinned else max(y, frame.layout.pinned_px))
