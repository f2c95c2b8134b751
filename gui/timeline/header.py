"""The column at the left: names of rows, expand marks, pins."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPolygonF

from gui.timeline.frame import Frame
from gui.timeline.labels import draw_text
from gui.timeline.rects import draw_rects
from gui.timeline.row import SLICE_PX, Row, RowKind

CHEVRON_PX = 14
INDENT_PX = 10
TEXT_PX = 16  # one line of text


@lru_cache(maxsize=8)
def header_font(bold: bool = False, small: bool = False) -> QFont:
    """Font of the header column."""
    font = QFont()
    font.setPixelSize(11 if small else 12)
    font.setWeight(QFont.Weight.DemiBold if bold else QFont.Weight.Normal)
    return font


def chevron_right_px(row: Row) -> int:
    """Clicks left of this x expand or collapse a row."""
    return 6 + row.indent * INDENT_PX + CHEVRON_PX + 4


def stuck(frame: Frame, row: Row) -> Row:
    """A row as its heading takes it: what is scrolled away above is left out, so that its name stays in view."""
    hidden = frame.layout.pinned_px - frame.row_y(row)
    if row.pinned or row.kind is RowKind.GROUP or not 0 < hidden < row.height:
        return row
    return replace(row, y=row.y + hidden, height=row.height - hidden)


def paint_header(painter: QPainter, frame: Frame, row: Row, same_as_above: bool, note: str) -> None:
    """Draw one row's heading: dimmed where the row has nothing in view.

    ``same_as_above``: the thread's name already stands in the row above.
    """
    pal = frame.palette
    y, height = frame.row_y(row), row.height
    left = 6 + row.indent * INDENT_PX
    down = (frame.slice_px - SLICE_PX) // 2 if row.kind is RowKind.SLICES else 0  # level with the first lane's label
    if row.can_collapse:
        _chevron(painter, pal.muted, left + 1, y + min(height / 2, 12) + down, row.expanded)
    at = left + CHEVRON_PX
    width = frame.left_px - at - 8
    if row.kind is RowKind.GROUP:
        painter.setFont(header_font(bold=True))
        title_px = min(painter.fontMetrics().horizontalAdvance(row.title) + 8, width)
        draw_text(painter, QRectF(at, y, title_px, height), row.title, pal.text)
        painter.setFont(header_font(small=True))
        if width - title_px > 24:
            draw_text(painter, QRectF(at + title_px, y, width - title_px, height), note or row.subtitle, pal.dim)
        return
    top = y + (3 + down if height >= 23 else (height - TEXT_PX) / 2)
    first, second = (row.subtitle, note) if same_as_above and row.subtitle else (row.title, note or row.subtitle)
    strong = row.kind in (RowKind.STEPS, RowKind.SYNCS, RowKind.COUNTER)
    painter.setFont(header_font(bold=strong))
    colour = pal.muted if same_as_above else pal.text
    if row.key in frame.layout.empty_in_view:
        colour = pal.dim
    two_lines = height >= 34 + down and bool(second)
    first_px = width if two_lines or not second else min(painter.fontMetrics().horizontalAdvance(first) + 6, width)
    draw_text(painter, QRectF(at, top, first_px, TEXT_PX), first, colour)
    painter.setFont(header_font(small=True))
    if two_lines:
        draw_text(painter, QRectF(at, top + TEXT_PX, width, TEXT_PX - 1), second, pal.dim)
    elif second and width - first_px > 20:
        draw_text(painter, QRectF(at + first_px, top, width - first_px, TEXT_PX), second, pal.dim)
    if row.communication:
        painter.fillRect(QRectF(frame.left_px - 5, y + 4, 3, height - 8), QColor("#a0568f"))
    if row.kind is RowKind.SLICES and row.expanded and row.lanes > row.shown_lanes:
        _lane_scroll(painter, frame, row)


def paint_note(painter: QPainter, frame: Frame, row: Row, note: str) -> None:
    """Second line of a row's heading that changes with the view, so that it is no part of the kept picture."""
    if row.height < 34:
        return
    at = 6 + row.indent * INDENT_PX + CHEVRON_PX
    painter.setFont(header_font(small=True))
    rect = QRectF(at, frame.row_y(row) + 3 + TEXT_PX, frame.left_px - at - 8, TEXT_PX - 1)
    draw_text(painter, rect, note, frame.palette.dim)


def _chevron(painter: QPainter, colour: QColor, x: float, y: float, down: bool) -> None:
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    if down:
        points = [QPointF(x, y - 2), QPointF(x + 8, y - 2), QPointF(x + 4, y + 3)]
    else:
        points = [QPointF(x + 1.5, y - 4), QPointF(x + 6.5, y), QPointF(x + 1.5, y + 4)]
    painter.drawPolygon(QPolygonF(points))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)


def _lane_scroll(painter: QPainter, frame: Frame, row: Row) -> None:
    """Bar at the column's right edge: which of a deep row's lanes are shown."""
    y, height = frame.row_y(row) + 3, row.height - 6
    painter.fillRect(QRectF(frame.left_px - 6, y, 3, height), frame.palette.faint)
    length = max(height * row.shown_lanes / row.lanes, 10.0)
    offset = (height - length) * row.first_lane / max(row.lanes - row.shown_lanes, 1)
    painter.fillRect(QRectF(frame.left_px - 6, y + offset, 3, length), frame.palette.dim)


def paint_grounds(painter: QPainter, frame: Frame, rows: list[Row]) -> None:
    """Grounds and borders of rows, across header and lanes: one call per colour."""
    pal = frame.palette
    bands: dict[str, list[tuple[float, float, float, float]]] = {"header": [], "line": [], "faint": [], "accent": []}
    for row in rows:
        y, width = frame.row_y(row), frame.width_px
        if row.kind in (RowKind.GROUP, RowKind.STEPS):
            bands["header"].append((0, y, width, row.height))
        if row.kind is RowKind.GROUP:
            bands["line"].append((0, y, width, 1))
        else:
            bands["faint"].append((frame.left_px, y + row.height - 1, width - frame.left_px, 1))
        if row.pinned and row.kind is RowKind.SLICES:
            bands["accent"].append((0, y + 2, 2, row.height - 4))
    painter.setPen(Qt.PenStyle.NoPen)
    for name, rects in bands.items():
        if rects:
            painter.setBrush(getattr(pal, name))
            draw_rects(painter, np.array(rects, np.float64))
