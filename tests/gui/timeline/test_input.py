"""What the hand does, through real Qt events."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QInputDevice, QMouseEvent, QNativeGestureEvent, QPointingDevice, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from core.kinds import TrackKind
from gui.session import TimeRange
from gui.timeline.axis import Origin
from gui.timeline.frame import HEADER_PX
from gui.timeline.menus import slice_menu
from gui.timeline.view import TimelineView
from tests.gui.timeline.conftest import place
from tests.trace_builder import TraceBuilder, rows

LEFT = Qt.MouseButton.LeftButton
NONE, SHIFT, ALT = (getattr(Qt.KeyboardModifier, f"{n}Modifier") for n in ("No", "Shift", "Alt"))


def wheel(view: TimelineView, at: QPointF, notches: int, keys: Qt.KeyboardModifier = NONE, sideways: int = 0) -> None:
    angle = QPoint(sideways * 120, notches * 120)
    where = QPointF(view.canvas.mapToGlobal(at.toPoint()))
    event = QWheelEvent(at, where, QPoint(), angle, Qt.MouseButton.NoButton, keys, Qt.ScrollPhase.NoScrollPhase, False)
    QApplication.sendEvent(view.canvas, event)


def window_of(view: TimelineView) -> tuple[float, float]:
    return view.document.viewport.start_ns, view.document.viewport.end_ns


def drag(view: TimelineView, start: QPoint, end: QPoint, keys: Qt.KeyboardModifier = NONE) -> None:
    canvas = view.canvas
    QTest.mousePress(canvas, LEFT, keys, start)
    for part in (0.3, 0.7, 1.0):
        QTest.mouseMove(canvas, start + (end - start) * part)
    QTest.mouseRelease(canvas, LEFT, keys, end)


def test_wheel_zooms_about_the_pointer(view: TimelineView) -> None:
    at = QPointF(700, 300)
    time, width = view.canvas.frame().time_at(700), view.document.viewport.width_ns
    wheel(view, at, 3)
    assert view.document.viewport.width_ns == pytest.approx(width / 1.3**3, rel=1e-6)
    assert view.canvas.frame().time_at(700) == pytest.approx(time, abs=1)
    wheel(view, at, -3)
    assert view.document.viewport.width_ns == pytest.approx(width, rel=1e-6)


def test_wheel_zooms_on_the_axis_and_the_minimap_too(view: TimelineView) -> None:
    for widget in (view.axis, view.minimap):
        width = view.document.viewport.width_ns
        at = QPointF(700, 10)
        where = QPointF(widget.mapToGlobal(at.toPoint()))
        none = Qt.MouseButton.NoButton
        phase = Qt.ScrollPhase.NoScrollPhase
        QApplication.sendEvent(widget, QWheelEvent(at, where, QPoint(), QPoint(0, 120), none, NONE, phase, False))
        assert view.document.viewport.width_ns == pytest.approx(width / 1.3)


def test_wheel_with_shift_moves_in_time_and_with_alt_scrolls(view: TimelineView) -> None:
    view.resize(1200, 330)
    view.document.zoom_to(1_000_000, 2_000_000)
    wheel(view, QPointF(700, 200), -1, SHIFT)
    assert window_of(view) == pytest.approx((1_120_000, 2_120_000))
    wheel(view, QPointF(700, 200), 0, sideways=1)
    assert window_of(view) == pytest.approx((1_000_000, 2_000_000))
    wheel(view, QPointF(700, 200), -1, ALT)
    assert view.canvas.scroll_px > 0
    assert view.scroll_bar.value() == view.canvas.scroll_px


def test_wheel_over_the_header_scrolls_lanes_then_rows(make_view: Callable[..., TimelineView]) -> None:
    made = TraceBuilder()
    for depth in range(40):
        made.op(f"op{depth}", depth, 1000 - 2 * depth)
    view = make_view(made.build(), figures=False)
    view.resize(1200, 330)
    row = next(r for r in view.rows.rows if r.track_kind == TrackKind.CPU_OPS)
    y = view.canvas.frame().row_y(row) + 20
    before = window_of(view)
    wheel(view, QPointF(60, y), -2)
    assert row.first_lane == 6
    assert view.canvas.scroll_px == 0
    for _ in range(20):
        wheel(view, QPointF(60, y), -2)
    assert row.first_lane == 40 - row.shown_lanes
    assert window_of(view) == before


def test_click_selects_and_a_click_beside_clears(view: TimelineView) -> None:
    view.document.zoom_to(0, 1_000_000)
    item = rows(view.document.trace, "aten::item")[0]
    QTest.mouseClick(view.canvas, LEFT, NONE, place(view, item).toPoint())
    assert view.document.selected_slice == item
    frame = view.canvas.frame()
    QTest.mouseClick(view.canvas, LEFT, NONE, QPoint(int(frame.x(900_000)), int(place(view, item).y())))
    assert view.document.selected_slice == -1


def test_a_double_click_means_what_the_first_click_was_on(view: TimelineView) -> None:
    mm = rows(view.document.trace, "aten::mm")[2]
    view.document.zoom_to(1_900_000, 2_200_000)
    at = place(view, mm)
    QTest.mouseClick(view.canvas, LEFT, NONE, at.toPoint())
    assert view.document.selected_slice == mm
    elsewhere = at + QPointF(0, 400)  # as where the details of the slice take room from the rows
    assert view.canvas.slice_at(elsewhere) != mm
    there = QPointF(view.canvas.mapToGlobal(elsewhere.toPoint()))
    double = QMouseEvent(QEvent.Type.MouseButtonDblClick, elsewhere, there, LEFT, LEFT, NONE)
    QApplication.sendEvent(view.canvas, double)
    start, end = window_of(view)
    assert view.document.selected_slice == mm
    assert 1_900_000 < start < 2_020_000 < 2_080_000 < end < 2_200_000


def test_double_click_zooms_to_the_slice(view: TimelineView) -> None:
    mm = rows(view.document.trace, "aten::mm")[2]
    QTest.mouseDClick(view.canvas, LEFT, NONE, place(view, mm).toPoint())
    start, end = window_of(view)
    assert view.document.selected_slice == mm
    assert start < 2_020_000 < 2_080_000 < end
    assert end - start < 400_000


def test_drag_moves_the_view_and_back_returns(view: TimelineView) -> None:
    view.document.zoom_to(1_000_000, 2_000_000)
    before = window_of(view)
    per_px = view.canvas.frame().ns_per_px
    drag(view, QPoint(800, 300), QPoint(600, 300))
    assert window_of(view)[0] == pytest.approx(before[0] + 200 * per_px, abs=per_px)
    QTest.keyClick(view, Qt.Key.Key_Backspace)
    assert window_of(view) == pytest.approx(before)


def test_shift_drag_selects_time_and_its_border_can_be_moved(view: TimelineView) -> None:
    view.document.zoom_to(0, 1_000_000)
    before = window_of(view)
    frame = view.canvas.frame()
    drag(view, QPoint(400, 300), QPoint(700, 300), SHIFT)
    chosen = view.document.selected_range
    assert chosen is not None
    assert chosen.start_ns == pytest.approx(frame.time_at(400), abs=2 * frame.ns_per_px)
    assert chosen.end_ns == pytest.approx(frame.time_at(700), abs=2 * frame.ns_per_px)
    assert window_of(view) == before
    drag(view, QPoint(700, 300), QPoint(900, 300))
    assert view.document.selected_range is not None
    assert view.document.selected_range.start_ns == pytest.approx(chosen.start_ns, abs=2 * frame.ns_per_px)
    assert view.document.selected_range.end_ns == pytest.approx(frame.time_at(900), abs=2 * frame.ns_per_px)


def test_shift_drag_over_rows_selects_their_tracks_alone(view: TimelineView) -> None:
    frame = view.canvas.frame()
    ops = next(r for r in view.rows.rows if r.track_kind == TrackKind.CPU_OPS)
    top = frame.row_y(ops)
    drag(view, QPoint(400, top + 2), QPoint(800, top + ops.height - 2), SHIFT)
    chosen = view.document.selected_range
    assert chosen is not None
    assert chosen.tracks == (ops.track_id,)
    before = chosen
    drag(view, QPoint(800, top + 4), QPoint(900, top + 4))  # its border keeps the tracks
    chosen = view.document.selected_range
    assert chosen is not None
    assert chosen.tracks == before.tracks
    assert chosen.end_ns > before.end_ns
    stream = next(r for r in view.rows.rows if r.track_kind == TrackKind.DEVICE_STREAM)
    drag(view, QPoint(400, top + 2), QPoint(800, frame.row_y(stream) + 4), SHIFT)
    chosen = view.document.selected_range
    assert chosen is not None
    assert {ops.track_id, stream.track_id} <= set(chosen.tracks)
    drag(view, QPoint(400, top + 2), QPoint(800, top + 2), SHIFT)
    chosen = view.document.selected_range
    assert chosen is not None
    assert chosen.tracks == ()


def test_pinching_zooms_about_the_pointer(view: TimelineView) -> None:
    at = QPointF(700, 300)
    time, width = view.canvas.frame().time_at(700), view.document.viewport.width_ns
    where = QPointF(view.canvas.mapToGlobal(at.toPoint()))
    zoom = Qt.NativeGestureType.ZoomNativeGesture
    event = QNativeGestureEvent(zoom, QPointingDevice.primaryPointingDevice(), 2, at, at, where, 0.25, QPointF())
    QApplication.sendEvent(view.canvas, event)
    assert view.document.viewport.width_ns == pytest.approx(width / 1.25, rel=1e-6)
    assert view.canvas.frame().time_at(700) == pytest.approx(time, abs=1)


def test_two_fingers_on_a_touch_pad_move_in_both_directions(view: TimelineView) -> None:
    view.resize(1200, 300)
    view.document.zoom_to(1_000_000, 2_000_000)
    able = QInputDevice.Capability.PixelScroll | QInputDevice.Capability.Scroll
    pad = QPointingDevice("pad", 77, QInputDevice.DeviceType.TouchPad, QPointingDevice.PointerType.Finger, able, 2, 0)
    at, start = QPointF(700, 150), view.document.viewport.start_ns
    ns_per_px = view.canvas.frame().ns_per_px
    where = QPointF(view.canvas.mapToGlobal(at.toPoint()))
    phase, source = Qt.ScrollPhase.ScrollUpdate, Qt.MouseEventSource.MouseEventNotSynthesized
    event = QWheelEvent(at, where, QPoint(-60, -30), QPoint(), Qt.MouseButton.NoButton, NONE, phase, False, source, pad)
    QApplication.sendEvent(view.canvas, event)
    assert view.document.viewport.start_ns == pytest.approx(start + 60 * ns_per_px, rel=1e-6)
    assert view.document.viewport.width_ns == pytest.approx(1_000_000)
    assert view.canvas.scroll_px == 30


def test_pinch_and_two_fingers_work_over_the_bars_above_the_rows_too(view: TimelineView) -> None:
    able = QInputDevice.Capability.PixelScroll | QInputDevice.Capability.Scroll
    pad = QPointingDevice("pad", 78, QInputDevice.DeviceType.TouchPad, QPointingDevice.PointerType.Finger, able, 2, 0)
    phase, source = Qt.ScrollPhase.ScrollUpdate, Qt.MouseEventSource.MouseEventNotSynthesized
    zoom, button = Qt.NativeGestureType.ZoomNativeGesture, Qt.MouseButton.NoButton
    at, ns_per_px = QPointF(700, 8), 1_000_000 / view.canvas.frame().lanes_px
    for bar in (view.strip, view.minimap, view.axis):
        view.document.zoom_to(1_000_000, 2_000_000)
        where = QPointF(bar.mapToGlobal(at.toPoint()))
        event = QWheelEvent(at, where, QPoint(-60, -5), QPoint(-120, -10), button, NONE, phase, False, source, pad)
        QApplication.sendEvent(bar, event)
        assert window_of(view) == pytest.approx((1_000_000 + 60 * ns_per_px, 2_000_000 + 60 * ns_per_px), rel=1e-6)
        QApplication.sendEvent(bar, QNativeGestureEvent(zoom, pad, 2, at, at, where, 0.25, QPointF()))
        assert view.document.viewport.width_ns == pytest.approx(800_000)


def test_backspace_returns_to_the_view_before(view: TimelineView) -> None:
    before = window_of(view)
    view.document.zoom_to(100.0, 2000.0)
    QTest.keyClick(view, Qt.Key.Key_Backspace)
    assert window_of(view) == before


def test_the_menu_of_a_slice_copies_its_name_and_a_picture(view: TimelineView, qtbot: QtBot) -> None:
    trace = view.document.trace
    slice_id = rows(trace, "aten::item")[0]
    actions = {a.text(): a for a in slice_menu(view, slice_id, 0.0).actions()}
    actions["Copy its name"].trigger()
    assert QGuiApplication.clipboard().text() == "aten::item"
    view.document.select(slice_id)
    QTest.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: "\n" in QGuiApplication.clipboard().text())
    assert QGuiApplication.clipboard().text().startswith("aten::item")
    actions["Copy a picture of the timeline"].trigger()
    assert QGuiApplication.clipboard().pixmap().size() == view.size()
    actions["Arrows of all below the selection"].trigger()
    assert view.canvas.all_flows


def test_drag_on_the_axis_selects_time(view: TimelineView) -> None:
    QTest.mousePress(view.axis, LEFT, NONE, QPoint(500, 10))
    QTest.mouseMove(view.axis, QPoint(600, 10))
    QTest.mouseRelease(view.axis, LEFT, NONE, QPoint(600, 10))
    assert view.document.selected_range is not None


def test_keys_zoom_and_move(view: TimelineView) -> None:
    view.document.zoom_to(1_000_000, 2_000_000)
    width = view.document.viewport.width_ns
    QTest.keyClick(view, Qt.Key.Key_W)
    assert view.document.viewport.width_ns < width
    QTest.keyClick(view, Qt.Key.Key_S)
    assert view.document.viewport.width_ns == pytest.approx(width)
    start = window_of(view)[0]
    QTest.keyClick(view, Qt.Key.Key_D)
    assert window_of(view)[0] > start
    QTest.keyClick(view, Qt.Key.Key_A)
    assert window_of(view)[0] == pytest.approx(start)
    QTest.keyClick(view, Qt.Key.Key_Right)
    assert window_of(view)[0] > start


def test_a_held_key_keeps_moving_until_it_is_released(view: TimelineView, qtbot) -> None:
    view.motion.animated = True
    QTest.keyPress(view, Qt.Key.Key_W)
    first = view.document.viewport.width_ns
    qtbot.waitUntil(lambda: view.document.viewport.width_ns < first / 1.3, timeout=60_000)
    QTest.keyRelease(view, Qt.Key.Key_W)
    qtbot.waitUntil(lambda: not view.motion.running, timeout=60_000)


def test_an_animated_zoom_arrives_and_another_move_ends_it(view: TimelineView, qtbot) -> None:
    view.motion.animated = True
    width = view.document.viewport.width_ns
    wheel(view, QPointF(700, 300), 2)
    qtbot.waitUntil(lambda: not view.motion.running, timeout=60_000)
    assert view.document.viewport.width_ns == pytest.approx(width / 1.69, rel=1e-3)
    wheel(view, QPointF(700, 300), 2)
    view.document.zoom_to(0, 1_000)
    qtbot.waitUntil(lambda: not view.motion.running, timeout=60_000)
    assert window_of(view) == pytest.approx((0, 1_000))


def test_f_fits_the_selection_and_twice_the_trace(view: TimelineView) -> None:
    view.document.select(rows(view.document.trace, "aten::mm")[1])
    QTest.keyClick(view, Qt.Key.Key_F)
    assert view.document.viewport.width_ns < 500_000
    QTest.keyClick(view, Qt.Key.Key_F)
    assert view.document.viewport.width_ns > view.document.viewport.span_ns
    view.document.select_range(TimeRange(1_000_000, 2_000_000))
    QTest.keyClick(view, Qt.Key.Key_F)
    assert window_of(view) == pytest.approx((950_000, 2_050_000))


def test_r_selects_the_time_of_the_slice_and_escape_clears(view: TimelineView) -> None:
    mm = rows(view.document.trace, "aten::mm")[1]
    view.document.select(mm)
    QTest.keyClick(view, Qt.Key.Key_R)
    assert view.document.selected_range == TimeRange(1_020_000, 1_080_000)
    QTest.keyClick(view, Qt.Key.Key_Escape)
    assert view.document.selected_range is None
    QTest.keyClick(view, Qt.Key.Key_Escape)
    assert view.document.selected_slice == -1


def test_marks_are_replaced_unless_kept(view: TimelineView) -> None:
    first, second, third = rows(view.document.trace, "aten::mm")[:3]
    view.document.select(first)
    QTest.keyClick(view, Qt.Key.Key_M)
    view.document.select(second)
    QTest.keyClick(view, Qt.Key.Key_M)
    assert [m.start_ns for m in view.document.marks] == [1_020_000]
    QTest.keyClick(view, Qt.Key.Key_M, SHIFT)
    view.document.select(third)
    QTest.keyClick(view, Qt.Key.Key_M)
    assert [m.start_ns for m in view.document.marks] == [1_020_000, 2_020_000]


def test_comma_and_period_go_along_the_lane(view: TimelineView) -> None:
    trace = view.document.trace
    mm, item = rows(trace, "aten::mm"), rows(trace, "aten::item")
    view.document.select(mm[0])
    QTest.keyClick(view, Qt.Key.Key_Period)
    assert view.document.selected_slice == item[0]
    QTest.keyClick(view, Qt.Key.Key_Period)
    assert view.document.selected_slice == mm[1]
    QTest.keyClick(view, Qt.Key.Key_Comma)
    assert view.document.selected_slice == item[0]
    view.document.select(mm[0])
    QTest.keyClick(view, Qt.Key.Key_Comma)
    assert view.document.selected_slice == mm[0]


def test_brackets_follow_flows(view: TimelineView) -> None:
    trace = view.document.trace
    view.document.zoom_to(0, 1_000_000)
    view.document.select(rows(trace, "cudaLaunchKernel")[1])
    QTest.keyClick(view, Qt.Key.Key_BracketRight)
    assert view.document.selected_slice == rows(trace, "gemm_kernel")[1]
    start, end = window_of(view)
    assert start < 1_060_000 < end
    QTest.keyClick(view, Qt.Key.Key_BracketLeft)
    assert view.document.selected_slice == rows(trace, "cudaLaunchKernel")[1]


def test_j_and_l_go_along_the_sync_points(view: TimelineView) -> None:
    calls = rows(view.document.trace, "cudaMemcpyAsync")
    view.document.zoom_to(0, 200_000)
    QTest.keyClick(view, Qt.Key.Key_L)
    assert view.document.selected_slice == calls[0]
    QTest.keyClick(view, Qt.Key.Key_L)
    assert view.document.selected_slice == calls[1]
    QTest.keyClick(view, Qt.Key.Key_J)
    assert view.document.selected_slice == calls[0]


def test_alt_arrows_go_through_the_views(view: TimelineView) -> None:
    view.document.zoom_to(0, 100_000)
    view.document.zoom_to(500_000, 600_000)
    QTest.keyClick(view, Qt.Key.Key_Left, ALT)
    assert window_of(view) == pytest.approx((0, 100_000))
    QTest.keyClick(view, Qt.Key.Key_Right, ALT)
    assert window_of(view) == pytest.approx((500_000, 600_000))


def test_header_click_collapses_and_drag_reorders(view: TimelineView) -> None:
    frame = view.canvas.frame()
    gpu = view.rows.by_key["gpu/0"]
    QTest.mouseClick(view.canvas, LEFT, NONE, QPoint(60, frame.row_y(gpu) + 10))
    assert not gpu.expanded
    QTest.mouseClick(view.canvas, LEFT, NONE, QPoint(60, frame.row_y(gpu) + 10))
    assert gpu.expanded
    ops = next(r for r in view.rows.rows if r.track_kind == TrackKind.CPU_OPS)
    python = next(r for r in view.rows.rows if r.track_kind == TrackKind.CPU_PYTHON)
    drag(
        view,
        QPoint(100, frame.row_y(python) + python.height // 2),
        QPoint(100, frame.row_y(ops) + 4),
    )
    keys = [r.key for r in view.rows.rows]
    assert keys.index(python.key) == keys.index(ops.key) - 1
    assert view.canvas.drop_y == -1


def test_dragging_a_rows_border_resizes_it(view: TimelineView) -> None:
    row = view.rows.by_key["busy/0"]
    frame = view.canvas.frame()
    before, bottom = row.height, frame.row_y(row) + row.height
    drag(view, QPoint(60, bottom), QPoint(60, bottom + 40))
    assert row.height == pytest.approx(before + 40, abs=2)


def test_pointer_shows_what_is_under_it(view: TimelineView) -> None:
    view.document.zoom_to(0, 1_000_000)
    seen: list[int] = []
    view.document.hoverChanged.connect(lambda: seen.append(view.canvas.hovered))
    item = rows(view.document.trace, "aten::item")[0]
    QTest.mouseMove(view.canvas, place(view, item).toPoint())
    view.canvas.grab()
    assert view.canvas.hovered == item
    QTest.mouseMove(view.canvas, QPoint(HEADER_PX // 2, int(place(view, item).y())))
    view.canvas.grab()
    assert view.canvas.hovered == -1
    assert item in seen


def test_going_to_a_slice_opens_what_hides_it(view: TimelineView, tmp_path: Path) -> None:
    trace = view.document.trace
    kernel = rows(trace, "gemm_kernel")[0]
    view.rows.toggle("gpu/0", False)
    view.document.go_to_slice(kernel)
    assert view.canvas.frame().rect_of(kernel) is not None
    view.rows.set_filter("operators")
    view.document.highlight((kernel,))
    assert view.canvas.frame().rect_of(kernel) is not None


def test_a_suggestions_evidence_is_scrolled_into_view(view: TimelineView) -> None:
    view.resize(1200, 300)
    kernel = rows(view.document.trace, "gemm_kernel")[0]
    view.canvas.set_scroll(0)
    view.document.show_slices((kernel,))
    place(view, kernel)
    assert view.rows.pinned_px < place(view, kernel).y() < view.canvas.height()


def test_axis_counts_from_what_is_chosen(view: TimelineView) -> None:
    view.document.zoom_to(2_100_000, 2_200_000)
    assert view.origin_ns() == 0
    view.set_origin(Origin.STEP)
    assert view.origin_ns() == 2_000_000
    view.set_origin(Origin.SELECTION)
    view.document.select_range(TimeRange(2_150_000, 2_160_000))
    assert view.origin_ns() == 2_150_000


def test_state_of_the_view_comes_back(view: TimelineView, make_view: Callable[..., TimelineView]) -> None:
    view.set_origin(Origin.STEP)
    view.toggle_colours()
    view.toggle("gpu/0")
    other = make_view(view.document.trace)
    other.restore_state(view.state())
    assert other.state() == view.state()
    other.restore_state({"version": 1, "origin": 3, "by_name": "x"})
    assert not other.canvas.by_name


def test_the_tooltip_goes_when_keys_move_the_view_and_comes_back_with_the_pointer(view: TimelineView) -> None:
    item = int(rows(view.document.trace, "aten::mm")[0])
    at = place(view, item)
    view.canvas.point(at)
    assert view.canvas.tooltip_shown
    view.setFocus()
    QTest.keyClick(view, Qt.Key.Key_D)
    assert not view.canvas.tooltip_shown
    assert view.canvas.hovered == -1
    view.canvas.point(at + QPointF(1, 0))
    assert view.canvas.tooltip_shown


@pytest.mark.parametrize("way", ["menu", "key", "window", "leave"])
def test_the_tooltip_goes_when_something_else_is_asked_for(view: TimelineView, way: str) -> None:
    item = int(rows(view.document.trace, "aten::mm")[0])
    at = place(view, item)
    view.canvas.point(at)
    assert view.canvas.tooltip_shown
    if way == "menu":
        view.show_menu(at, QPoint(0, 0))
        for menu in view.findChildren(QMenu):
            menu.close()
    elif way == "key":
        view.setFocus()
        QTest.keyClick(view, Qt.Key.Key_K)
    else:
        kind = QEvent.Type.WindowDeactivate if way == "window" else QEvent.Type.Leave
        QApplication.sendEvent(view.canvas, QEvent(kind))
    assert not view.canvas.tooltip_shown
    assert view.canvas.hovered == -1
