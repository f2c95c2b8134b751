"""The smallest window: bands take a line each, and CPU and device are seen together."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from core.analysis import analyze
from core.importing import open_trace
from core.kinds import TrackKind
from gui import text_size
from gui.document_page import LOW_PX, VERY_LOW_PX, bottom_px
from gui.main_window import MainWindow
from gui.panels.plan import PlanPanel
from gui.screenshot import dispose, picture_window, settle
from gui.timeline.view import TimelineView
from gui.tour_story import sample
from gui.widgets.cut_name import CutText
from gui.widgets.labels import plain_tip


@pytest.fixture
def small(qapp: QApplication) -> Iterator[MainWindow]:
    """The first station of the tour in 900 x 600."""
    window = picture_window(open_trace(sample(0)), None, (900, 600))
    yield window
    dispose(window)


def parts(window: MainWindow) -> tuple[Any, Any, TimelineView]:
    page = window.current_page()
    assert page is not None
    assert isinstance(page.timeline, TimelineView)
    return page.band("tour"), page.band("verdict"), page.timeline


def test_tour_and_verdict_fold_to_a_line_and_come_back_with_the_room(small: MainWindow) -> None:
    tour, verdict, _ = parts(small)
    assert tour.words.isHidden()
    assert verdict.sentence.isHidden()
    assert verdict.short_sentence.full_text() == verdict.sentence.text()
    low = tour.height()
    tour.fold.click()
    settle()
    assert tour.words.isVisible()
    assert tour.height() > low
    tour.fold.click()
    assert tour.words.isHidden()
    small.resize(1400, 1000)
    settle()
    assert tour.words.isVisible()
    assert tour.fold.isHidden()
    assert verdict.sentence.isVisible()
    assert verdict.short_sentence.isHidden()


def test_the_device_is_seen_under_the_cpu(small: MainWindow) -> None:
    _, _, timeline = parts(small)
    stream = next(r for r in timeline.rows.scrolled if r.track_kind == TrackKind.DEVICE_STREAM)
    assert timeline.canvas.frame().row_y(stream) + stream.height <= timeline.canvas.high()


def test_the_lower_views_take_a_share_that_suits_the_height() -> None:
    for height in (200, 390, 600, 800, 1300, 1950):
        assert 0 < bottom_px(height) <= 0.5 * height
    assert bottom_px(390) < 0.3 * 390
    assert bottom_px(1950) > 340


def test_views_with_rows_take_more_of_a_low_page_than_details(small: MainWindow) -> None:
    page = small.current_page()
    assert page is not None
    page.document.select(0)
    settle()
    whole, details = sum(page.vertical.sizes()), page.vertical.sizes()[-1]
    assert VERY_LOW_PX < whole < LOW_PX
    page.show_panel("operators")
    assert 0.4 * whole < page.vertical.sizes()[-1] < 0.5 * whole  # the timeline keeps the larger part
    page.show_panel("details")
    assert page.vertical.sizes()[-1] == pytest.approx(details, abs=2)


@pytest.mark.parametrize("percent", [100, 150, 200])
def test_the_tours_words_can_be_asked_for_at_any_size_of_the_text(small: MainWindow, percent: int) -> None:
    text_size.choose(small.session, small.settings, percent)
    settle()
    tour, _, _ = parts(small)
    assert tour.fold.isVisible()
    assert tour.fold.width() >= tour.fold.sizeHint().width()
    tour.fold.click()
    settle()
    assert tour.words.isVisible()
    assert tour.words.height() >= tour.words.heightForWidth(tour.words.width())
    tour.fold.click()
    text_size.apply(1.0)


def test_with_large_texts_rows_of_the_timeline_are_seen(small: MainWindow) -> None:
    text_size.choose(small.session, small.settings, 150)
    settle()
    _, _, timeline = parts(small)
    canvas = timeline.canvas
    shown = [r for r in timeline.rows.scrolled if canvas.frame().row_y(r) + r.height <= canvas.high()]
    assert any(r.track_kind in (TrackKind.CPU_OPS, TrackKind.CPU_RANGES) for r in shown)
    page = small.current_page()
    assert page is not None
    assert page.bottom.height() >= page.bottom.tabBar().height()
    text_size.apply(1.0)


def test_a_short_text_stands_where_the_whole_has_no_room(qapp: QApplication) -> None:
    made = CutText()
    made.set_text("1.21 ms → 829 µs (−31 %)")
    made.set_short("−31 %")
    whole = made.sizeHint().width()
    assert made.fitting(whole) == "1.21 ms → 829 µs (−31 %)"
    assert made.fitting(whole // 2) == "−31 %"


@pytest.mark.parametrize("percent", [100, 125])
def test_the_first_card_is_seen_with_what_it_saves(
    qapp: QApplication, tmp_path: Path, percent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "own.json.gz"
    shutil.copy(sample(0), path)
    trace = open_trace(path)
    window = picture_window(trace, analyze(trace), (900, 600))
    page = window.current_page()
    assert page is not None
    plan = page.findChild(PlanPanel)
    monkeypatch.setattr(plan.lead, "show_lead", lambda _document: None)
    plan.lead.words.setText("The largest cause has a card without a number: how much of it can be hidden " * 2)
    plan.lead.show()
    text_size.choose(window.session, window.settings, percent)
    settle()
    plan._show_plan()
    settle()
    whole, saving = plan.area.widget(), plan._cards[0].saving
    assert 0 < saving.mapTo(whole, saving.rect().bottomLeft()).y() <= plan.area.viewport().height()
    text_size.choose(window.session, window.settings, 100)
    dispose(window)


def test_views_folded_to_their_tabs_open_and_fold_with_a_click(small: MainWindow, qtbot: QtBot) -> None:
    text_size.choose(small.session, small.settings, 200)
    settle()
    page = small.current_page()
    assert page is not None
    bar = page.bottom.tabBar()
    tabs_px = bar.height()
    assert page.bottom.height() <= tabs_px + 2
    heights = []
    for index in (2, 2):
        qtbot.mouseClick(bar, Qt.MouseButton.LeftButton, pos=bar.tabRect(index).center())
        settle()
        heights.append(page.bottom.height())
    text_size.choose(small.session, small.settings, 100)
    assert page.bottom.currentIndex() == 2
    assert heights[0] > 2 * tabs_px
    assert heights[1] <= tabs_px + 2


def test_in_the_lowest_page_the_main_figures_stand_beside_the_word(qapp: QApplication) -> None:
    trace = open_trace(sample(0))
    window = picture_window(trace, analyze(trace), (900, 600))
    _, verdict, _ = parts(window)
    usual = verdict.height()
    text_size.choose(window.session, window.settings, 200)
    settle()
    shown = [metric for metric in verdict._metrics if metric.isVisible()]
    assert shown[0].shown.name == "Sustained step"
    assert verdict.short_sentence.isHidden()
    assert verdict.toolTip() == plain_tip(verdict.sentence.text())
    for metric in shown:
        assert metric.width() >= metric.sizeHint().width()
        assert metric.geometry().center().y() < verdict.bar.geometry().top()
    assert verdict.height() < 1.3 * usual
    text_size.choose(window.session, window.settings, 100)
    settle()
    assert verdict.height() == usual
    dispose(window)


@pytest.mark.parametrize("percent", [100, 200])
def test_the_buttons_beside_the_tabs_stand_in_the_middle_of_their_line(small: MainWindow, percent: int) -> None:
    text_size.choose(small.session, small.settings, percent)
    settle()
    page = small.current_page()
    assert page is not None
    bar = page.bottom.tabBar()
    corner = page.bottom.cornerWidget(Qt.Corner.TopRightCorner)
    middles = {made.mapTo(page, made.rect().center()).y() for made in corner.findChildren(QPushButton)}
    line = bar.mapTo(page, bar.rect().center()).y()
    text_size.choose(small.session, small.settings, 100)
    assert middles
    assert all(abs(middle - line) <= 2 for middle in middles), (middles, line)
