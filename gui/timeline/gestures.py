"""Wheel, drag, click and pinch on the canvas -> moves, selections, and changes of the rows.

Over the lanes the plain wheel zooms about the pointer, with Shift (or sideways) it moves in time, with Alt it scrolls
the rows; over the header column it scrolls the lanes of a deep row, then the rows. On a touch pad two fingers move in
both directions and pinching (or Ctrl) zooms. Dragging moves the view, with Shift it selects a stretch of time: of all
tracks while it goes sideways, of the rows it goes over where it goes up or down too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPointF, Qt
from PySide6.QtGui import QInputDevice, QMouseEvent, QNativeGestureEvent, QWheelEvent

from gui.session import TimeRange
from gui.timeline.header import chevron_right_px
from gui.timeline.row import Row, RowKind
from gui.timeline.scaled import Scaled

if TYPE_CHECKING:
    from gui.timeline.view import TimelineView

CLICK_PX = 4  # a press that moves less is a click
BORDER_PX = 4  # a row's lower border, a range's borders and the edge of the headings can be taken within this
ZOOM_PER_NOTCH = 1.3
PAN_PER_NOTCH = 0.12  # of the view
SCROLL_PER_NOTCH_PX = 60
ROWS_PX = 10  # a selecting drag that goes so far up or down takes the rows it goes over


class Gestures(QObject):
    """Event filter of the canvas; holds what is being dragged."""

    def __init__(self, view: TimelineView) -> None:
        super().__init__(view)
        self._view, self._canvas, self._document = view, view.canvas, view.document
        self._press: QPointF | None = None
        self._last = QPointF()
        self._mode = ""  # "", pan, range, range-start, range-end, row, resize
        self._row: Row | None = None
        self._clicked_id: int | None = None  # what the last click was on, -1 nothing
        self._anchor_ns = 0.0
        self._over_rows = False  # the stretch being selected takes the rows that the drag goes over
        self._rows_range: tuple[int, ...] = ()  # tracks of that stretch, none: all
        self._canvas.installEventFilter(self)

    def serve(self, *bars: Scaled) -> None:
        """Let wheel, two fingers and pinching mean over the bars above the rows what they mean over the lanes."""
        for bar in bars:
            bar.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if isinstance(watched, Scaled) and watched is not self._canvas:
            return self._over_bar(watched, event)
        if kind == QEvent.Type.Wheel and isinstance(event, QWheelEvent):
            self._wheel(event)
        elif kind == QEvent.Type.NativeGesture and isinstance(event, QNativeGestureEvent):
            return self._gesture(event)
        elif isinstance(event, QMouseEvent):
            handler = {
                QEvent.Type.MouseButtonPress: self._pressed,
                QEvent.Type.MouseMove: self._moved,
                QEvent.Type.MouseButtonRelease: self._released,
                QEvent.Type.MouseButtonDblClick: self._double,
            }.get(kind)
            if handler is None:
                return False
            handler(event)
        elif kind == QEvent.Type.Leave:
            self._canvas.point(None)
            return False
        elif kind == QEvent.Type.WindowDeactivate:
            self._canvas.hush()
            return False
        else:
            return False
        return True

    # Wheel and pinch -----------------------------------------------------------------------------------------

    def _wheel(self, event: QWheelEvent) -> None:
        event.accept()
        angle, keys = event.angleDelta(), event.modifiers()
        pixels = self._canvas.inner(QPointF(event.pixelDelta()))
        position = self._canvas.inner(event.position())
        control = bool(keys & Qt.KeyboardModifier.ControlModifier)
        touch = event.device() is not None and event.device().type() == QInputDevice.DeviceType.TouchPad
        if position.x() < self._canvas.head_px and not control:
            self._scroll_header(position, angle.y() / 120 if not touch or pixels.isNull() else pixels.y() / 40)
        elif touch and not control and not pixels.isNull():
            self._view.motion.pan(-pixels.x() / max(self._canvas.frame().lanes_px, 1))
            self._canvas.set_scroll(self._canvas.scroll_px - round(pixels.y()))
        elif keys & Qt.KeyboardModifier.ShiftModifier:
            self._view.motion.pan(-(angle.y() or angle.x()) / 120 * PAN_PER_NOTCH)
        elif keys & Qt.KeyboardModifier.AltModifier:
            # Qt turns Alt + wheel sideways.
            self._canvas.set_scroll(
                self._canvas.scroll_px - round((angle.y() or angle.x()) / 120 * SCROLL_PER_NOTCH_PX)
            )
        else:
            if angle.x() and abs(angle.x()) > abs(angle.y()):
                self._view.motion.pan(-angle.x() / 120 * PAN_PER_NOTCH)
            elif angle.y():
                self._zoom(ZOOM_PER_NOTCH ** (-angle.y() / 120), position.x())

    def _over_bar(self, bar: Scaled, event: QEvent) -> bool:
        """Zoom about the time under the pointer on the axis, about the middle of the view elsewhere; move in time."""
        view = self._document.viewport
        if not isinstance(event, QWheelEvent | QNativeGestureEvent):
            return False
        about = (view.start_ns + view.end_ns) / 2
        if bar is self._view.axis:
            about = view.time_at(
                max(bar.inner(event.position()).x() - self._canvas.head_px, 0.0), bar.wide() - self._canvas.head_px
            )
        if isinstance(event, QNativeGestureEvent):
            pinched = event.gestureType() == Qt.NativeGestureType.ZoomNativeGesture
            if pinched:
                self._view.motion.zoom(1.0 / max(1.0 + event.value(), 0.2), about)
            return pinched
        angle, pixels = event.angleDelta(), bar.inner(QPointF(event.pixelDelta()))
        sideways = abs(angle.x()) > abs(angle.y())
        if sideways and not pixels.isNull():
            self._view.motion.pan(-pixels.x() / max(self._canvas.frame().lanes_px, 1))
        elif sideways or event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self._view.motion.pan(-(angle.y() or angle.x()) / 120 * PAN_PER_NOTCH)
        else:
            self._view.motion.zoom(ZOOM_PER_NOTCH ** (-angle.y() / 120), about)
        event.accept()
        return True

    def _zoom(self, factor: float, x: float) -> None:
        self._view.motion.zoom(factor, self._canvas.frame().time_at(max(x, self._canvas.head_px)))

    def _scroll_header(self, position: QPointF, notches: float) -> None:
        row = self._canvas.row_at(position.y())
        lanes = -round(notches * 3) or (-1 if notches > 0 else 1)
        if row is not None and self._view.rows.scroll_lanes(row.key, lanes):
            self._document.layoutChanged.emit()
        else:
            self._canvas.set_scroll(self._canvas.scroll_px - round(notches * SCROLL_PER_NOTCH_PX))

    def _gesture(self, event: QNativeGestureEvent) -> bool:
        if event.gestureType() != Qt.NativeGestureType.ZoomNativeGesture:
            return False
        self._zoom(1.0 / max(1.0 + event.value(), 0.2), self._canvas.inner(event.position()).x())
        return True

    # Buttons -------------------------------------------------------------------------------------------------

    def _pressed(self, event: QMouseEvent) -> None:
        self._view.setFocus(Qt.FocusReason.MouseFocusReason)
        self._press = self._last = self._canvas.inner(event.position())
        self._mode = ""
        if event.button() == Qt.MouseButton.RightButton:
            self._press = None
            self._view.show_menu(self._canvas.inner(event.position()), event.globalPosition().toPoint())
            return
        if event.button() not in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton):
            self._press = None
            return
        x, y = self._canvas.inner(event.position()).x(), self._canvas.inner(event.position()).y()
        self._anchor_ns = self._canvas.frame().time_at(x)
        if self._is_edge(x):
            self._mode = "headings"
        elif x < self._canvas.head_px:
            self._row = self._row_with_border_at(y)
            self._mode = "resize" if self._row is not None else ""
            self._row = self._row or self._canvas.row_at(y)
        elif event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self._mode, self._over_rows, self._rows_range = "range", True, ()
        elif self._range_border(x):
            self._mode, self._over_rows = self._range_border(x), False
            chosen = self._document.selected_range
            self._rows_range = chosen.tracks if chosen is not None else ()

    def _is_edge(self, x: float) -> bool:
        """The right edge of the column of headings is at an x: it can be dragged."""
        return -BORDER_PX <= x - self._canvas.head_px <= BORDER_PX // 2

    def _row_with_border_at(self, y: float) -> Row | None:
        """Row whose lower border is at a y and that can be resized."""
        frame = self._canvas.frame()
        for row in frame.visible_rows():
            edge = frame.row_y(row) + row.height
            sized = row.kind is RowKind.COUNTER or (row.kind is RowKind.SLICES and row.lanes > 1)
            if sized and abs(y - edge) <= BORDER_PX and (row.pinned or edge > self._view.rows.pinned_px):
                return row
        return None

    def _range_border(self, x: float) -> str:
        chosen, frame = self._document.selected_range, self._canvas.frame()
        if chosen is None or x < self._canvas.head_px:
            return ""
        if abs(x - frame.x(float(chosen.start_ns))) <= BORDER_PX:
            return "range-start"
        return "range-end" if abs(x - frame.x(float(chosen.end_ns))) <= BORDER_PX else ""

    def _moved(self, event: QMouseEvent) -> None:
        position = self._canvas.inner(event.position())
        if self._press is None:
            self._hover(position)
            return
        far = (position - self._press).manhattanLength() >= CLICK_PX
        if not self._mode and far:
            self._mode = "row" if self._press.x() < self._canvas.head_px else "pan"
            if self._mode == "pan":
                self._view.motion.release()
                self._document.viewport.remember()
        if self._mode and far:
            self._canvas.quiet = True
            self._drag(position)
        self._last = position

    def _hover(self, position: QPointF) -> None:
        shape = Qt.CursorShape.ArrowCursor
        if self._is_edge(position.x()):
            shape = Qt.CursorShape.SplitHCursor
        elif position.x() < self._canvas.head_px and self._row_with_border_at(position.y()) is not None:
            shape = Qt.CursorShape.SizeVerCursor
        elif self._range_border(position.x()):
            shape = Qt.CursorShape.SizeHorCursor
        if self._canvas.cursor().shape() != shape:
            self._canvas.setCursor(shape)
        self._canvas.point(position)

    def _drag(self, position: QPointF) -> None:
        view, frame = self._document.viewport, self._canvas.frame()
        if self._mode == "pan":
            shift = (self._last.x() - position.x()) * frame.ns_per_px
            self._document.zoom_to(view.start_ns + shift, view.end_ns + shift, remember=False)
            self._canvas.set_scroll(self._canvas.scroll_px + round(self._last.y()) - round(position.y()))
        elif self._mode.startswith("range"):
            if self._over_rows and self._press is not None:
                self._rows_range = self._tracks_between(self._press.y(), position.y())
            self.drag_range(frame.time_at(position.x()), self._rows_range)
        elif self._mode == "headings":
            self._view.headings.set_width(round(position.x()))
        elif self._mode == "resize" and self._row is not None:
            self._view.rows.resize(self._row.key, round(position.y()) - frame.row_y(self._row))
            self._document.layoutChanged.emit()
        elif self._mode == "row" and self._row is not None:
            self._canvas.setCursor(Qt.CursorShape.ClosedHandCursor)
            self._canvas.drop_y = self._drop_place(position.y())[1]
            self._canvas.update()

    def begin_range(self, time_ns: float) -> None:
        """Start selecting a stretch of time (also from the axis)."""
        self._anchor_ns, self._mode, self._over_rows, self._rows_range = time_ns, "range", False, ()

    def _tracks_between(self, y0: float, y1: float) -> tuple[int, ...]:
        """Tracks of the rows that a drag went over; none, which means all, while it only went sideways."""
        if abs(y1 - y0) < ROWS_PX:
            return ()
        top, bottom = sorted((y0, y1))
        frame = self._canvas.frame()
        rows = [r for r in frame.visible_rows() if frame.row_y(r) < bottom and frame.row_y(r) + r.height > top]
        found: list[int] = []
        for row in rows:
            members = [self._view.rows.by_key[k] for k in row.members] if not row.expanded else []
            found += [r.track_id for r in (row, *members) if r.track_id >= 0]
        return tuple(sorted(set(found)))

    def drag_range(self, time_ns: float, tracks: tuple[int, ...] = ()) -> None:
        """Move the loose end of the stretch being selected; ``tracks`` restricts it, none means all."""
        chosen = self._document.selected_range
        if self._mode == "range-start" and chosen is not None:
            self._anchor_ns, self._mode = float(chosen.end_ns), "range"
        elif self._mode == "range-end" and chosen is not None:
            self._anchor_ns, self._mode = float(chosen.start_ns), "range"
        start, end = sorted((self._anchor_ns, time_ns))
        self._document.select_range(TimeRange(round(start), max(round(end), round(start) + 1), tracks))

    def _drop_place(self, y: float) -> tuple[str, int]:
        """Key of the row before which a dragged row would go ("" the end of its group), and the y of that place."""
        frame, dragged = self._canvas.frame(), self._row
        assert dragged is not None
        mates = [r for r in frame.visible_rows() if r.group == dragged.group and r.kind is not RowKind.STEPS]
        mates = [r for r in mates if (r.kind is RowKind.GROUP) == (dragged.kind is RowKind.GROUP)]
        for row in mates:
            if y < frame.row_y(row) + row.height / 2:
                return row.key, frame.row_y(row)
        last = mates[-1] if mates else dragged
        return "", frame.row_y(last) + last.height

    def _released(self, event: QMouseEvent) -> None:
        press, self._press = self._press, None
        mode, self._mode = self._mode, ""
        if press is None:
            return
        at = self._canvas.inner(event.position())
        if mode == "row" and self._row is not None:
            self._view.rows.move(self._row.key, self._drop_place(at.y())[0])
            self._document.layoutChanged.emit()
        elif (
            mode != "headings"
            and (at - press).manhattanLength() < CLICK_PX
            and event.button() == Qt.MouseButton.LeftButton
        ):
            self._clicked(at)
        self._canvas.drop_y = -1
        self._canvas.quiet = False
        self._hover(at)

    def _clicked(self, position: QPointF) -> None:
        if position.x() < self._canvas.head_px:
            row = self._canvas.row_at(position.y())
            if (
                row is not None
                and row.can_collapse
                and (row.kind is RowKind.GROUP or position.x() < chevron_right_px(row))
            ):
                self._view.toggle(row.key)
            return
        if self._document.selected_range is not None and not self._range_border(position.x()):
            self._document.select_range(None)
        self._clicked_id = self._canvas.slice_at(position)
        self._document.select(self._clicked_id)

    def _double(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        if self._is_edge(self._canvas.inner(event.position()).x()):
            self._view.headings.set_width(0)
            return
        if self._canvas.inner(event.position()).x() < self._canvas.head_px:
            row = self._canvas.row_at(self._canvas.inner(event.position()).y())
            if row is not None and row.can_collapse and row.kind is not RowKind.GROUP:
                self._view.toggle(row.key)
            return
        # The first click may have moved the rows: the details of what it was on take room.
        slice_id, self._clicked_id = self._clicked_id, None
        if slice_id is None:
            slice_id = self._canvas.slice_at(self._canvas.inner(event.position()))
        if slice_id >= 0:
            self._document.select(slice_id)
            self._view.zoom_to_slice(slice_id)
