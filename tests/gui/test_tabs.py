"""Tabs keep readable titles, and every tab can be closed from the keyboard."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

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
