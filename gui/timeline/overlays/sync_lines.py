"""Lines from the end of a wait to the end of the device work that released it."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QPainter, QPen

from gui.timeline import navigation
from gui.timeline.frame import Frame
from gui.timeline.waits import sync_lane

FROM_PX = 14  # narrower waits get their line only when selected or under the pointer
AT_MOST = 16  # with more wide waits in view, too


def paint(painter: QPainter, frame: Frame) -> None:
    """Draw the lines of the wide waits in view, of the selected and of the hovered one."""
    if frame.figures is None or not len(frame.figures.syncs):
        return
    syncs = frame.figures.syncs
    lane, _ = sync_lane(frame.figures)
    lo, hi = lane.window(frame.start_ns, frame.end_ns)
    ids = lane.ids[lo:hi]
    ids = ids[syncs.wait_ns[ids] / frame.ns_per_px >= FROM_PX]
    chosen = set(ids.tolist()) if len(ids) <= AT_MOST else set()
    for slice_id in (frame.document.selected_slice, frame.hovered):
        chosen.add(navigation.sync_of_slice(frame.figures, slice_id))
    for sync in sorted(chosen - {-1}):
        end = int(syncs.wait_start_ns[sync] + syncs.wait_ns[sync])
        strong = int(syncs.slice_id[sync]) in (frame.document.selected_slice, frame.hovered)
        _line(painter, frame, int(syncs.slice_id[sync]), end, int(syncs.waited_id[sync]), strong or len(ids) <= 6)


def _line(painter: QPainter, frame: Frame, call: int, end_ns: int, waited: int, strong: bool) -> None:
    source = frame.rect_of(call) if waited >= 0 else None
    place = frame.place_of(waited) if waited >= 0 else None
    if source is None or place is None:
        return
    x, at = float(frame.x(float(end_ns))), float(frame.x(float(frame.trace.end_ns[waited])))
    if max(at, x) < frame.left_px or min(at, x) > frame.width_px:
        return
    row, top = place
    below = top > source.bottom()
    y = top if below else top + frame.slice_px
    if not row.pinned:
        y = int(np.clip(y, frame.layout.pinned_px, frame.height_px + 50))
    painter.setOpacity(1.0 if strong else 0.55)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    painter.setPen(QPen(frame.palette.wait, 1.5, Qt.PenStyle.DashLine))
    painter.drawLine(QPointF(x, source.bottom() if below else source.top()), QPointF(at, y))
    painter.setBrush(frame.palette.wait)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.drawEllipse(QPointF(at, y), 2.5, 2.5)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.setOpacity(1.0)
