"""Rows without a slice in view, arrows to what is closed, and rows that use the room they have."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from core.kinds import TrackKind
from gui.timeline.frame import HEADER_PX
from gui.timeline.row import COUNTER_PX, LANE_PX
from gui.timeline.view import TimelineView
from tests.gui.conftest import training
from tests.trace_builder import TraceBuilder, rows

MakeView = Callable[..., TimelineView]


def two_threads() -> TraceBuilder:
    """A main thread that works in the first millisecond, a worker that works in the second."""
    made = TraceBuilder(gpu=None)
    for i in range(10):
        made.op("aten::mm", i * 100, 50)
        made.op("aten::add", 1000 + i * 100, 50, tid=200)
    return made


def titles(view: TimelineView) -> list[str]:
    return [row.title for row in view.rows.scrolled if row.track_id >= 0]


def picture(view: TimelineView) -> QImage:
    image = QImage(view.canvas.size(), QImage.Format.Format_RGB32)
    view.canvas.render(image)
    return image


def test_a_heading_without_slices_in_view_is_dimmed(make_view: MakeView, tmp_path) -> None:
    view = make_view(two_threads().build(tmp_path / "two.json"))
    row = view.rows.row_of_track(int(view.document.trace.slices.track_id[rows(view.document.trace, "aten::add")[0]]))
    assert row is not None
    view.document.zoom_to(1_000_000, 2_000_000)
    assert row.key not in view.rows.empty_in_view
    y, bright = view.canvas.frame().row_y(row), picture(view)
    view.document.zoom_to(0, 900_000)
    assert row.key in view.rows.empty_in_view
    dimmed = picture(view)

    def brightest(image: QImage) -> int:
        return max(image.pixelColor(x, yy).lightness() for x in range(20, HEADER_PX - 20) for yy in range(y, y + 20))

    assert brightest(dimmed) < brightest(bright) - 20


def test_rows_empty_in_view_are_hidden_when_it_rests_and_come_back_at_once(make_view: MakeView, tmp_path) -> None:
    view = make_view(two_threads().build(tmp_path / "two.json"))
    view.document.zoom_to(0, 900_000)
    everything = titles(view)
    QTest.keyClick(view, Qt.Key.Key_H)
    assert len(titles(view)) == len(everything) - 1
    assert view.state()["hides_empty"] is True
    view.document.zoom_to(0, 1_900_000)
    assert titles(view) == everything
    view.document.zoom_to(1_000_000, 1_900_000)
    assert titles(view) == everything, "nothing goes while the view moves"
    view.empty_rows.settle()
    assert len(titles(view)) == len(everything) - 1
    first = rows(view.document.trace, "aten::mm")[0]
    view.go_to(first)
    assert view.canvas.frame().rect_of(first) is not None
    QTest.keyClick(view, Qt.Key.Key_H)
    assert titles(view) == everything


def test_an_arrow_leads_to_the_heading_of_a_closed_group(view: TimelineView) -> None:
    trace = view.document.trace
    view.document.zoom_to(0, 1_000_000)
    kernel, launch = rows(trace, "gemm_kernel")[0], rows(trace, "cudaLaunchKernel")[0]
    view.toggle("gpu/0", False)
    frame = view.canvas.frame()
    assert frame.place_of(kernel) is None
    stand_in = frame.stand_in_of(kernel)
    assert stand_in is not None
    assert stand_in[0].key == "gpu/0"
    without = picture(view)
    view.document.select(launch)
    at = QPoint(round(float(frame.x(float(trace.slices.start_ns[kernel])))), stand_in[1])
    assert picture(view).pixelColor(at) == frame.palette.accent
    assert without.pixelColor(at) != frame.palette.accent


def test_an_arrow_leads_to_the_row_whose_lane_is_not_shown(make_view: MakeView, tmp_path) -> None:
    view = make_view(training().build(tmp_path / "train.json"))
    trace = view.document.trace
    launch = rows(trace, "cudaLaunchKernel")[0]
    row = view.rows.row_of_track(int(trace.slices.track_id[launch]))
    assert row is not None
    view.toggle(row.key, False)
    stand_in = view.canvas.frame().stand_in_of(launch)
    assert stand_in is not None
    assert stand_in[0] is row


def test_the_name_of_a_row_that_is_half_scrolled_away_stays_in_view(make_view: MakeView, tmp_path) -> None:
    made = TraceBuilder()
    for depth in range(8):
        made.op(f"aten::op{depth}", depth, 1000 - 2 * depth)
    view = make_view(made.kernel("gemm", 0, 10).build(tmp_path / "deep.json"))
    view.resize(1200, 330)
    row = next(r for r in view.rows.scrolled if r.track_kind == TrackKind.CPU_OPS)
    view.canvas.set_scroll(row.y + 30)
    frame, top = view.canvas.frame(), view.rows.pinned_px
    assert frame.row_y(row) == top - 30
    image = picture(view)
    drawn = [x for x in range(6, HEADER_PX - 10) for y in range(top + 3, top + 19)
             if image.pixelColor(x, y) == frame.palette.text]  # fmt: skip
    assert drawn, "the heading stands at the top of what is left of the row"


def test_the_row_below_says_the_name_where_there_is_no_room_for_it_any_more(make_view: MakeView, tmp_path) -> None:
    made = TraceBuilder().range("loss", 0, 900)
    for depth in range(8):
        made.op(f"aten::op{depth}", depth, 800 - 2 * depth)
    view = make_view(made.kernel("gemm", 0, 10).build(tmp_path / "deep.json"))
    view.resize(1200, 330)
    ranges, ops = (
        next(r for r in view.rows.scrolled if r.track_kind == k) for k in (TrackKind.CPU_RANGES, TrackKind.CPU_OPS)
    )
    assert ranges.title == ops.title
    words = {}
    for left in (ranges.height, 8, 0):
        view.canvas.set_scroll(ranges.y + ranges.height - left)
        image, y = picture(view), view.canvas.frame().row_y(ops)
        words[left] = image.copy(24, y + 2, HEADER_PX - 40, 18)
    assert words[ranges.height] != words[8], "only the kind before, then the name"
    assert words[8] == words[0]


def test_lanes_and_counters_grow_into_the_room_that_is_left(view: TimelineView) -> None:
    view.resize(1200, 320)
    assert view.rows.lane_px == LANE_PX
    busy, stream = view.rows.by_key["busy/0"], view.rows.scrolled[0]
    assert busy.height == COUNTER_PX
    view.resize(1200, 1100)
    assert view.rows.lane_px > LANE_PX
    assert busy.height > COUNTER_PX
    assert view.canvas.max_scroll_px() == 0
    stream = next(r for r in view.rows.scrolled if r.track_kind == TrackKind.DEVICE_STREAM)
    kernel = int(rows(view.document.trace, "gemm_kernel")[0])
    rect = view.canvas.frame().rect_of(kernel)
    assert rect is not None
    assert rect.height() == view.rows.lane_px - 1
    assert view.canvas.slice_at(rect.center()) == kernel
    assert view.canvas.row_at(rect.bottom() - 1) is stream


def test_tracks_are_filtered_by_text_and_the_text_is_remembered(
    view: TimelineView, make_view: MakeView, qtbot: QtBot
) -> None:
    everything = titles(view)
    QTest.keyClick(view, Qt.Key.Key_T, Qt.KeyboardModifier.ShiftModifier)
    assert view.filter.isVisible()
    QTest.keyClicks(view.filter, "Stream")
    assert titles(view) == ["stream 7"]
    QTest.keyClick(view.filter, Qt.Key.Key_Return)
    assert view.filter.isVisible(), "what is left out can be seen"
    again = make_view(view.document.trace)
    again.restore_state(view.state())
    assert titles(again) == ["stream 7"]
    assert again.filter.text() == "stream"
    qtbot.waitUntil(lambda: again.filter.geometry().top() == again.axis.geometry().top() > 0)  # not on the steps
    view.go_to(rows(view.document.trace, "aten::mm")[0])
    assert titles(view) == everything
    assert not view.filter.isVisible()
    view.filter.open()
    QTest.keyClicks(view.filter, "nothing is called so")
    assert titles(view) == []
    said = picture(view)
    view.rows.filter_text = ""
    view.document.select(-1)
    assert said != picture(view), "what is missing is said"
    view.rows.filter_text = "nothing is called so"
    QTest.keyClick(view.filter, Qt.Key.Key_Escape)
    assert titles(view) == everything
    assert not view.filter.isVisible()


def test_in_a_low_canvas_rows_without_slices_lend_their_lanes_when_the_view_rests(
    make_view: MakeView, tmp_path
) -> None:
    made = TraceBuilder()
    for thread, start in ((100, 0), (200, 2000)):
        for depth in range(6):
            made.op(f"op{depth}", start + depth, 1000 - 2 * depth, tid=thread)
    made.launch("gemm", at=40, call=5, start=60, dur=20)
    view = make_view(made.build(tmp_path / "two.json"))
    view.resize(view.width(), 320)
    trace = view.document.trace
    later = view.rows.row_of_track(int(trace.slices.track_id[rows(trace, "op3")[1]]))
    assert later is not None
    view.document.zoom_to(0, 1_000_000)
    assert view.rows.cramped
    assert later.shown_lanes > 1
    view.empty_rows.settle()
    assert later.shown_lanes == 1
    view.document.zoom_to(2_000_000, 3_000_000)
    assert later.shown_lanes == 1  # nothing moves while the view does
    view.empty_rows.settle()
    assert later.shown_lanes > 1
