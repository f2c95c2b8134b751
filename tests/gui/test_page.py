"""The page of a trace: sizes of its parts, what a CPU recording shows, and that the keyboard reaches everything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QComboBox, QLineEdit, QTableView, QWidget
from pytestqt.qtbot import QtBot

from core.analysis import Analysis
from core.figures.compute import compute_figures
from core.trace import Trace
from gui import warmup
from gui.document_page import COMPACT_PX, DocumentPage, bottom_px, side_px
from gui.main_window import MainWindow
from gui.opening import title_of
from gui.screenshot import settle
from gui.session import Document, TimeRange
from gui.timeline.palette import coarse, looks
from gui.timeline.prepared import prepare
from gui.widgets.card import Card
from gui.widgets.cpu_time import ShareRow
from gui.widgets.labels import Clamped
from tests.gui.conftest import cpu_only, known_analysis, training


def page_of(window: MainWindow) -> DocumentPage:
    page = window.current_page()
    assert page is not None
    return page


def heights(page: DocumentPage) -> tuple[int, int]:
    timeline, bottom = page.vertical.sizes()
    return timeline, bottom


def test_views_under_the_timeline_are_low_until_something_is_selected(window: MainWindow, document: Document) -> None:
    page = page_of(window)
    timeline, bottom = heights(page)
    assert bottom <= COMPACT_PX + 60  # the tabs and a line
    document.select(0)
    timeline, grown = heights(page)
    assert grown > bottom
    assert timeline > 1.5 * grown
    document.select(-1)
    assert heights(page)[1] == bottom
    window.run_command("taller-details")
    tall = heights(page)[1]
    document.select(0)
    document.select(-1)
    assert heights(page)[1] == tall  # asked for by hand


def test_the_split_is_the_same_however_the_page_came_to_it(
    window: MainWindow, show: Callable[..., Document], trace: Trace
) -> None:
    sizes = []
    for late in (False, True):
        document = show(trace, None if late else known_analysis(trace))
        document.select(0)
        if late:  # the verdict above takes its height when the views below have theirs
            settle()
            document.set_analysis(known_analysis(trace))
        settle()
        page = page_of(window)
        assert page.vertical.sizes()[-1] == pytest.approx(bottom_px(sum(page.vertical.sizes())), abs=2)
        sizes.append(page.vertical.sizes())
    assert sizes[0] == sizes[1]


def test_a_split_made_by_hand_is_kept_and_one_that_was_not_is_not(
    window: MainWindow, show: Callable[..., Document], trace: Trace
) -> None:
    document = show(trace, known_analysis(trace))
    page = page_of(window)
    document.select(0)
    window.run_command("taller-details")
    page.save_layout()
    assert page._settings.get("window/bottom_split").isEmpty()
    window.run_command("taller-details")
    whole = sum(page.vertical.sizes())
    page.vertical.setSizes([whole - 150, 150])
    page.vertical.splitterMoved.emit(whole - 150, 1)  # by hand
    document.select(-1)
    settle()
    assert page.vertical.sizes()[-1] == 150
    page.save_layout()
    show(trace, known_analysis(trace))
    settle()
    assert page_of(window).vertical.sizes()[-1] == pytest.approx(150, abs=4)


def test_a_selected_stretch_makes_room_for_its_figures(window: MainWindow, document: Document) -> None:
    page = page_of(window)
    before = heights(page)[1]
    document.select_range(TimeRange(0, 1000))
    assert heights(page)[1] > before
    assert page.shown_panel() == "selection"
    document.select_range(None)  # Esc
    assert page.shown_panel() == "details"
    assert heights(page)[1] == before


@pytest.mark.parametrize("height_px", [480, 600, 800, 1000, 1440, 2160])
def test_the_timeline_dominates_at_every_height(height_px: int) -> None:
    assert bottom_px(height_px) <= 0.4 * height_px


def test_q_shows_and_hides_the_views(window: MainWindow, document: Document, qtbot: QtBot) -> None:
    page = page_of(window)
    page.timeline.setFocus()
    qtbot.keyClick(page.timeline, Qt.Key.Key_Q)
    assert page.bottom.isHidden()
    qtbot.keyClick(page.timeline, Qt.Key.Key_Q)
    assert not page.bottom.isHidden()


def focus_chain(start: QWidget) -> list[QWidget]:
    """Widgets in the order of the Tab key."""
    chain, at = [start], start.nextInFocusChain()
    while at is not start:
        chain.append(at)
        at = at.nextInFocusChain()
    return chain


def test_tab_reaches_everything_that_can_be_used(window: MainWindow, document: Document) -> None:
    page = page_of(window)
    for panel_id in page.panel_ids():
        page.show_panel(panel_id)
        reached = {id(w) for w in focus_chain(window) if w.focusPolicy() & Qt.FocusPolicy.TabFocus}
        for kind in (QAbstractButton, QLineEdit, QComboBox, QTableView, Card):
            for widget in page.findChildren(kind):
                own = not widget.objectName().startswith("qt_") and not isinstance(widget.parent(), QTableView)
                inside = widget.metaObject().className() in ("QLineEditIconButton", "QToolButton", "QTableCornerButton")
                close = widget.parent().metaObject().className().startswith("QTabBar")
                if widget.isVisible() and widget.isEnabled() and own and not inside and not close:
                    assert id(widget) in reached, f"{panel_id}: {widget}"
        assert page.timeline.focusPolicy() & Qt.FocusPolicy.TabFocus


def test_a_cpu_recording_shows_where_its_time_goes(window: MainWindow, show: Callable[..., Document]) -> None:
    trace = cpu_only().build()
    figures = compute_figures(trace)
    document = show(trace, Analysis(figures))
    shares = page_of(window).findChildren(ShareRow)
    assert shares
    best = int(np.argmax(figures.operators.host_self_ns))
    name = trace.strings[int(figures.operators.name_id[best])]
    assert name in shares[0].accessibleName()
    shares[0].setFocus()
    QTest.keyClick(shares[0], Qt.Key.Key_Space)
    assert trace.name(document.selected_slice) == name


def test_what_is_prepared_is_what_a_view_would_make(tmp_path: Path) -> None:
    trace: Trace = training().build(tmp_path / "train.json")
    ready, plain = prepare(trace), prepare(trace, whole=False)
    assert [r.key for r in ready.rows] == [r.key for r in plain.rows]
    assert np.array_equal(ready.looks, looks(trace, False))
    assert np.array_equal(ready.coarse_looks, coarse(ready.looks))
    first, second = ready.layout(), ready.layout()
    assert [r.key for r in first.rows] == [r.key for r in second.rows]
    assert first.rows[0] is not second.rows[0]  # views do not share what they change


def test_everything_needed_is_imported_once() -> None:
    import sys

    warmup.finish()
    assert {"gui.timeline.view", "gui.panels.plan", "core.analysis"} <= set(sys.modules)
    warmup.start()  # nothing more to do


def test_a_trace_is_named_by_its_file(tmp_path: Path) -> None:
    assert title_of(training().build(tmp_path / "train.json"), None) == "train.json"


def test_a_long_title_keeps_to_its_lines_and_tells_the_rest(qtbot: QtBot) -> None:
    words = "This looks like a negative log-likelihood loss that was written out by hand in many operators"
    title = Clamped(words, 2)
    qtbot.addWidget(title)
    title.resize(160, 60)
    title.show()
    lines = title.lines(160)
    assert len(lines) == 2
    assert lines[-1].endswith("…")
    assert words in title.toolTip()
    assert title.accessibleName() == words
    title.set_limit(0)
    assert " ".join(title.lines(160)) == words


def test_the_views_under_the_timeline_can_be_made_tall_and_come_back(window: MainWindow, document: Document) -> None:
    page = page_of(window)
    document.select(0)
    before = heights(page)
    window.run_command("taller-details")
    timeline, bottom = heights(page)
    assert bottom > 1.4 * timeline
    window.run_command("taller-details")
    assert heights(page) == before


def test_evidence_that_is_shown_gives_the_timeline_its_height_back(window: MainWindow, document: Document) -> None:
    page = window.current_page()
    assert page is not None
    page.grow()
    before = page.vertical.sizes()
    window.run_command("taller-details")
    assert page.vertical.sizes()[1] > before[1]
    document.show_suggestion(0)
    assert page.vertical.sizes() == before


def test_a_small_window_gives_back_what_it_took_from_plan_and_views(
    window: MainWindow, document: Document, qtbot: QtBot
) -> None:
    page = window.current_page()
    assert page is not None
    window.resize(1440, 900)
    page.grow()
    settle()
    before = page.horizontal.sizes()[-1], page.vertical.sizes()[-1]
    for width, height in ((900, 600), (1100, 700), (1440, 900)):
        window.resize(width, height)
        settle()
    after = page.horizontal.sizes()[-1], page.vertical.sizes()[-1]
    assert after == pytest.approx(before, abs=6)


def test_a_plan_that_was_made_wide_is_wide_in_any_window(window: MainWindow, document: Document) -> None:
    page = window.current_page()
    assert page is not None
    window.resize(1440, 900)
    settle()
    whole = sum(page.horizontal.sizes())
    page.horizontal.setSizes([whole - 560, 560])
    page.horizontal.splitterMoved.emit(whole - 560, 1)  # by hand
    window.resize(1000, 700)
    settle()
    assert page.horizontal.sizes()[-1] < 520
    window.resize(1440, 900)
    settle()
    assert page.horizontal.sizes()[-1] == pytest.approx(560, abs=8)


def test_the_sizes_of_a_small_window_are_no_burden_for_the_next_large_one(
    window: MainWindow, show: Callable[..., Document], trace: Trace
) -> None:
    window.resize(900, 600)
    settle()
    show(trace, known_analysis(trace))
    settle()
    page = window.current_page()
    assert page is not None
    page.grow()
    settle()
    page.save_layout()
    window.resize(1600, 1000)
    settle()
    show(trace, known_analysis(trace)).select(0)
    settle()
    page = window.current_page()
    assert page is not None
    assert page.horizontal.sizes()[-1] == pytest.approx(side_px(1600), abs=8)
    whole = sum(page.vertical.sizes())
    assert page.vertical.sizes()[-1] == pytest.approx(bottom_px(whole), rel=0.15)


def test_no_line_is_drawn_over_the_tabs_below(window: MainWindow, document: Document) -> None:
    """The document mode of the tabs draws one, and one at another height beside them."""
    page = window.current_page()
    assert page is not None
    assert page.bottom.documentMode()
    assert not page.bottom.tabBar().drawBase()
