"""What is kept between frames must not be seen: kept boxes, stand-ins, hits, headers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QColor, QImage, QPainter

from benchmarks.synthetic import make_trace
from core.lanes import LaneIndex
from core.search import search
from gui.timeline import labels, slices
from gui.timeline.hits import hit_lanes
from gui.timeline.labels import draw_text, slice_font
from gui.timeline.row import ROOMY_LANE_PX, ROOMY_MODULE_LANES
from gui.timeline.still import Still
from gui.timeline.view import TimelineView


@pytest.fixture(scope="module")
def trace():
    return make_trace(60_000, threads=4)


def settled(view: TimelineView) -> QImage:
    image = QImage(view.canvas.size(), QImage.Format.Format_RGB32)
    for _ in range(30):
        view.canvas.render(image)
        if not view.canvas.incomplete:
            break
    assert not view.canvas.incomplete
    return image


def test_a_view_looks_the_same_however_it_was_reached(make_view: Callable[..., TimelineView], trace) -> None:
    one, other = make_view(trace), make_view(trace)
    port = one.document.viewport
    target = (port.span_ns * 0.4, port.span_ns * 0.4 + 3_000_000)
    other.document.zoom_to(*target)
    direct = settled(other)
    for factor in (0.5, 0.2, 0.1, 0.3, 2.0, 0.5):
        one.document.zoom_to(*port.zoomed(factor, port.span_ns * 0.41), remember=False)
        settled(one)
    for shift in (0.3, -0.7, 0.2):
        port.pan(port.width_ns * shift)
        one.document.viewChanged.emit()
        settled(one)
    one.canvas.set_scroll(50)
    settled(one)
    one.canvas.set_scroll(0)
    one.document.zoom_to(*target)
    assert settled(one) == direct


def test_kept_boxes_stand_in_only_while_time_is_short(
    make_view: Callable[..., TimelineView], trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = make_view(trace)
    settled(view)
    monkeypatch.setattr(slices, "FRESH_AT_LEAST", 0)
    monkeypatch.setattr(slices, "FRESH_S", -1.0)
    port = view.document.viewport
    view.document.zoom_to(*port.zoomed(0.45, port.span_ns / 2), remember=False)
    image = QImage(view.canvas.size(), QImage.Format.Format_RGB32)
    view.canvas.render(image)
    assert view.canvas.incomplete
    monkeypatch.setattr(slices, "FRESH_S", 10.0)
    fresh = settled(view)
    assert fresh != image


def test_a_machine_too_slow_for_the_budget_gets_sharp_all_the_same(
    make_view: Callable[..., TimelineView], trace, monkeypatch
) -> None:
    view = make_view(trace)
    settled(view)
    monkeypatch.setattr(slices, "FRESH_S", -1.0)  # every frame is late from its first row on
    port = view.document.viewport
    view.document.zoom_to(*port.zoomed(0.45, port.span_ns / 2), remember=False)
    image = QImage(view.canvas.size(), QImage.Format.Format_RGB32)
    for _ in range(len(view.rows.rows)):
        view.canvas.render(image)
    assert not view.canvas.incomplete


def test_a_jump_far_away_is_painted_at_once(make_view: Callable[..., TimelineView], trace, monkeypatch) -> None:
    view = make_view(trace)
    settled(view)
    monkeypatch.setattr(slices, "FRESH_S", -1.0)
    port = view.document.viewport
    view.document.zoom_to(port.span_ns / 2, port.span_ns / 2 + 20_000)
    frame = view.canvas.frame()
    image = QImage(frame.width_px, frame.height_px, QImage.Format.Format_RGB32)  # it must outlive its painter
    painter = QPainter(image)
    row = next(r for r in view.rows.rows if r.track_id == 1)
    boxes = view.canvas._painter._boxes(frame, row)
    assert boxes.bin_ns == frame.bin_ns
    painter.end()


def test_every_row_has_its_name_in_the_header_column(make_view: Callable[..., TimelineView], trace) -> None:
    view = make_view(trace)
    for scroll in (0, 30):
        view.canvas.set_scroll(scroll)
        image, frame = settled(view), view.canvas.frame()
        for row in frame.visible_rows():
            top = frame.row_y(row)
            if row.pinned or top >= view.rows.pinned_px:
                area = image.copy(20, top + 2, 140, max(min(row.height, image.height() - top) - 4, 1))
                inks = {area.pixel(x, y) for x in range(area.width()) for y in range(area.height())}
                assert len(inks) > 4 or area.height() < 12, (row.key, scroll)


def test_hits_are_split_as_the_lanes_are(trace) -> None:
    hits = search(trace, "conv2d")
    lanes, index = hit_lanes(trace, hits), LaneIndex(trace)
    assert hit_lanes(trace, hits) is lanes
    total = 0
    for track in range(len(trace.tracks)):
        for depth, lane in enumerate(index.lanes(track)):
            wanted = lane.ids[np.isin(lane.ids, hits)]
            assert lanes.lane(track, depth).ids.tolist() == wanted.tolist()
            total += len(wanted)
    assert total == len(hits)
    columns = lanes.pixels(0, float(trace.span_ns[1]), 300)
    assert len(columns) <= 301
    assert (np.diff(columns) > 0).all()


def test_deep_stacks_stay_bounded_and_reach_their_end(make_view: Callable[..., TimelineView]) -> None:
    from tests.trace_builder import TraceBuilder, rows

    made = TraceBuilder(gpu=None, with_stack=1)
    for depth in range(600):
        made.python(f"deep.py({depth}): call_{depth}", depth * 0.1, 1000 - depth * 0.2)
    view = make_view(made.build(), figures=False)
    row = next(r for r in view.rows.rows if r.is_python)
    assert row.height <= ROOMY_MODULE_LANES * ROOMY_LANE_PX + 6
    deepest = rows(view.document.trace, "deep.py(599): call_599")[0]
    view.go_to(deepest)
    settled(view)
    assert row.height < 14 * ROOMY_LANE_PX + 8
    assert view.canvas.frame().rect_of(deepest) is not None


def test_what_moves_is_drawn_once_and_what_rests_is_kept(make_view: Callable[..., TimelineView]) -> None:
    still, image = Still(), QImage(40, 20, QImage.Format.Format_RGB32)
    drawn: list[QPainter] = []

    def paint(key: int) -> QPainter:
        def draw(on: QPainter) -> None:
            drawn.append(on)
            on.fillRect(0, 0, 40, 20, QColor(key, 80, 120))

        painter = QPainter(image)
        still.paint(painter, (key,), QSize(40, 20), 1.0, draw)
        painter.end()
        assert image.pixelColor(39, 19) == QColor(key, 80, 120)
        return painter

    for key in (1, 2, 3):
        assert paint(key) is drawn[-1]  # straight
        assert len(drawn) == key
    paint(3)  # at rest: into a picture
    paint(3)
    assert len(drawn) == 4
    still.forget()
    paint(3)
    assert len(drawn) == 5


def test_between_device_pixels_all_is_drawn_into_the_picture(make_view: Callable[..., TimelineView]) -> None:
    still, image, on = Still(), QImage(40, 20, QImage.Format.Format_RGB32), []
    painter = QPainter(image)
    painter.translate(0.25, 0)
    still.paint(painter, (1,), QSize(40, 20), 1.0, on.append)
    painter.end()
    assert on
    assert painter not in on


def test_a_text_is_laid_out_once_for_all_rooms_it_fits(make_view: Callable[..., TimelineView]) -> None:
    image = QImage(300, 40, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    painter.setFont(slice_font())
    labels._line.cache_clear()
    for room in (150, 170, 200):
        draw_text(painter, QRectF(0, 0, room, 20), "12 ms", QColor("white"))
    assert labels._line.cache_info().misses == 1
    shown = labels._line("a name " * 9, (11, slice_font().weight()), 60)
    assert shown.text.text().endswith("…")
    assert shown.width <= 60
    painter.end()
