"""Tabs keep readable titles, and every tab can be closed from the keyboard."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QFocusEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QStyleOptionTab, QTabBar
from pytestqt.qtbot import QtBot

from gui.dialogs import matches
from gui.main_window import MainWindow
from gui.names import cut_apart
from gui.screenshot import settle
from gui.session import Document
from gui.topbar import LEAST_SEARCH_PX, SEARCH_PX, USED_SEARCH_PX, TopBar
from gui.widgets.close_button import CloseButton
from gui.widgets.tabs import LEAST_PX, DocumentTabs, EndsWhole


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


def test_titles_that_begin_alike_keep_what_tells_them_apart(qtbot: QtBot) -> None:
    tabs = DocumentTabs()
    qtbot.addWidget(tabs)
    tabs.resize(400, 40)
    for number in range(1, 9):
        tabs.addTab(f"a_training_script.py, round {number}, 17:4{number}")
    tabs.show()
    shown = []
    for index in range(tabs.count()):
        option = QStyleOptionTab()
        tabs.initStyleOption(option, index)
        if tabs.tabRect(index).left() < tabs.end_px() <= tabs.tabRect(index).right():
            assert "…" in option.text  # type: ignore[attr-defined]
            continue  # the end of the bar cuts it
        shown.append(option.text)  # type: ignore[attr-defined]
        assert f"round {index + 1}" in shown[-1]
    assert len(shown) == 7
    assert not set(shown) & {tabs.tabText(index) for index in range(8)}


def test_what_has_room_is_whole_and_what_has_none_is_cut_by_letters() -> None:
    rounds = ["train.py, round 1, 17:41", "train.py, round 2, 17:43", "train.py, 17:40", "Run"]
    assert cut_apart(rounds[0], rounds, len, 40) == rounds[0]
    assert cut_apart(rounds[0], rounds, len, 18) == "tra…round 1, 17:41"
    assert cut_apart(rounds[1], rounds, len, 9) == "round 2…"
    assert cut_apart(rounds[2], rounds, len, 10) == "trai…17:40"
    assert cut_apart("d01_v100", ["m14_a100"], len, 5) == "d01_v100"  # nothing is shared: cut in the middle, as ever


def bar_with(qtbot: QtBot, titles: list[str], width_px: int) -> TopBar:
    bar = TopBar()
    qtbot.addWidget(bar)
    bar.resize(width_px, 48)
    for title in titles:
        index = bar.tabs.addTab(title)
        bar.tabs.setTabButton(index, QTabBar.ButtonPosition.RightSide, CloseButton(bar.close, "Close", title))
    bar.show()
    return bar


def test_the_search_gives_way_to_the_titles_of_tabs(qtbot: QtBot) -> None:
    few = bar_with(qtbot, ["a.json"], 1400)
    assert few.search.width() == SEARCH_PX
    many = bar_with(qtbot, [f"{k}_a_trace_with_a_long_name.json" for k in range(8)], 1400)
    assert many.search.width() == LEAST_SEARCH_PX
    many.search.setText("mm")
    QApplication.sendEvent(many.search, QFocusEvent(QEvent.Type.FocusIn))
    many.layout().activate()
    assert many.search.width() == USED_SEARCH_PX


def test_only_whole_tabs_can_be_closed_by_a_click(qtbot: QtBot) -> None:
    bar = bar_with(qtbot, [f"{k}_a_trace_with_a_long_name.json" for k in range(8)], 1000)
    tabs, side = bar.tabs, QTabBar.ButtonPosition.RightSide
    states = set()
    for index in (7, 0, 4, 6):
        tabs.blockSignals(True)  # as the window chooses a tab
        tabs.setCurrentIndex(index)
        tabs.blockSignals(False)
        tabs.grab()
        rects = [tabs.tabRect(i) for i in range(8)]
        shown = [not tabs.tabButton(i, side).isHidden() for i in range(8)]
        cut = [i for i, rect in enumerate(rects) if rect.left() < 0 or rect.right() >= tabs.width()]
        assert shown[index]
        assert not any(shown[i] for i in cut)
        states.add(tuple(shown))
    assert len(states) > 1  # they come back


def test_a_title_that_the_end_of_the_bar_cuts_ends_with_dots(qtbot: QtBot) -> None:
    for made in (EndsWhole(), DocumentTabs()):
        qtbot.addWidget(made)
        made.setUsesScrollButtons(True)
        for title in ("Details", "Operators and more", "Kernels and more", "Flame graph and more"):
            made.addTab(title)
        made.show()
        middle = made.tabRect(1).center().x()
        made.resize(middle, 40)
        made.resize(2 * middle - made.end_px(), 40)  # so much is left beside the arrows
        assert made.tabRect(1).left() < made.end_px() < made.tabRect(1).right()
        option = QStyleOptionTab()
        made.initStyleOption(option, 1)
        assert "…" in option.text  # type: ignore[attr-defined]
        made.initStyleOption(option, 0)
        assert option.text == "Details"  # type: ignore[attr-defined]


def test_a_title_that_the_beginning_of_the_bar_cuts_begins_with_dots(qtbot: QtBot) -> None:
    bar = EndsWhole()
    qtbot.addWidget(bar)
    bar.setUsesScrollButtons(True)
    titles = [f"Operators and more {n}" for n in range(6)]
    for title in titles:
        bar.addTab(title)
    bar.show()
    cut, wide = -1, bar.tabRect(0).width()
    for width in range(2 * wide, 4 * wide, 9):
        bar.resize(width, 40)
        bar.setCurrentIndex(5)
        settle()
        cut = next((i for i in range(6) if bar.tabRect(i).left() < -40 and bar.tabRect(i).right() > 60), -1)
        if cut >= 0:
            break
    option = QStyleOptionTab()
    bar.initStyleOption(option, cut)
    shown = str(option.text)  # type: ignore[attr-defined]
    assert shown.strip().startswith("…") and titles[cut].endswith(shown.strip()[1:])
    metrics = bar.fontMetrics()
    assert abs(metrics.horizontalAdvance(shown) - metrics.horizontalAdvance(titles[cut])) <= 12  # blanks are rounded


def test_a_tab_is_no_wider_than_the_bar(qtbot: QtBot) -> None:
    tabs = DocumentTabs()
    qtbot.addWidget(tabs)
    tabs.addTab("a_long_name_of_a_trace.pt.trace.json.gz")
    tabs.resize(130, 40)
    tabs.show()
    assert tabs.tabRect(0).width() <= 130


def test_what_tells_rounds_apart_is_not_broken_inside_a_time() -> None:
    words = cut_apart("train, round 12, 21:40", ["train, round 11, 21:39"], len, 9)
    assert words == "round 12…"


def test_a_title_with_room_for_all_of_it_is_whole_beside_one_that_begins_alike(qtbot: QtBot) -> None:
    bar = DocumentTabs()
    qtbot.addWidget(bar)
    titles = ["train.py, 22:32", "train.py, round 1, 22:35", "ranks 0-7 · traces"]
    for title in titles:
        bar.setTabButton(bar.addTab(title), QTabBar.ButtonPosition.RightSide, CloseButton(lambda: None, "x", "x"))
    bar.resize(bar.wanted_px() + 200, 36)
    bar.show()
    settle()
    for index, title in enumerate(titles):
        option = QStyleOptionTab()
        bar.initStyleOption(option, index)
        assert option.text == title  # type: ignore[attr-defined]
