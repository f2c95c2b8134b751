"""The user's marks: a line through all rows, a band where a mark is a stretch of time."""

from __future__ import annotations

from PySide6.QtCore import QLineF, QRectF
from PySide6.QtGui import QColor, QPainter, QPen

from gui.timeline.frame import Frame
from gui.timeline.labels import draw_text, slice_font


def paint(painter: QPainter, frame: Frame) -> None:
    """Draw the marks in view."""
    painter.setFont(slice_font())
    for mark in frame.document.marks:
        x0, x1 = float(frame.x(float(mark.start_ns))), float(frame.x(float(mark.end_ns)))
        if x1 < frame.left_px or x0 > frame.width_px:
            continue
        colour = frame.palette.good
        if mark.end_ns > mark.start_ns:
            soft = QColor(colour)
            soft.setAlpha(28)
            left = max(x0, float(frame.left_px))
            painter.fillRect(QRectF(left, 0, min(x1, frame.width_px) - left, frame.height_px), soft)
        painter.setPen(QPen(colour, 1))
        for x in {x0, x1}:
            if frame.left_px <= x <= frame.width_px:
                painter.drawLine(QLineF(x, 0, x, frame.height_px))
        if mark.text and x0 >= frame.left_px:
            draw_text(painter, QRectF(x0 + 4, frame.height_px - 18, 200, 16), mark.text, colour)
