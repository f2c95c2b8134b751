from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QBrush, QFontMetricsF, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from core.errors import TraceError
from core.figures.compute import compute_figures
from core.figures.step_parts import DEVICE, shown_length_ns
from core.kinds import GapCause, TrackKind
from gui.session import Document, TimeRange
from gui.timeline import step_strip, tooltip
from gui.timeline.axis import tick_step_ns, tick_text, ticks
from gui.timeline.frame import HEADER_PX
from gui.timeline.labels import slice_font
from gui.timeline.notes import notes_of
from gui.timeline.overlays.legend import TEXT_AT_PX, column_px, entries
from gui.timeline.palette import palette
from gui.timeline.row import RowKind
from gui.timeline.step_bounds import bound_colour, bound_text, bounds_of
from gui.timeline.tooltip import run_lines
from gui.timeline.view import TimelineView
from gui.widgets.stat_panel import FiguresTable, Rows
from tests.gui.conftest import cpu_only, training
from tests.trace_builder import TraceBuilder, rows

LEFT, NONE = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier


def image_of(widget) -> QImage:
    image = QImage(widget.size(), QImage.Format.Format_RGB32)
    widget.render(image)
    return image


def test_one_bar_per_step_as_high_as_its_period_in_the_colour_of_its_bound(view: TimelineView) -> None:
    figures = view.strip.figures()
    assert figures is not None
    bars, bounds = view.strip.bars_px(figures), bounds_of(figures)
    length = shown_length_ns(figures)
    assert len(bars) == 4
    assert np.argmax(bars[:, 3]) == np.argmax(length)
    image = image_of(view.strip)
    for step, (x, y, width, height) in enumerate(bars.tolist()):
        colour = image.pixelColor(int(x + width / 2), int(y + height / 2))
        assert colour == bound_colour(int(bounds[step]), palette(True))
        assert image.pixelColor(int(x + width / 2), int(y) - 2) == palette(True).strip


def test_what_bound_a_step_follows_its_idle_time(make_view: Callable[..., TimelineView]) -> None:
    def bound(busy: int, loader: bool = False) -> int:
        made = TraceBuilder()
        for k in range(4):
            at = k * 1000
            made.step(k, at, 990)
            if loader:
                made.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 5, 600)
            made.op("aten::mm", at + 620, 40).launch("gemm", at=at + 630, call=10, start=at + 650, dur=busy)
        figures = compute_figures(made.build())
        counted = np.flatnonzero(figures.step_figures.counted)
        return int(bounds_of(figures)[counted[len(counted) // 2]])

    assert bound(busy=960) == DEVICE
    assert bound(busy=200, loader=True) == GapCause.LOADER
    assert bound(busy=200) == GapCause.PYTHON


def test_click_on_a_bar_goes_to_its_step(view: TimelineView) -> None:
    figures = view.strip.figures()
    assert figures is not None
    x, y, width, _ = view.strip.bars_px(figures)[2]
    QTest.mouseClick(view.strip, LEFT, NONE, QPoint(int(x + width / 2), int(y) + 2))
    port = view.document.viewport
    assert port.start_ns < 2_000_000 < 2_990_000 < port.end_ns
    assert port.width_ns < 1_200_000
    assert "990" in view.strip.step_text(figures, 2)


def test_thousands_of_steps_keep_their_outlier_visible(make_view: Callable[..., TimelineView]) -> None:
    made = TraceBuilder(gpu=None)
    for k in range(3000):
        made.step(k, k * 10, 9.5 if k != 1500 else 9.9)
    view = make_view(made.build())
    figures = view.strip.figures()
    assert figures is not None
    bars = view.strip.bars_px(figures)
    assert bars[-1, 0] < view.strip.width()
    assert view.strip.step_at(bars[1500, 0] + 0.01) == 1500
    image_of(view.strip)


def test_without_steps_the_strip_says_so(make_view: Callable[..., TimelineView]) -> None:
    view = make_view(cpu_only().build())
    assert view.strip.count() == 0
    assert view.strip.height() < 30
    image_of(view.strip)


def test_a_stretch_that_begins_before_the_trace_leaves_the_heading_alone(view: TimelineView) -> None:
    port, heading = view.document.viewport, QRect(0, 0, HEADER_PX, view.minimap.height())
    before = image_of(view.minimap).copy(heading)
    view.document.select_range(TimeRange(port.first_ns - port.span_ns, port.last_ns + port.span_ns))
    assert image_of(view.minimap).copy(heading) == before


def test_minimap_shows_the_view_and_moves_it(view: TimelineView) -> None:
    port = view.document.viewport
    view.document.zoom_to(1_000_000, 2_000_000)
    lanes = view.minimap.width() - HEADER_PX
    start = HEADER_PX + round((port.start_ns - port.first_ns) / port.span_ns * lanes)
    image = image_of(view.minimap)
    line = [image.pixelColor(start + d, 17) for d in range(-2, 3)]
    assert any(c.lightness() > 150 for c in line)
    middle = start + round(0.5 * port.width_ns / port.span_ns * lanes)
    QTest.mousePress(view.minimap, LEFT, NONE, QPoint(middle, 17))
    QTest.mouseMove(view.minimap, QPoint(middle + 100, 17))
    QTest.mouseRelease(view.minimap, LEFT, NONE, QPoint(middle + 100, 17))
    assert port.start_ns == pytest.approx(1_000_000 + 100 / lanes * port.span_ns, rel=0.01)
    assert port.width_ns == pytest.approx(1_000_000)
    edge = HEADER_PX + round((port.end_ns - port.first_ns) / port.span_ns * lanes)
    QTest.mousePress(view.minimap, LEFT, NONE, QPoint(edge, 17))
    QTest.mouseMove(view.minimap, QPoint(edge + 50, 17))
    QTest.mouseRelease(view.minimap, LEFT, NONE, QPoint(edge + 50, 17))
    assert port.width_ns > 1_000_000
    QTest.mouseDClick(view.minimap, LEFT, NONE, QPoint(middle, 17))
    assert port.width_ns > port.span_ns


def test_hits_and_evidence_stand_on_the_minimap(view: TimelineView) -> None:
    plain = image_of(view.minimap)
    view.document.set_search("item", np.asarray(rows(view.document.trace, "aten::item"), np.int32))
    hits = image_of(view.minimap)
    assert hits != plain
    port, lanes = view.document.viewport, view.minimap.width() - HEADER_PX
    for slice_id in view.document.search_hits.tolist():
        start = int(view.document.trace.slices.start_ns[slice_id])
        x = HEADER_PX + int((start - port.first_ns) / port.span_ns * lanes)
        assert hits.pixelColor(x, 3) == palette(True).warn


@pytest.mark.parametrize(
    ("time_ns", "step_ns", "width_ns", "shown"),
    [
        (0, 1_000_000, 50_000_000, "0 ms"),
        (2_500_000, 500_000, 5_000_000, "2.5 ms"),
        (1_234_000, 2_000, 300_000, "1,234 µs".replace(",", "\u202f")),
        (12, 5, 100, "12 ns"),
        (-40_000, 20_000, 300_000, "−40 µs"),
        (3_200_000_000, 100_000_000, 5_000_000_000, "3.2 s"),
    ],
)
def test_ticks_are_labelled_in_the_unit_that_suits(time_ns: float, step_ns: float, width_ns: float, shown: str) -> None:
    assert tick_text(time_ns, step_ns, width_ns).replace("\u202f", " ") == shown.replace("\u202f", " ")


@pytest.mark.parametrize("ns_per_px", [0.02, 0.9, 17.0, 4_321.0, 9e6])
def test_ticks_are_one_two_five_apart_and_never_crowded(ns_per_px: float) -> None:
    step = tick_step_ns(ns_per_px)
    assert round(step / 10 ** np.floor(np.log10(step) + 1e-9), 6) in (1.0, 2.0, 5.0)
    assert 100 <= step / ns_per_px < 260
    times, same = ticks(1000, 1000 + 1000 * ns_per_px, 300, ns_per_px)
    assert same == step
    assert all(abs((t - 300) / step - round((t - 300) / step)) < 1e-6 for t in times)


def test_counters_stand_at_their_values(make_view: Callable[..., TimelineView]) -> None:
    made = TraceBuilder().op("aten::x", 0, 1000)
    made.memory(100, 512, 1 << 20, 1 << 22).memory(500, 512, 3 << 20, 1 << 22).memory(800, -512, 0, 1 << 22)
    made.kernel("k", 0, 500)
    view = make_view(made.build())
    image = image_of(view.canvas)
    frame = view.canvas.frame()
    row = view.rows.by_key["memory/0"]
    tops = {}
    for name, time in (("low", 300_000), ("high", 650_000), ("none", 900_000)):
        x = int(frame.x(time))
        column = [y for y in range(row.height) if image.pixelColor(x, frame.row_y(row) + y) == palette(True).accent]
        tops[name] = min(column)
    assert tops["high"] < tops["low"] < tops["none"]
    full, low = tops["none"] - tops["high"], tops["none"] - tops["low"]
    assert low / full == pytest.approx(1 / 3, abs=0.1)
    busy = view.rows.by_key["busy/0"]
    y = frame.row_y(busy) + busy.height - 8
    assert image.pixelColor(int(frame.x(250_000)), y) != image.pixelColor(int(frame.x(750_000)), y)


def test_unknown_is_said_and_not_drawn_as_zero(make_view: Callable[..., TimelineView], tmp_path: Path) -> None:
    view = make_view(training().build(tmp_path / "t.json"), figures=False)
    frame = view.canvas.frame()
    row = view.rows.by_key["queue"]
    image = image_of(view.canvas)
    y = frame.row_y(row) + 4
    column = {image.pixel(700, y + d) for d in range(row.height - 8)}
    assert len(column) == 1
    cpu = make_view(cpu_only().build())
    assert not any(key.startswith("busy/") for key in cpu.rows.by_key)
    assert compute_figures(cpu.document.trace).summary.gpu_busy_pct is None


def test_bars_are_not_called_periods_where_no_period_is_known(make_view: Callable[..., TimelineView]) -> None:
    known = make_view(training().build()).strip
    alone = make_view(TraceBuilder().step(1, 0, 100).kernel("k", 5, 80).build()).strip
    for strip, words in ((known, "period"), (alone, "host step")):
        figures = strip.figures()
        assert figures is not None
        assert strip.measure(figures) == words


def test_the_strip_is_painted_anew_only_when_other_steps_come_into_view(view: TimelineView) -> None:
    app, strip, painted = QApplication.instance(), view.strip, []
    view.show()
    app.processEvents()
    outline = strip._outline_steps
    strip._outline_steps = lambda *a: painted.append(1) or outline(*a)
    steps = strip.figures().steps
    start, end = float(steps.start_ns[1]), float(steps.end_ns[1])
    view.document.zoom_to(start, end)
    app.processEvents()
    assert len(painted) == 1
    view.document.zoom_to(start + 1000, end + 1000)
    app.processEvents()
    assert len(painted) == 1
    view.document.zoom_to(float(steps.start_ns[2]), float(steps.end_ns[2]))
    app.processEvents()
    assert len(painted) == 2


def test_a_lone_short_slice_is_a_mark_on_the_whole_trace(make_view: Callable[..., TimelineView]) -> None:
    view = make_view(TraceBuilder().op("first", 0, 10).op("lone", 500_000, 1).op("last", 1_000_000, 10).build())
    image = view.minimap._make_ground(palette(True)).toImage()
    columns = {x for x in range(HEADER_PX + 30, image.width() - 30) for y in range(3, image.height() - 2)
               if image.pixelColor(x, y) != palette(True).strip}  # fmt: skip
    assert 1 <= len(columns) <= 2
    assert abs(min(columns) - (HEADER_PX + (image.width() - HEADER_PX) / 2)) <= 2


def test_the_legend_tells_the_colours_of_the_steps_and_what_pale_is(view: TimelineView) -> None:
    figures = view.strip.figures()
    assert figures is not None
    found = {words: brush for brush, words in entries(view.canvas.frame())}
    bound = int(bounds_of(figures)[1])
    assert found[f"step · {bound_text(bound)}"].color() == bound_colour(bound, palette(True))
    assert found["pale or low: short slices, gaps"].gradient() is not None


def test_a_run_of_short_slices_says_how_much_of_it_they_cover(make_view: Callable[..., TimelineView]) -> None:
    made = TraceBuilder()
    for k in range(20_000):
        made.kernel("gemm", k * 100, 42)
    view = make_view(made.build())
    frame = view.canvas.frame()
    row = next(r for r in view.rows.scrolled if r.track_kind == TrackKind.DEVICE_STREAM)
    lane = view.rows.lanes_of(row)[0]
    time = frame.time_at(700)
    (line,) = run_lines(frame, lane, lane.at(time, 100_000), time)
    assert "42\u202f%" in line
    view.document.zoom_to(1_000_000, 1_000_300)  # now each is drawn by itself
    frame = view.canvas.frame()
    assert run_lines(frame, lane, int(lane.ids[10_000]), 1_000_020.0) == []


def test_the_number_beside_the_sync_points_is_of_all_steps(make_view: Callable[..., TimelineView]) -> None:
    for steps, said in ((2, "2 in all"), (1, "1"), (0, "1")):
        builder = TraceBuilder()
        for number in range(steps):
            builder.step(number, number * 1000, 990)
        for number in range(max(steps, 1)):
            at = number * 1000.0
            builder.op("aten::mm", at + 10, 20).launch("gemm", at + 12, 5, at + 30, 300)
            builder.op("aten::item", at + 100, 300)
            builder.copy("DtoH (Device -> Pageable)", at + 110, 280, at + 331, 2, bytes=8)
            builder.op("aten::mm", at + 500, 20).launch("gemm", at + 512, 5, at + 530, 300)
        canvas = make_view(builder.build()).canvas
        frame = canvas.frame()
        row = next(row for row in frame.layout.rows if row.kind is RowKind.SYNCS)
        assert notes_of(canvas.document, canvas.counters, frame, [row])[row.key] == said


def test_after_a_diagnosis_that_failed_nothing_is_said_to_be_worked_out(
    view: TimelineView, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    document = Document(view.document.trace)
    table = FiguresTable(document, lambda _: Rows([], []), name="Table")
    qtbot.addWidget(table)
    for made in (document, view.document):
        made.analysis = None
        made.set_analysis_state(running=False, error=TraceError("It failed."))
    drawn: list[str] = []
    monkeypatch.setattr(step_strip, "draw_text", lambda *a: drawn.append(a[2]))
    image_of(view.strip)
    assert drawn[-1] == "Not measured: the diagnosis failed."
    row = next(row for row in view.canvas.rows.rows if row.kind is RowKind.SYNCS)
    notes = notes_of(view.document, view.counters, view.canvas.frame(), [row])
    assert notes[row.key] == "unknown"
    assert "failed" in " ".join(label.text() for label in table.findChildren(QLabel))


@pytest.mark.parametrize("last_us", [300, 1900])
def test_the_slowest_step_says_what_its_time_is_where_it_has_no_period(
    make_view: Callable[..., TimelineView], last_us: int
) -> None:
    builder = TraceBuilder()
    for k in range(6):
        busy = last_us if k == 5 else 500
        builder.step(k, k * 1000, 990).launch("gemm", at=k * 1000 + 40, call=10, start=k * 1000 + 60, dur=busy)
    view = make_view(builder.build())
    figures = view.strip.figures()
    assert figures is not None
    assert view.strip.note(figures).endswith(", to the end of its work") is (last_us == 1900)


def test_long_names_are_broken_between_words() -> None:
    name = (
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, std::array<char*, 1ul> >(int)"
    )
    lines = tooltip._wrapped(name)
    assert lines[0].endswith("::") and lines[1].startswith("FillFunctor")
    assert "".join(lines).replace(" ", "") == name.replace(" ", "")
    assert [len(line) for line in tooltip._wrapped("x" * 150)] == [64, 64, 22]
    assert tooltip._wrapped("") == [""]


def test_the_words_of_the_legend_are_never_cut(qapp: QApplication) -> None:
    words = "device idle: compiling or loading modules"
    long = column_px([(QBrush(), words), (QBrush(), "kernel")])
    assert long > column_px([(QBrush(), "kernel")])
    assert long - TEXT_AT_PX - 4 >= QFontMetricsF(slice_font()).horizontalAdvance(words)
