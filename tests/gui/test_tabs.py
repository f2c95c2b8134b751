"""Tabs keep readable titles, and every tab can be closed from the keyboard."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from gui.dialogs import matches
from gui.main_window import MainWindow
from gui.session import Document
from gui.widgets.tabs import LEAST_PX, DocumentTabs


def test_many_tabs_scroll_instead_of_shrinking(qtbot: QtBot) -> None:
    tabs = DocumentTabs()
    qtbot.addWidget(tabs)
    tabs.resize(400, 40)
    for number in range(12):
        tabs.addTab(f"a_long_name_of_a_trace_{number}.pt.trace.json.gz")
    tabs.addTab("Compare")
    tabs.show()
    widths = [tabs.tabRect(i).width() for i in range(tabs.count())]
    assert min(widths[:-1]) >= LEAST_PX
    assert widths[-1] >= tabs.fontMetrics().horizontalAdvance("Compare")


def test_the_tab_in_front_closes_be_it_a_page_or_a_trace(window: MainWindow, document: Document) -> None:
    assert window.session.current is document
    window.show_page("launch")
    titles = [window.top.tabs.tabData(i) for i in range(window.top.tabs.count())]
    assert "launch" in titles
    window.run_command("close")
    assert "launch" not in [window.top.tabs.tabData(i) for i in range(window.top.tabs.count())]
    assert window.session.current is document
    window.run_command("close")
    assert window.session.documents == []


def test_from_the_start_page_a_click_on_the_only_tab_leads_back(window: MainWindow, document: Document) -> None:
    tabs = window.top.tabs
    window.run_command("start")
    assert window.session.current is None
    assert tabs.property("none") is True
    window.run_command("close")  # closes what is shown, and the start page cannot be closed
    assert tabs.count() == 1
    QTest.mouseClick(tabs, Qt.MouseButton.LeftButton, pos=tabs.tabRect(0).center())
    assert window.session.current is document
    assert tabs.property("none") is False
    window.run_command("start")
    window.run_command("next-tab")
    assert window.session.current is document


def test_the_palette_takes_beginnings_of_words_and_no_scattered_letters() -> None:
    assert matches("theme", "Switch between light and dark theme")
    assert matches("cp", "Command palette…")
    assert matches("compal", "Command palette…")
    assert not matches("theme", "Learn with an example")
    assert not matches("xyz", "Command palette…")


def test_an_error_goes_with_the_page_that_it_was_shown_on(
    window: MainWindow, document: Document, tmp_path: Path, qtbot: QtBot
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(b"\x00\x01\x02" * 50)
    for leave in (partial(window.show_page, "launch"), partial(window.top.tabs.setCurrentIndex, 0)):
        window.session.open([bad])
        qtbot.waitUntil(window.banner.isVisible)
        assert "bad.json" in window.banner.title.text()
        leave()
        assert not window.banner.isVisible()
