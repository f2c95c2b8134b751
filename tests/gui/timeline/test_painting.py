"""Pictures of lanes probed for colours and positions against the tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QColor, QFontMetrics, QFontMetricsF, QImage, QPainter, QPixmap
from PySide6.QtWidgets import QApplication

from core.kinds import SliceKind, TrackKind
from core.lod import LEVELS
from gui import text
from gui.session import Mark, TimeRange
from gui.timeline import rects, slices
from gui.timeline.export import image_of
from gui.timeline.frame import HEADER_PX
from gui.timeline.labels import slice_font
from gui.timeline.overlays.syncs import label_words
from gui.timeline.palette import Look, fill, gap_colour, looks, palette
from gui.timeline.slices import beside_waits
from gui.timeline.view import TimelineView
from tests.gui.conftest import training
from tests.gui.timeline.conftest import place
from tests.trace_builder import TraceBuilder, rows


def picture(view: TimelineView) -> QImage:
    image = QImage(view.canvas.size(), QImage.Format.Format_RGB32)
    for _ in range(20):
        view.canvas.render(image)
        if not view.canvas.incomplete:
            break
    return image


def near(a: QColor, b: QColor, tolerance: int = 6) -> bool:
    return all(abs(x - y) <= tolerance for x, y in zip(a.getRgb()[:3], b.getRgb()[:3], strict=True))


def colours_of(image: QImage, slice_id: int, view: TimelineView) -> list[QColor]:
    rect = view.canvas.frame().rect_of(slice_id)
    assert rect is not None
    left, right = int(rect.left()) + 1, int(rect.right()) - 2
    return [image.pixelColor(x, int(rect.top()) + 1) for x in range(left, max(right, left + 1))]


@pytest.mark.parametrize("dark", [True, False])
def test_slices_stand_where_their_times_say_in_the_colour_of_their_kind(
    make_view: Callable[..., TimelineView], tmp_path: Path, dark: bool
) -> None:
    trace = training().build(tmp_path / "train.json")
    view = make_view(trace, dark=dark, figures=False)
    view.document.zoom_to(0, 1_000_000)
    image = picture(view)
    look = looks(trace, False)
    for name in ("aten::mm", "gemm_kernel", "loss", "aten::item", "cudaMemcpyAsync"):
        slice_id = rows(trace, name)[0]
        expected = fill(int(look[slice_id]), LEVELS, dark)
        assert all(near(c, expected) for c in colours_of(image, slice_id, view)), name
    frame = view.canvas.frame()
    kernel = rows(trace, "gemm_kernel")[0]
    y = place(view, kernel).y()
    line = [near(image.pixelColor(x, int(y - 6)), fill(int(look[kernel]), LEVELS, dark)) for x in range(frame.width_px)]
    xs = np.flatnonzero(line)
    assert abs(xs[0] - frame.x(60_000)) <= 1
    assert abs(xs[-1] + 1 - frame.x(560_000)) <= 2


def test_waits_are_red_and_nothing_else_is(make_view: Callable[..., TimelineView], tmp_path: Path) -> None:
    trace = training().build(tmp_path / "train.json")
    view = make_view(trace)
    view.document.zoom_to(0, 1_000_000)
    image = picture(view)
    wait = palette(True).wait
    call = rows(trace, "cudaMemcpyAsync")[0]
    assert any(near(c, wait, 30) for c in colours_of(image, call, view))
    for name in ("aten::mm", "gemm_kernel", "aten::_local_scalar_dense", "cudaLaunchKernel"):
        assert not any(near(c, wait, 60) for c in colours_of(image, rows(trace, name)[0], view)), name
    row = view.rows.by_key["syncs"]
    frame = view.canvas.frame()
    y = frame.row_y(row) + row.height // 2
    syncs = view.document.analysis.figures.syncs  # type: ignore[union-attr]
    inside = frame.x(float(syncs.wait_start_ns[0] + syncs.wait_ns[0] / 2))
    assert any(near(image.pixelColor(int(inside) + d, y), wait, 30) for d in range(-8, 8))
    before = int(frame.x(float(syncs.wait_start_ns[0]))) - 12
    assert not any(near(image.pixelColor(before - d, y), wait, 60) for d in range(8))


def test_the_line_leads_from_the_wait_to_the_work(view: TimelineView) -> None:
    view.document.zoom_to(0, 1_000_000)
    image = picture(view)
    figures = view.document.analysis.figures  # type: ignore[union-attr]
    end = figures.syncs.wait_start_ns[0] + figures.syncs.wait_ns[0]
    waited = int(figures.syncs.waited_id[0])
    assert waited >= 0
    x = int(view.canvas.frame().x(float(end)))
    top = int(place(view, int(figures.syncs.slice_id[0])).y()) + 10
    bottom = int(place(view, waited).y()) - 10
    red = [
        y
        for y in range(top, bottom)
        if any(
            image.pixelColor(x + d, y).red() > 150 and image.pixelColor(x + d, y).green() < 120
            for d in (-2, -1, 0, 1, 2)
        )
    ]
    assert len(red) > (bottom - top) * 0.3


def test_gaps_are_shaded_by_their_cause(view: TimelineView) -> None:
    view.document.zoom_to(0, 2_000_000)
    image = picture(view)
    gaps = view.document.analysis.figures.gaps  # type: ignore[union-attr]
    longest = int(np.argmax(gaps.end_ns - gaps.start_ns))
    stream = next(r for r in view.rows.rows if r.title == "stream 7")
    frame = view.canvas.frame()
    x = int(frame.x(float(gaps.end_ns[longest]))) - 3
    colour = image.pixelColor(x, frame.row_y(stream) + stream.height // 2)
    assert near(colour, gap_colour(int(gaps.cause[longest]), True), 8)


def test_slices_narrower_than_two_pixels_are_folded_and_still_seen(make_view: Callable[..., TimelineView]) -> None:
    made = TraceBuilder()
    for i in range(3000):
        made.op("aten::add", i * 2, 1)
    made.op("aten::lonely", 100_000, 0.5)
    view = make_view(made.build(), figures=False)
    image = picture(view)
    crowd, lonely = (rows(view.document.trace, name)[0] for name in ("aten::add", "aten::lonely"))
    frame = view.canvas.frame()
    y = int(place(view, crowd).y())
    ground = palette(True).lanes
    assert not near(image.pixelColor(int(frame.x(3_000_000)), y), ground, 10)
    x = int(frame.x(100_000_000))
    assert any(not near(image.pixelColor(x + d, y), ground, 10) for d in (-1, 0, 1))
    assert near(image.pixelColor(x - 20, y), ground, 10)


def test_labels_stand_only_where_there_is_room(make_view: Callable[..., TimelineView]) -> None:
    made = TraceBuilder().op("aten::wide_operator", 0, 1000).op("aten::narrow_operator", 1100, 8)
    view = make_view(made.build(), figures=False)
    image = picture(view)
    wide, narrow = (rows(view.document.trace, f"aten::{n}_operator")[0] for n in ("wide", "narrow"))

    def inks(slice_id: int) -> int:
        rect = view.canvas.frame().rect_of(slice_id)
        assert rect is not None
        area = image.copy(rect.toRect().adjusted(1, 1, -1, -1))
        return len({area.pixel(x, y) for x in range(area.width()) for y in range(area.height())})

    assert inks(wide) > 5
    assert inks(narrow) == 1


def test_selection_range_marks_hits_and_evidence_are_drawn(view: TimelineView) -> None:
    document = view.document
    trace = document.trace
    document.zoom_to(0, 1_000_000)
    plain = picture(view)
    before = [plain]

    def changed() -> bool:
        before.append(picture(view))
        return before[-1] != before[-2]

    document.select(rows(trace, "aten::mm")[0])
    assert changed()
    document.select_range(TimeRange(100_000, 300_000))
    assert changed()
    document.set_marks([Mark(500_000, 500_000, "here"), Mark(600_000, 700_000)])
    assert changed()
    document.set_search("item", np.asarray(rows(trace, "aten::item"), np.int32))
    assert changed()
    document.highlight(tuple(rows(trace, "cudaMemcpyAsync")))
    assert changed()
    view.toggle_legend()
    assert changed()
    view.toggle_colours()
    assert changed()


def test_flow_of_the_selection_leads_to_its_kernel(view: TimelineView) -> None:
    view.document.zoom_to(0, 1_000_000)
    without = picture(view)
    view.document.select(rows(view.document.trace, "cudaLaunchKernel")[0])
    image = picture(view)
    kernel = place(view, rows(view.document.trace, "gemm_kernel")[0])
    rect = view.canvas.frame().rect_of(rows(view.document.trace, "gemm_kernel")[0])
    assert rect is not None
    at = QPoint(int(rect.left()), int(kernel.y()))
    assert image.pixelColor(at) != without.pixelColor(at)


def test_rows_under_the_pinned_ones_do_not_shine_through(
    make_view: Callable[..., TimelineView], tmp_path: Path
) -> None:
    view = make_view(training().build(tmp_path / "train.json"))
    view.resize(1200, 330)
    view.document.zoom_to(0, 1_000_000)
    view.document.select(rows(view.document.trace, "loss")[0])
    view.canvas.set_scroll(0)
    top = view.rows.pinned_px
    here = picture(view).copy(HEADER_PX, 0, 900, top)
    assert view.canvas.max_scroll_px() > 40
    view.canvas.set_scroll(40)
    assert picture(view).copy(HEADER_PX, 0, 900, top) == here


def test_colours_of_names_are_stable_and_never_red() -> None:
    a = TraceBuilder().op("one", 0, 5).op("two", 10, 5).build()
    b = TraceBuilder().op("two", 0, 5).op("three", 5, 5).op("one", 10, 5).build()
    of_a = dict(zip(map(a.name, range(2)), looks(a, True).tolist(), strict=True))
    of_b = dict(zip(map(b.name, range(3)), looks(b, True).tolist(), strict=True))
    assert all(of_b[name] == look for name, look in of_a.items())
    for dark in (True, False):
        wait = palette(dark).wait
        for look in (*SliceKind, *Look, *range(32, 42)):
            colour = fill(int(look), LEVELS, dark)
            distance = sum(abs(x - y) for x, y in zip(colour.getRgb()[:3], wait.getRgb()[:3], strict=True))
            assert distance > 90, (look, dark)
            assert not (colour.hslSaturation() > 120 and (colour.hslHue() < 12 or colour.hslHue() > 345)), (look, dark)


@pytest.mark.parametrize("dark", [True, False])
def test_labels_can_be_read_on_every_fill(dark: bool) -> None:
    def luminance(colour: QColor) -> float:
        parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in colour.getRgbF()[:3]]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    text = luminance(palette(dark).label)
    for look in (*SliceKind, *Look, *range(32, 42)):
        ground = luminance(fill(int(look), LEVELS, dark))
        contrast = (max(text, ground) + 0.05) / (min(text, ground) + 0.05)
        assert contrast >= 2.7, (look, dark, contrast)


def test_texts_keep_their_place_on_a_screen_of_high_density(view: TimelineView) -> None:
    from gui.timeline.export import render_to_image

    port = view.document.viewport
    span = (port.start_ns, port.start_ns + 1_000_000.0)  # one step, with a hatched wait before the step's name
    image = render_to_image(view.document, 1200, 500, True, view_ns=span, scale=2.0)
    top = 2 * (view.canvas.y() + view.rows.by_key["steps"].y)
    band = [
        image.pixelColor(x, y).lightness()
        for x in range(2 * (HEADER_PX + 8), 2 * (HEADER_PX + 60))
        for y in range(top + 4, top + 36)
    ]
    assert max(band) > 120
    assert sum(value > 100 for value in band) > 60


def test_a_flow_leaves_the_label_of_its_launch_free(make_view: Callable[..., TimelineView]) -> None:
    made = TraceBuilder().op("aten::mm", 0, 500)
    trace = made.launch("gemm", at=100, call=300, start=700, dur=100).build()
    view = make_view(trace)
    launch = rows(trace, "cudaLaunchKernel")[0]
    frame = view.canvas.frame()
    plain = picture(view)
    view.document.select(launch)
    rect = frame.rect_of(launch)
    assert rect is not None
    inside = rect.adjusted(3, 3, -3, -4).toRect()
    chosen = picture(view)
    assert chosen.copy(inside) == plain.copy(inside)
    assert chosen != plain


@pytest.mark.parametrize("dark", [True, False])
def test_folded_work_of_a_stream_stands_as_high_as_it_covers_its_time(
    make_view: Callable[..., TimelineView], tmp_path: Path, dark: bool
) -> None:
    builder = TraceBuilder()
    for share, begin in ((0.2, 0), (0.45, 2_000), (0.95, 4_000)):
        for at in range(begin, begin + 1_000):
            builder.kernel("gemm_kernel", at, share)
    view = make_view(builder.build(tmp_path / "thin.json"), dark=dark, figures=False)
    view.document.zoom_to(0, 5_000_000)
    image, frame = picture(view), view.canvas.frame()
    row = next(r for r in frame.visible_rows() if r.track_kind == TrackKind.DEVICE_STREAM)
    top = round(frame.row_y(row) + frame.pad_px)
    ground = palette(dark).lanes
    high = []
    for middle_ns in (500_000, 2_500_000, 4_500_000):
        x = int(frame.x(middle_ns))
        drawn = [not near(image.pixelColor(x, top + y), ground) for y in range(frame.slice_px)]
        high.append(sum(drawn))
        assert drawn == sorted(drawn)  # from below
    assert high[0] < 0.4 * frame.slice_px < high[1] < 0.7 * frame.slice_px < high[2] == frame.slice_px


def test_the_texts_of_the_legend_stand_beside_their_colours_in_a_picture_of_the_whole(view: TimelineView) -> None:
    view.toggle_legend()
    alone = picture(view)
    whole = image_of(view)
    part = whole.copy(QRect(view.canvas.pos(), view.canvas.size()))
    assert part == alone.convertToFormat(part.format())


def test_a_wait_that_does_not_fit_its_label_is_left_out_whole(qapp: QApplication) -> None:
    metrics = QFontMetrics(slice_font())
    whole = f"cudaMemcpyAsync · {text.duration(5_270_000)}"
    room = metrics.horizontalAdvance(whole)
    assert label_words(metrics, "cudaMemcpyAsync", 5_270_000, room) == whole
    assert label_words(metrics, "cudaMemcpyAsync", 5_270_000, room - 1) == "cudaMemcpyAsync"


def test_labels_of_blocked_calls_keep_off_their_stripes(view: TimelineView, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = view.document.analysis.figures  # type: ignore[union-attr]
    call = int(figures.syncs.slice_id[0])
    start, wait = int(figures.syncs.wait_start_ns[0]), int(figures.syncs.wait_ns[0])
    other = rows(view.document.trace, "aten::mm")[0]
    ids = np.array([other, call], np.int32)

    def labels(wait_px: float) -> tuple[list[float], list[float], float]:
        width = wait * view.canvas.frame().lanes_px / wait_px
        view.document.zoom_to(start - width / 2, start + width / 2)
        frame = view.canvas.frame()
        x = frame.x(start) - 50.0
        at, room = beside_waits(frame, ids, np.full(2, x), np.full(2, 400.0))
        return (at - x).tolist(), room.tolist(), float(frame.x(start + wait) - x)

    moved, room, end = labels(30.0)
    assert (moved[0], room[0]) == (0.0, 400.0)
    assert moved[1] >= end and moved[1] + room[1] <= 400.0  # behind the stripes, where more is free
    assert labels(300.0)[1] == [400.0, 0.0]  # the stripes have a label
    monkeypatch.setattr(slices, "HATCH_FROM_PX", 1000)
    assert labels(30.0)[1] == [400.0, 400.0]  # plain


def test_a_cut_label_ends_between_two_letters(qapp: QApplication) -> None:
    metrics = QFontMetricsF(slice_font())
    for words in ("TimesformerForVideoClas", "AVAVAV To Ya"):
        assert metrics.horizontalAdvance(words) == pytest.approx(sum(map(metrics.horizontalAdvance, words)), abs=0.01)


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Python knows something else of Qt's at the first two addresses that an array has."""
    made, seen = rects.wrapinstance, list[int]()

    def wrapped(address: int, kind: type) -> object:
        seen.append(address)
        return QPoint() if len(seen) < 3 else made(address, kind)

    monkeypatch.setattr(rects, "wrapinstance", wrapped)
    return seen


def red_at_5(draw: Callable[[QPainter], None]) -> list[bool]:
    """Whether a white picture is red at 5, 10 and 15 px of its fifth line when something was drawn."""
    image = QImage(20, 20, QImage.Format.Format_RGB32)
    image.fill(QColor("white"))
    painter = QPainter(image)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor("red"))
    draw(painter)
    painter.end()
    return [image.pixelColor(x, 5) == QColor("red") for x in (5, 10, 15)]


def test_rectangles_are_drawn_where_something_else_of_qt_stood_at_their_address(
    qapp: QApplication, addresses: list[int]
) -> None:
    table = np.array([[2.0, 3.0, 10.0, 4.0]])
    assert red_at_5(lambda painter: rects.draw_rects(painter, table)) == [True, True, False]
    assert len(set(addresses)) == 3


def test_pieces_of_a_picture_are_drawn_where_something_else_of_qt_stood_at_their_address(
    qapp: QApplication, addresses: list[int]
) -> None:
    piece = QPixmap(4, 4)
    piece.fill(QColor("red"))
    target, source = np.array([[5.0, 5.0], [15.0, 5.0]]), np.array([[0.0, 0.0, 4.0, 4.0]] * 2)
    drawn = red_at_5(lambda painter: rects.draw_fragments(painter, piece, target, source, 1.0))
    assert drawn == [True, False, True]
    assert len(set(addresses)) == 3
