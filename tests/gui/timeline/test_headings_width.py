"""The column of headings gives way to the lanes where the timeline is narrow, in all its parts alike."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest

from gui.timeline.frame import DRAGGED_PX, DRAGGED_SHARE, HEADER_PX, LEAST_HEADER_PX, header_px
from gui.timeline.view import TimelineView
from tests.gui.timeline.test_input import drag


def test_headings_take_a_share_of_a_narrow_timeline() -> None:
    assert header_px(1200) == header_px(610) == HEADER_PX
    assert header_px(100) == LEAST_HEADER_PX
    for width in range(345, 600, 15):
        assert 0.25 < header_px(width) / width < 0.31


def test_all_parts_of_a_narrow_timeline_begin_their_lanes_at_the_same_place(view: TimelineView) -> None:
    view.resize(400, 600)
    parts = (view.canvas, view.strip, view.minimap, view.axis)
    assert {part.head_px for part in parts} == {header_px(view.canvas.wide())}
    frame = view.canvas.frame()
    assert frame.left_px == header_px(view.canvas.wide()) < HEADER_PX
    assert frame.x(frame.start_ns) == frame.left_px
    assert frame.time_at(frame.left_px) == frame.start_ns
    item = next(int(i) for row in view.rows.scrolled for lane in view.rows.lanes_of(row) for i in lane.ids[:1])
    rect = frame.rect_of(item)
    assert rect is not None
    inside = QPointF(max(rect.center().x(), frame.left_px + 1.0), rect.center().y())
    assert view.canvas.slice_at(inside) >= 0
    assert view.canvas.slice_at(QPointF(frame.left_px - 2, rect.center().y())) < 0
    view.render(QImage(view.size(), QImage.Format.Format_RGB32))


def test_the_edge_is_dragged_and_a_double_click_brings_the_fitting_width_back(view: TimelineView) -> None:
    fitting, y = view.canvas.head_px, 120
    for width in (260, 70):
        edge = QPoint(view.canvas.head_px - 1, y)
        QTest.mouseMove(view.canvas, edge)
        assert view.canvas.cursor().shape() == Qt.CursorShape.SplitHCursor
        scroll, window = view.canvas.scroll_px, (view.document.viewport.start_ns, view.document.viewport.end_ns)
        drag(view, edge, QPoint(width, y))
        parts = (view.canvas, view.strip, view.minimap, view.axis)
        assert {part.head_px for part in parts} == {width}
        assert view.canvas.frame().left_px == width
        assert (view.canvas.scroll_px, view.document.viewport.start_ns, view.document.viewport.end_ns) == (
            scroll,
            *window,
        )
    QTest.mouseDClick(view.canvas, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, QPoint(69, y))
    assert view.canvas.head_px == fitting


def test_the_width_is_within_the_timeline_and_kept_with_the_trace(view: TimelineView) -> None:
    view.headings.set_width(5000)
    assert DRAGGED_PX < view.canvas.head_px <= DRAGGED_SHARE * view.canvas.wide() + 1
    view.headings.set_width(3)
    assert view.canvas.head_px == DRAGGED_PX
    wider = next(act for title, _, act in view.offers() if title == "Wider headings")
    wider()
    kept = view.canvas.head_px
    assert kept > DRAGGED_PX
    state = view.state()
    view.headings.set_width(0)
    view.restore_state(state)
    assert view.canvas.head_px == kept
    for wrong in (-4, "wide", True, 10**9, None):
        view.restore_state({**state, "headings": wrong})
        assert view.canvas.head_px == kept
    view.render(QImage(view.size(), QImage.Format.Format_RGB32))


def test_a_kept_width_is_the_same_whatever_room_there_was_when_it_came(view: TimelineView) -> None:
    size = view.size()
    view.headings.set_width(260)
    for _ in range(2):
        state = view.state()
        view.resize(120, 90)
        view.restore_state(state)
        view.resize(size)
        assert view.state()["headings"] == view.canvas.head_px == 260
