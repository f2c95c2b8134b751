"""The column of headings gives way to the lanes where the timeline is narrow, in all its parts alike."""

from __future__ import annotations

from PySide6.QtCore import QPointF
from PySide6.QtGui import QImage

from gui.timeline.frame import HEADER_PX, LEAST_HEADER_PX, header_px
from gui.timeline.view import TimelineView


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
