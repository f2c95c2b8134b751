"""The header column: each row's heading is rendered once and put where the row is."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPen, QPixmap

from gui.timeline.frame import Frame
from gui.timeline.header import TEXT_PX, paint_grounds, paint_header, stuck
from gui.timeline.row import Row, RowKind
from gui.timeline.still import Still

PICTURES_AT_MOST = 300  # kept headings; a canvas shows some dozens


class HeaderColumn:
    """Draws the headings of the visible rows. One instance per canvas."""

    def __init__(self) -> None:
        self._pictures: dict[tuple[object, ...], QPixmap] = {}
        self._still = Still()  # the whole column

    def paint(self, painter: QPainter, frame: Frame, rows: list[Row], notes: dict[str, str]) -> None:
        """Draw the headings of rows, pinned ones first; ``notes``: what stands behind a name, by key of the row."""
        if frame.vector:
            self._column(painter, frame, rows, notes)
            return
        layout = frame.layout
        key = (layout.version, frame.scroll_px, layout.empty_in_view, frame.palette.dark, frame.left_px, *notes.items())
        size = QSize(frame.left_px, frame.height_px)
        self._still.paint(painter, key, size, frame.dpr, lambda on: self._column(on, frame, rows, notes))

    def _column(self, painter: QPainter, frame: Frame, rows: list[Row], notes: dict[str, str]) -> None:
        top = frame.layout.pinned_px
        painter.fillRect(QRectF(0, 0, frame.left_px, frame.height_px), frame.palette.header)
        above: dict[bool, Row | None] = {False: None, True: None}  # in view, by whether it is pinned
        for row in rows:
            before = above[row.pinned]
            same = before is not None and before.title == row.title and before.group == row.group
            clip = (
                QRect(0, 0, frame.left_px, top) if row.pinned else QRect(0, top, frame.left_px, frame.height_px - top)
            )
            painter.setClipRect(clip)
            seen, note = stuck(frame, row), notes.get(row.key, "")
            above[row.pinned] = row
            if seen is row:
                self._paint_row(painter, frame, row, same and row.kind is RowKind.SLICES, note)
                continue
            # Not worth keeping: its height is another one with each pixel.
            paint_grounds(painter, replace(frame, width_px=frame.left_px), [seen])
            if seen.height >= TEXT_PX:
                paint_header(painter, frame, seen, False, note)
            else:  # no room for a line: the row below says the name
                above[row.pinned] = None
        painter.setClipping(False)
        self._gaps(painter, frame, rows)
        painter.fillRect(QRectF(frame.left_px - 1, 0, 1, frame.height_px), frame.palette.line)
        if top:
            painter.fillRect(QRectF(0, top - 1, frame.left_px, 1), frame.palette.line)

    @staticmethod
    def _gaps(painter: QPainter, frame: Frame, rows: list[Row]) -> None:
        """A dashed line where rows were left out, as there may be no room for the words."""
        for row in rows if frame.layout.aside else ():
            y = frame.row_y(row)
            if frame.layout.left_out_above(row) and not row.pinned and y >= frame.layout.pinned_px:
                painter.setPen(QPen(frame.palette.accent, 2, Qt.PenStyle.DotLine))
                painter.drawLine(QPointF(4, y), QPointF(frame.left_px - 4, y))

    def _paint_row(self, painter: QPainter, frame: Frame, row: Row, same: bool, note: str) -> None:
        if frame.vector:  # texts as text
            paint_grounds(painter, replace(frame, width_px=frame.left_px), [row])
            paint_header(painter, frame, row, same, note)
            return
        key = (
            (row.kind, row.title, row.subtitle, row.height, row.indent, row.expanded, row.can_collapse, row.pinned),
            (row.communication, row.key in frame.layout.empty_in_view, row.lanes, row.shown_lanes, row.first_lane),
            (same, note, frame.dpr, frame.palette.dark, frame.left_px),
        )
        picture = self._pictures.get(key)
        if picture is None:
            if len(self._pictures) >= PICTURES_AT_MOST:
                self._pictures.clear()
            picture = self._pictures[key] = self._render(frame, row, same, note)
        painter.drawPixmap(QPointF(0, frame.row_y(row)), picture)

    @staticmethod
    def _render(frame: Frame, row: Row, same: bool, note: str) -> QPixmap:
        picture = QPixmap(QSize(frame.left_px, max(row.height, 1)) * frame.dpr)
        picture.setDevicePixelRatio(frame.dpr)
        picture.fill(frame.palette.header)
        painter = QPainter(picture)
        whole = replace(frame, width_px=frame.left_px)
        painter.translate(0, -frame.row_y(row))
        paint_grounds(painter, whole, [row])
        paint_header(painter, whole, row, same, note)
        painter.end()
        return picture
