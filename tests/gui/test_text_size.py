"""Text size: one factor over all texts, the timeline's labels and rows with them."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QTableView
from pytestqt.qtbot import QtBot

from gui import text_size
from gui.app import make_window
from gui.main_window import MainWindow
from gui.screenshot import settle
from gui.session import Document
from gui.settings import Settings
from gui.timeline.view import TimelineView
from gui.widgets.close_button import CloseButton


def timeline(window: MainWindow) -> TimelineView:
    page = window.current_page()
    assert page is not None
    assert isinstance(page.timeline, TimelineView)
    return page.timeline


def points(window: MainWindow) -> dict[str, float]:
    """Sizes of a text that follows the application, of one of its own, and of a bold one."""
    page = window.current_page()
    assert page is not None
    band = page.band("verdict")
    assert band is not None
    return {name: getattr(band, name).font().pointSizeF() for name in ("word", "sentence", "bar_name")}


def test_all_texts_grow_and_come_back(window: MainWindow, document: Document, settings: Settings) -> None:
    before, height = points(window), window.top.height()
    window.run_command("larger-text")
    window.run_command("larger-text")
    assert settings.get(text_size.KEY) == 125
    for name, size in points(window).items():
        assert size == pytest.approx(before[name] * 1.25), name
    assert window.top.height() == round(height * 1.25)
    window.run_command("theme")
    assert points(window)["word"] == pytest.approx(before["word"] * 1.25)
    window.run_command("smaller-text")
    assert settings.get(text_size.KEY) == 110
    window.run_command("normal-text")
    assert settings.get(text_size.KEY) == 0
    assert points(window) == pytest.approx(before)
    assert window.top.height() == height


def test_the_cross_of_a_tab_grows(window: MainWindow, document: Document) -> None:
    cross = window.top.findChild(CloseButton)
    assert cross is not None
    side = cross.width()
    text_size.choose(window.session, window.settings, 200)
    settle()
    assert (cross.width(), cross.height()) == (2 * side, 2 * side)
    assert cross.width() >= cross.fontMetrics().horizontalAdvance(cross.text())


def test_the_timeline_grows_with_its_rows(window: MainWindow, document: Document) -> None:
    window.resize(1400, 1300)
    view = timeline(window)
    lanes, strip = view.canvas.frame().lanes_px, view.strip.height()
    text_size.choose(window.session, window.settings, 150)
    settle()
    assert view.canvas.scale == 1.5
    assert view.strip.height() == round(strip * 1.5)
    assert view.canvas.wide() < view.canvas.width()
    assert view.canvas.frame().lanes_px < lanes
    assert view.canvas.frame().dpr == pytest.approx(1.5 * view.canvas.devicePixelRatioF())


def test_a_click_hits_the_slice_that_is_drawn_there(window: MainWindow, document: Document) -> None:
    view = timeline(window)
    text_size.choose(window.session, window.settings, 150)
    settle()
    wanted = next(i for i in range(len(document.trace.slices)) if document.trace.name(i) == "aten::item")
    view.reveal(wanted)
    rect = view.canvas.frame().rect_of(wanted)
    assert rect is not None
    at = QPointF(rect.center()) * 1.5
    QTest.mouseClick(view.canvas, Qt.MouseButton.LeftButton, pos=QPoint(round(at.x()), round(at.y())))
    assert document.selected_slice == wanted
    outline = view.canvas.frame().palette.outline
    view.canvas.point(None)
    image = view.canvas.grab().toImage()  # the selected slice is outlined where it was clicked
    assert image.pixelColor(round(at.x()), round(rect.top() * 1.5)) == outline


def test_rows_of_tables_grow(window: MainWindow, document: Document) -> None:
    window.show_panel("operators")
    page = window.current_page()
    assert page is not None
    panel = page.panel("operators")
    assert panel is not None
    table = panel.findChildren(QTableView)[0]
    before = table.verticalHeader().defaultSectionSize()
    text_size.choose(window.session, window.settings, 200)
    settle()
    assert table.verticalHeader().defaultSectionSize() == 2 * before


def test_the_size_is_there_at_the_next_start(window: MainWindow, settings: Settings) -> None:
    text_size.choose(window.session, settings, 125)
    other = make_window(settings, dark=True)
    assert other.session.text_scale == 1.25
    assert text_size.factor() == 1.25
    text_size.apply(1.0)
    other.deleteLater()


def test_sizes_of_the_list_and_the_automatic_one() -> None:
    assert text_size.next_of(100, 1) == 110
    assert text_size.next_of(200, 1) == 200
    assert text_size.next_of(80, -1) == 80
    assert text_size.nearest(104) == 100
    assert text_size.automatic(1080) == 100
    assert text_size.automatic(2160) == 125


def test_the_plan_gets_wider_with_its_words(window: MainWindow, document: Document, qtbot: QtBot) -> None:
    page = window.current_page()
    assert page is not None
    before = page.horizontal.sizes()[-1]
    text_size.choose(window.session, window.settings, 150)
    qtbot.waitUntil(lambda: page.horizontal.sizes()[-1] > before)
    assert page.vertical.sizes()[-1] <= sum(page.vertical.sizes()) // 2


def test_headings_of_the_page_that_lies_behind_have_the_size_when_it_comes_to_the_front(
    window: MainWindow, document: Document, settings: Settings
) -> None:
    window.show_page("start")
    settle()
    title = next(made for made in window.pages["start"].findChildren(QLabel) if "slow" in made.text())
    usual, height = title.font().pointSizeF(), title.fontMetrics().height()
    for percent in (150, 200, 100):
        window.session.set_current(document)
        settle()
        text_size.choose(window.session, settings, percent)
        window.show_page("start")
        settle()
        assert title.font().pointSizeF() == pytest.approx(usual * percent / 100)
        assert title.fontMetrics().height() == pytest.approx(height * percent / 100, rel=0.1)
