"""The page of a trace is made when it is first shown, and then shows all that has come meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from core.analysis import analyze
from core.importing import open_trace
from core.trace import Trace
from gui import jobs
from gui.document_page import DocumentPage
from gui.main_window import MainWindow
from gui.session import Document
from tests.gui.conftest import training


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    return [training(steps).write(tmp_path / f"train{steps}.json") for steps in (3, 4, 5)]


@pytest.fixture
def opened(window: MainWindow, paths: list[Path]) -> MainWindow:
    """Three traces, the first in front; the others were never shown."""
    for path in paths:
        window.session.add_document(Document(open_trace(path)), front=path == paths[0])
    return window


def shown_documents(window: MainWindow) -> list[Document]:
    return [page.document for page in window.stack.findChildren(DocumentPage)]


def test_of_several_traces_those_behind_have_no_page(opened: MainWindow) -> None:
    assert opened.top.tabs.count() == 3
    assert shown_documents(opened) == [opened.session.documents[0]]


def test_of_traces_opened_together_the_first_is_in_front_and_all_are_diagnosed(
    window: MainWindow, qtbot: QtBot, paths: list[Path]
) -> None:
    window.session.open(paths)
    qtbot.waitUntil(lambda: len(window.session.documents) == 3 and not window.opener.busy, timeout=60_000)
    assert [d.trace.path for d in window.session.documents] == paths
    assert window.session.current is window.session.documents[0]
    assert all(d.analysis is not None for d in window.session.documents)


def test_a_tab_that_is_chosen_gets_its_page_in_parts(opened: MainWindow, qtbot: QtBot) -> None:
    last = opened.session.documents[2]
    last.zoom_to(1_000_500, 1_001_500)
    before = (last.viewport.start_ns, last.viewport.end_ns)
    opened.top.tabs.setCurrentIndex(2)
    qtbot.waitUntil(lambda: opened.session.current is last)
    page = opened.current_page()
    assert page is not None and page.isVisible()
    assert (last.viewport.start_ns, last.viewport.end_ns) == before
    assert shown_documents(opened).count(last) == 1


def test_a_tab_left_before_its_page_is_made_does_not_come_to_the_front(opened: MainWindow, qtbot: QtBot) -> None:
    first, _, last = opened.session.documents
    opened.top.tabs.setCurrentIndex(2)
    opened.top.tabs.setCurrentIndex(0)
    qtbot.waitUntil(lambda: opened.early.has(last))
    assert opened.session.current is first
    opened.session.set_current(last)
    assert shown_documents(opened).count(last) == 1


def test_a_trace_closes_while_its_page_is_made(opened: MainWindow, qtbot: QtBot) -> None:
    last = opened.session.documents[2]
    made = shown_documents(opened)
    opened.top.tabs.setCurrentIndex(2)
    qtbot.waitUntil(lambda: last in shown_documents(opened))
    opened.session.close_document(last)
    assert opened.top.tabs.count() == 2
    qtbot.waitUntil(lambda: shown_documents(opened) == [d for d in made if d is not last])


def test_a_late_page_looks_like_one_that_was_there_from_the_start(
    window: MainWindow, trace: Trace, qtbot: QtBot
) -> None:
    early, late = Document(trace), Document(trace)
    for document in (early, late):
        document.keeps_view = True
    analysis = analyze(trace)
    window.session.add_document(early)
    window.session.add_document(late, front=False)
    assert late not in window.pages

    def use(document: Document) -> None:
        document.set_analysis(analysis)
        document.show_suggestion(0)
        document.zoom_to(1_100_000, 2_300_000)

    use(early)
    use(late)
    pictures, shown = [], []
    for document in (early, late):
        window.session.set_current(document)
        page: Any = window.pages[document]
        page.vertical.setSizes([500, 229])
        qtbot.waitUntil(lambda: not jobs.busy())
        QApplication.processEvents()
        pictures.append((page.band("verdict").grab().toImage(), page.timeline.canvas.grab().toImage()))
        shown.append((page.timeline.canvas.scroll_px, page.shown_panel(), document.selected_slice))
    assert shown[0] == shown[1]
    assert pictures[0][0] == pictures[1][0]
    assert pictures[0][1] == pictures[1][1]


def test_what_was_in_front_is_read_and_shown_first(window: MainWindow, qtbot: QtBot, paths: list[Path]) -> None:
    fronts: list[Path] = []
    window.session.currentChanged.connect(
        lambda: fronts.append(window.session.current.trace.path) if window.session.current else None
    )
    window.opener.open_again([(path, None) for path in paths], str(paths[2]))
    qtbot.waitUntil(lambda: len(window.session.documents) == 3 and not window.opener.busy, timeout=60_000)
    assert fronts[-1] == paths[2]
    assert window.session.current is window.session.documents[2]
    assert [d.trace.path for d in window.session.documents] == paths


def test_the_list_of_recent_traces_keeps_its_rows_and_waits_while_it_is_hidden(
    window: MainWindow, document: Document, tmp_path: Path
) -> None:
    start: Any = window.pages["start"]
    window.show_page("start")
    window.session.remember(tmp_path / "a.json", 10)
    row = next(iter(start._rows.values()))
    window.session.remember(tmp_path / "b.json", 10)
    assert list(start._rows) == window.session.recent
    assert row in start._rows.values()
    window.session.set_current(document)
    window.session.remember(tmp_path / "c.json", 10)
    assert list(start._rows) != window.session.recent
    window.show_page("start")
    assert list(start._rows) == window.session.recent


def test_a_page_may_be_resized_between_any_two_of_its_parts(window: MainWindow, trace: Trace) -> None:
    page = DocumentPage(window.session, Document(trace), window.settings, window.stack, at_once=False)
    more = True
    while more:
        for size in (QSize(900, 300), QSize(1300, 800)):
            QApplication.sendEvent(page, QResizeEvent(size, page.size()))
        more = page.make_part()
    assert page.timeline is not None
    page.deleteLater()
