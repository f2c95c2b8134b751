"""Both timelines of a comparison are seen at once, and the handle between them shares out their height."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from core.analysis import analyze
from core.compare import Comparison
from core.figures.model import Summary
from core.importing import open_trace
from core.same_program import Condition
from gui import compare_words, text
from gui.compare_side import SideTitle
from gui.main_window import MainWindow
from gui.panels.compare import ComparePage
from gui.screenshot import settle
from gui.session import Document
from gui.timeline.view import TimelineView
from gui.tour_story import sample
from gui.widgets.empty import EmptyState


def compared(window: MainWindow, *stages: int) -> ComparePage:
    """Two stages of the example side by side."""
    window.resize(1368, 842)
    for number in stages:
        trace = open_trace(sample(number))
        document = Document(trace)
        window.session.add_document(document)
        document.set_analysis(analyze(trace))
    window.run_command("compare")
    settle()
    page = window.findChild(ComparePage)
    assert page is not None
    return page


def test_what_one_side_lacks_takes_no_time_but_is_not_there(window: MainWindow, qtbot: QtBot) -> None:
    page = compared(window, 0, 6)
    qtbot.waitUntil(lambda: page.tabs.widget(1).model.total > 0)
    states: list[str] = []
    for place, own in ((1, True), (2, False), (3, True), (4, False)):  # nothing runs inside a kernel or a wait
        model = page.tabs.widget(place).model
        titles = [model.headerData(k, Qt.Orientation.Horizontal) for k in range(model.columnCount())]
        assert ("Own time before" in titles) is own
        for row in range(model.rowCount()):
            cells = [model.index(row, k).data() for k in range(model.columnCount())]
            there = {"gone": (True, False), "new": (False, True)}.get(cells[1], (True, True))
            assert tuple(cell != "–" for cell in cells[3:5]) == tuple(cell != "–" for cell in cells[5:7]) == there
        states += [model.index(row, 1).data() for row in range(model.rowCount())]
        assert ",-2.0," not in model.csv()
    assert "gone" in states


def test_both_timelines_are_in_view_and_can_be_shared_out(window: MainWindow) -> None:
    page = compared(window, 0, 1)
    assert page.timelines.count() == 2
    for place in (0, 1):
        shown = page.timelines.widget(place)
        assert shown is not None
        assert shown.visibleRegion().boundingRect().height() == shown.height() > 0
    for view in page.timelines.findChildren(TimelineView):
        assert not view.strip.isVisible() and not view.minimap.isVisible()  # of the whole trace: a step of each counts
    assert page.grid.is_across()
    first, second = page.timelines.sizes()
    assert first == pytest.approx(second, abs=2)
    page.timelines.moveSplitter(first - 60, 1)
    assert page.timelines.sizes()[0] == pytest.approx(first - 60, abs=2)


def test_a_selected_slice_is_told_of_over_its_timeline(window: MainWindow) -> None:
    page = compared(window, 0, 1)
    first, second = (page.timelines.widget(at).findChild(SideTitle) for at in (0, 1))
    document = window.session.documents[0]
    document.select(-1)
    assert first.full_text() == f"Before: {document.title}"
    chosen = next(i for i in range(len(document.trace.slices)) if document.trace.name(i) == "aten::cudnn_convolution")
    document.select(chosen)
    assert first.full_text().startswith(f"Before: {document.title} · selected: aten::cudnn_convolution · operator")
    assert " ".join(text.duration(int(document.trace.slices.dur_ns[chosen])).split()) in first.full_text()
    assert "selected: aten::cudnn" not in second.full_text()


def opened(page: ComparePage, tab: int, wanted: str) -> None:
    """Open the first row whose name or state begins like this, as a double click does."""
    page.tabs.setCurrentIndex(tab)
    table = page.tabs.widget(tab).table
    model = table.model()
    rows = [r for r in range(model.rowCount()) if any(model.index(r, c).data().startswith(wanted) for c in (0, 1))]
    table.doubleClicked.emit(model.index(rows[0], 0))


@pytest.mark.parametrize(("tab", "name"), [(1, "aten::add_"), (2, "Memcpy"), (3, "Optimizer.step"), (4, "cuda")])
def test_a_row_leads_to_what_it_stands_for_in_both_timelines(
    window: MainWindow, qtbot: QtBot, tab: int, name: str
) -> None:
    page = compared(window, 0, 1)
    qtbot.waitUntil(lambda: page.tabs.widget(1).model.total > 0)
    opened(page, tab, name)
    assert page.tabs.currentWidget() is page.timelines
    lengths = []
    for document in window.session.documents:
        chosen, view = document.selected_slice, document.viewport
        assert chosen >= 0 and document.trace.name(chosen).startswith(name)
        start = int(document.trace.slices.start_ns[chosen])
        assert view.start_ns <= start and start + int(document.trace.slices.dur_ns[chosen]) <= view.end_ns
        lengths.append(view.width_ns)
    assert lengths[0] == pytest.approx(lengths[1])  # they still move together


def test_a_row_of_what_is_gone_selects_nothing_where_it_is_not(window: MainWindow, qtbot: QtBot) -> None:
    page = compared(window, 0, 6)
    qtbot.waitUntil(lambda: page.tabs.widget(1).model.total > 0)
    before, after = window.session.documents
    after.select(5)
    opened(page, 1, "gone")
    assert before.selected_slice >= 0
    assert after.selected_slice == -1


def test_a_row_of_a_suggestion_opens_it_in_the_trace_that_has_it(window: MainWindow, qtbot: QtBot) -> None:
    page = compared(window, 0, 6)
    qtbot.waitUntil(lambda: page.tabs.widget(5).model.total > 0)
    opened(page, 5, "vanished")
    before = window.session.documents[0]
    assert window.session.current is before
    assert before.current_suggestion >= 0


def test_an_empty_comparison_says_what_is_missing(window: MainWindow) -> None:
    page = compared(window)
    assert page.timelines.count() == 1
    assert page.timelines.findChild(EmptyState).words.text() == "Choose two traces that are open."


def test_noise_is_told_only_where_it_leaves_a_change_open() -> None:
    nothing = ((), (), (), (), ())
    same = Comparison(Summary(step_ns=5e6), Summary(step_ns=5e6), True, *nothing, noise=("spread",))
    moved = replace(same, after=Summary(step_ns=6e6))
    unknown = replace(same, after=Summary())
    assert [bool(compare_words.doubts(found)) for found in (same, moved, unknown)] == [False, True, False]
    cut = replace(unknown, cut_off=("after",), recording=Condition("recording", "stacks", ""))
    assert "The trace after breaks off" in compare_words.doubts(cut)
    assert "stacks before; nothing more after" in compare_words.doubts(cut)
    assert "Steps recorded: 5 and 2." in compare_words.what_changed(
        replace(moved, before=Summary(step_ns=5e6, steps=5), after=Summary(step_ns=6e6, steps=2))
    )
