"""Evidence is shown with the device work that it waits for: both rows are in view, in windows of any usual size."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication

from core.analysis import analyze
from core.importing import open_trace
from core.trace import Trace
from gui import text_size
from gui.main_window import MainWindow
from gui.screenshot import dispose, picture_window, settle
from gui.timeline import navigation
from gui.timeline.tooltip import header_lines
from gui.timeline.view import TimelineView
from gui.tour_story import sample
from tests.shared import needs_shared, trace_path


@pytest.fixture(scope="module")
def assert_station() -> Trace:
    """Station whose evidence is an operator three levels above the call that blocks."""
    return open_trace(sample(1))


@pytest.fixture
def window(qapp: QApplication, assert_station: Trace) -> Iterator[MainWindow]:
    made = picture_window(assert_station, analyze(assert_station), (1440, 900))
    yield made
    dispose(made)


def timeline_of(window: MainWindow) -> TimelineView:
    page = window.current_page()
    assert page is not None
    assert isinstance(page.timeline, TimelineView)
    return page.timeline


def is_seen(view: TimelineView, slice_id: int) -> bool:
    """The whole lane of a slice is in view."""
    place, frame = view.canvas.frame().place_of(slice_id), view.canvas.frame()
    if place is None:
        return False
    return frame.layout.pinned_px <= place[1] and place[1] + frame.slice_px <= view.canvas.high()


def test_the_call_that_blocks_and_the_work_it_waits_for_are_both_in_view(window: MainWindow) -> None:
    view = timeline_of(window)
    figures = view.document.analysis.figures if view.document.analysis else None
    for size in ((1440, 900), (1600, 1000), (1368, 842), (1000, 700), (900, 600)):
        window.resize(*size)
        settle()
        view.document.show_suggestion(0)
        settle()
        call, work = navigation.waiting(figures, view.document.trace, view.document.selected_slice)
        assert call >= 0
        assert work >= 0
        assert is_seen(view, call), size
        assert is_seen(view, work), size


def test_asked_for_again_after_another_text_size_both_are_in_view(window: MainWindow) -> None:
    view = timeline_of(window)
    window.resize(900, 600)
    settle()
    view.document.show_suggestion(0)
    settle()
    call, work = navigation.waiting(view.canvas.frame().figures, view.document.trace, view.document.selected_slice)
    for scale in (1.5, 1.0):
        window.session.set_text_scale(scale)
        settle()
        view.canvas.set_scroll(0)  # by hand: it stays away until it is asked for
        view.document.show_suggestion(0)
        settle()
        assert is_seen(view, call), scale
    assert is_seen(view, work)


def test_with_the_usual_text_size_again_the_operator_is_in_view_as_before(window: MainWindow) -> None:
    view = timeline_of(window)
    window.resize(900, 600)
    settle()
    view.document.show_suggestion(0)
    settle()
    assert is_seen(view, view.document.selected_slice)
    for scale in (1.5, 1.0):
        window.session.set_text_scale(scale)
        settle()
        view.document.show_suggestion(0)
        settle()
    assert is_seen(view, view.document.selected_slice)


def test_what_is_in_view_already_is_not_scrolled(window: MainWindow) -> None:
    view = timeline_of(window)
    window.resize(900, 600)
    settle()
    view.document.show_suggestion(0)
    settle()
    call, work = navigation.waiting(view.canvas.frame().figures, view.document.trace, view.document.selected_slice)
    operator = view.document.selected_slice
    before = view.canvas.scroll_px
    view.canvas.set_scroll(view.canvas.scroll_px - 1)
    while is_seen(view, work) and view.canvas.scroll_px > 0:
        view.canvas.set_scroll(view.canvas.scroll_px - 1)
    view.canvas.set_scroll(view.canvas.scroll_px + 1)
    here = view.canvas.scroll_px
    assert here < before
    assert is_seen(view, operator)
    assert is_seen(view, call)
    assert is_seen(view, work)
    view.document.show_suggestion(0)
    settle()
    assert view.canvas.scroll_px == here


def test_an_open_python_stack_between_them_is_folded(window: MainWindow) -> None:
    view = timeline_of(window)
    stack = next(row for row in view.rows.scrolled if row.is_python)
    view.toggle(stack.key, True)
    view.document.select(-1)
    view.go_to_sync(1)
    settle()
    figures = view.document.analysis.figures if view.document.analysis else None
    _, work = navigation.waiting(figures, view.document.trace, view.document.selected_slice)
    assert is_seen(view, view.document.selected_slice)
    assert is_seen(view, work)


def test_what_was_scrolled_away_by_hand_is_not_brought_back(window: MainWindow) -> None:
    view = timeline_of(window)
    window.resize(900, 600)
    settle()
    view.document.show_suggestion(0)
    settle()
    view.canvas.set_scroll(view.canvas.max_scroll_px())
    here = view.canvas.scroll_px
    view.canvas.fit_rows()
    settle()
    assert view.canvas.scroll_px >= here - 2 * view.rows.lane_px


def test_a_slice_that_is_clicked_moves_no_rows(window: MainWindow) -> None:
    view = timeline_of(window)
    window.resize(900, 600)
    settle()
    view.document.highlight(())
    view.canvas.set_scroll(0)
    operator = next(r for r in view.rows.scrolled if view.rows.lanes_of(r) and not r.is_python)
    before = view.rows.version
    view.document.select(int(view.rows.lanes_of(operator)[0].ids[0]))
    assert (view.rows.version, view.canvas.scroll_px) == (before, 0)


@needs_shared
def test_a_hit_is_in_view_though_its_row_has_fewer_lanes_where_it_is(qapp: QApplication) -> None:
    """Rows are fitted to what is in view, which changes with the jump to a hit."""
    trace = open_trace(trace_path("m14"))
    window = picture_window(trace, analyze(trace), (1440, 900))
    view = timeline_of(window)
    hit = next(i for i in range(len(trace.slices)) if trace.name(i) == "nccl:all_to_all")
    view.document.show_suggestion(0)
    settle()
    view.document.highlight(())
    view.document.select(-1)
    view.document.zoom_to(0, int(trace.end_ns.max()))
    settle()
    view.document.go_to_slice(hit)
    settle()
    seen = is_seen(view, hit)
    dispose(window)
    assert seen


@pytest.mark.parametrize("percent", [150, 200])
@pytest.mark.parametrize("size", [(900, 600), (1100, 700)])
def test_with_large_texts_the_call_and_its_work_are_in_view_too(
    window: MainWindow, size: tuple[int, int], percent: int
) -> None:
    view = timeline_of(window)
    window.resize(*size)
    text_size.choose(window.session, window.settings, percent)
    settle()
    view.document.show_suggestion(0)
    settle()
    call, work = navigation.waiting(view.canvas.frame().figures, view.document.trace, view.document.selected_slice)
    seen = is_seen(view, call), is_seen(view, work)
    text_size.choose(window.session, window.settings, 100)
    assert seen == (True, True)


def test_rows_left_out_between_them_are_told_and_come_back(window: MainWindow) -> None:
    view = timeline_of(window)
    window.resize(900, 600)
    text_size.choose(window.session, window.settings, 200)
    settle()
    view.document.show_suggestion(0)
    settle()
    rows = view.rows
    aside = rows.aside
    assert aside
    assert sum(rows.left_out_above(row) for row in rows.scrolled) == len(aside)
    frame = view.canvas.frame()
    below = next(row for row in rows.scrolled if rows.left_out_above(row))
    assert "left out" in header_lines(frame, below)[-1]
    ratio, y = view.canvas.ratio(), frame.row_y(below)
    picture = view.canvas.grab().toImage()
    line = {picture.pixelColor(round(x * ratio), round(y * ratio)).name() for x in range(6, frame.left_px - 6)}
    assert frame.palette.accent.name() in line
    view.reveal(int(view.document.trace.tracks.first_id[rows.by_key[next(k for k in aside if k[0] == "t")].track_id]))
    assert not rows.aside
    view.document.show_suggestion(0)
    view.document.highlight(())
    text_size.choose(window.session, window.settings, 100)
    assert not rows.aside
    assert aside <= {row.key for row in rows.scrolled}


@needs_shared
@pytest.mark.parametrize("size", [(900, 600), (1440, 900)])
def test_a_range_around_the_call_is_in_view_itself(qapp: QApplication, size: tuple[int, int]) -> None:
    """It stands in a row of its own, whose lower lanes the call and its work did not need."""
    trace = open_trace(trace_path("m38"))
    window = picture_window(trace, analyze(trace), size)
    view = timeline_of(window)
    analysis = view.document.analysis
    assert analysis is not None
    unseen, ranges = [], 0
    for index, suggestion in enumerate(analysis.suggestions):
        inside = [e.slices for e in suggestion.evidence if e.label.startswith("Inside the range") and e.slices]
        for slices in inside:
            view.document.show_suggestion(index)
            settle()
            view.document.show_slices(slices)
            settle()
            ranges += 1
            if not is_seen(view, view.document.selected_slice):
                unseen.append(trace.name(view.document.selected_slice))
    dispose(window)
    assert ranges > 3
    assert unseen == []


@needs_shared
def test_an_operator_scrolled_out_above_its_call_is_brought_back(qapp: QApplication) -> None:
    trace = open_trace(trace_path("d08"))
    window = picture_window(trace, analyze(trace), (1500, 950))
    view = timeline_of(window)
    analysis = view.document.analysis
    assert analysis is not None
    waits = next(k for k, s in enumerate(analysis.suggestions) if s.rule_id == "control-flow-on-device-tensor")
    other = next(s for k, s in enumerate(analysis.suggestions) if k != waits and s.rule_id == "launch-bound")
    view.document.show_slices(other.evidence[-1].slices)  # a Python frame, well below the operators
    settle()
    view.document.show_suggestion(waits)
    settle()
    seen = is_seen(view, view.document.selected_slice)
    dispose(window)
    assert seen
