"""The selected slice, the one under the pointer, and the selected stretch of time."""

from __future__ import annotations

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from core.kinds import SliceKind
from gui import text
from gui.timeline.frame import Frame
from gui.timeline.labels import slice_font

ENCLOSING = frozenset((SliceKind.RANGE, SliceKind.STEP, SliceKind.PYTHON))
EXTENT_FROM_PX = 6


def paint(painter: QPainter, frame: Frame) -> None:
    """Draw range, pointer line, hovered and selected slice."""
    _paint_range(painter, frame)
    if frame.hover_x > frame.left_px:
        line = QColor(frame.palette.muted)
        line.setAlpha(70)
        painter.setPen(QPen(line, 1))
        painter.drawLine(QLineF(frame.hover_x + 0.5, 0, frame.hover_x + 0.5, frame.height_px))
    if 0 <= frame.hovered < len(frame.trace.slices):
        _paint_extent(painter, frame)
    if 0 <= frame.hovered < len(frame.trace.slices) and frame.hovered != frame.document.selected_slice:
        rect = frame.rect_of(frame.hovered)
        if rect is not None:
            glow = QColor(frame.palette.outline)
            glow.setAlpha(46)
            painter.fillRect(rect, glow)
    selected = frame.document.selected_slice
    if 0 <= selected < len(frame.trace.slices):
        rect = frame.rect_of(selected)
        if rect is not None:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(frame.palette.lanes, 4))
            painter.drawRect(rect)
            painter.setPen(QPen(frame.palette.outline, 2))
            painter.drawRect(rect)


def _paint_extent(painter: QPainter, frame: Frame) -> None:
    """Edges of the range, module or step under the pointer through all rows: what lies in it is seen in each."""
    if int(frame.trace.slices.kind[frame.hovered]) not in ENCLOSING:
        return
    start = float(frame.x(float(frame.trace.slices.start_ns[frame.hovered])))
    end = float(frame.x(float(frame.trace.end_ns[frame.hovered])))
    if end - start < EXTENT_FROM_PX:
        return
    colour = QColor(frame.palette.muted)
    colour.setAlpha(150)
    painter.setPen(QPen(colour, 1, Qt.PenStyle.DotLine))
    for x in (start, end):
        if frame.left_px <= x < frame.width_px:
            painter.drawLine(QLineF(round(x) + 0.5, 0, round(x) + 0.5, frame.height_px))


def _shade_other_rows(painter: QPainter, frame: Frame, tracks: set[int], left: float, right: float) -> None:
    """Shade the rows that a stretch limited to some tracks leaves out."""
    by_key, pinned_px = frame.layout.by_key, frame.layout.pinned_px
    for row in frame.visible_rows():
        members = [by_key[k].track_id for k in row.members] if not row.expanded else []
        if row.track_id in tracks or tracks.intersection(members):
            continue
        top = float(frame.row_y(row))
        bottom = top + row.height
        top = top if row.pinned else max(top, float(pinned_px))
        if bottom > top:
            painter.fillRect(QRectF(left, top, right - left, bottom - top), frame.palette.shade)


def _paint_range(painter: QPainter, frame: Frame) -> None:
    chosen = frame.document.selected_range
    if chosen is None:
        return
    x0, x1 = float(frame.x(float(chosen.start_ns))), float(frame.x(float(chosen.end_ns)))
    left = min(max(x0, frame.left_px), frame.width_px)
    right = min(max(x1, frame.left_px), frame.width_px)
    painter.fillRect(QRectF(frame.left_px, 0, left - frame.left_px, frame.height_px), frame.palette.shade)
    painter.fillRect(QRectF(right, 0, frame.width_px - right, frame.height_px), frame.palette.shade)
    if chosen.tracks:
        _shade_other_rows(painter, frame, set(chosen.tracks), left, right)
    painter.setPen(QPen(frame.palette.accent, 1))
    for x in (x0, x1):
        if frame.left_px <= x <= frame.width_px:
            painter.drawLine(QLineF(x, 0, x, frame.height_px))
    if right - left < 40:
        return
    painter.setFont(slice_font())
    words = text.duration(chosen.end_ns - chosen.start_ns)
    width = painter.fontMetrics().horizontalAdvance(words) + 12
    box = QRectF((left + right - width) / 2, frame.height_px - 22, width, 18)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(frame.palette.accent)
    painter.drawRoundedRect(box, 4, 4)
    painter.setPen(frame.palette.window)
    painter.drawText(box, int(Qt.AlignmentFlag.AlignCenter), words)
