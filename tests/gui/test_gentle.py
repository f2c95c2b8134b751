from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from shiboken6 import delete

from core.trace import Trace
from gui.document_page import DocumentPage
from gui.gentle import Listeners
from gui.main_window import MainWindow
from gui.panels.plan import PlanPanel
from gui.session import Document
from gui.widgets.outcomes import OutcomeList
from tests.gui.conftest import known_analysis, training


class Ear(QObject):
    def __init__(self, heard: list[str], name: str) -> None:
        super().__init__()
        self._heard, self._name = heard, name
        self.then: list[Callable[[], None]] = []

    def hear(self) -> None:
        self._heard.append(self._name)
        while self.then:
            self.then.pop()()


def test_at_once_or_one_in_each_turn(qtbot: QtBot) -> None:
    heard: list[str] = []
    owner, ears = QObject(), [Ear(heard, name) for name in "abc"]
    listeners = Listeners(owner)
    for ear in ears:
        listeners.add(ear.hear)
    listeners.call()
    assert heard == ["a", "b", "c"]
    listeners.gently = True
    del heard[:]
    ears[0].then = [listeners.call]  # something newer comes when a has heard: b and c hear of it only once
    listeners.call()
    assert not heard
    qtbot.waitUntil(lambda: heard[-1:] == ["c"])
    QApplication.processEvents()
    assert heard == ["a", "a", "b", "c"]


def test_what_waits_is_dealt_with_between_two_turns(qtbot: QtBot) -> None:
    heard: list[str] = []
    owner, ears = QObject(), [Ear(heard, name) for name in "ab"]
    listeners = Listeners(owner)
    for ear in ears:
        listeners.add(ear.hear)
    beat = QTimer(owner)
    beat.timeout.connect(lambda: heard.append("beat"))
    ears[0].then = [lambda: beat.start(0)]
    listeners.gently = True
    listeners.call()
    QTimer.singleShot(0, owner, lambda: heard.append("painted"))
    qtbot.waitUntil(lambda: "b" in heard)
    assert heard[:2] == ["painted", "a"]
    assert heard.index("beat") < heard.index("b")


def test_who_is_gone_is_left_out(qtbot: QtBot) -> None:
    heard: list[str] = []
    owner, ears = QObject(), [Ear(heard, name) for name in "abc"]
    listeners = Listeners(owner)
    for ear in ears:
        listeners.add(ear.hear)
    delete(ears[0])
    del ears[1], ear
    listeners.call()
    assert heard == ["c"]


def test_a_failing_listener_does_not_silence_the_others(qtbot: QtBot) -> None:
    heard: list[str] = []

    class Deaf(QObject):
        def hear(self) -> None:
            raise ValueError("what?")

    owner, deaf, ear = QObject(), Deaf(), Ear(heard, "a")
    listeners = Listeners(owner)
    listeners.add(deaf.hear)
    listeners.add(ear.hear)
    with qtbot.captureExceptions() as caught:
        listeners.call()
    assert heard == ["a"]
    assert [kind for kind, _, _ in caught] == [ValueError]


def test_a_page_made_in_parts_is_the_one_that_is_shown(window: MainWindow, trace: Trace) -> None:
    document = Document(trace)
    parts = window.session.ask("page_parts", document)
    count = sum(1 for _ in parts)
    assert count > 6
    made = window.stack.findChildren(DocumentPage)
    assert len(made) == 1 and not made[0].isVisible()
    window.session.add_document(document)
    assert window.current_page() is made[0]
    assert made[0].isVisible()
    assert window.stack.findChildren(DocumentPage) == made


@pytest.mark.parametrize("made", [1, 3, 5, 8])
def test_a_page_taken_early_is_finished_and_one_called_off_is_gone(
    window: MainWindow, qtbot: QtBot, trace: Trace, made: int
) -> None:
    first, second = Document(trace), Document(trace)
    parts = window.session.ask("page_parts", first)
    others = window.session.ask("page_parts", second)
    for _ in range(made):
        next(parts)
        next(others)
    window.session.add_document(first)
    page = window.current_page()
    assert page is not None and page.isVisible() and page.panel("details") is not None
    others.close()
    qtbot.waitUntil(lambda: window.stack.findChildren(DocumentPage) == [page])


def test_opening_can_be_called_off_while_the_page_is_made(window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    training().build(path)
    ended: list[str] = []
    window.opener.ended.connect(ended.append)

    def called_off(document: Document) -> Generator[None]:
        parts = window.early.parts(document)
        next(parts)
        window.opener.cancel(str(path))
        yield from parts

    window.session.provide("page_parts", called_off)
    window.session.open([path])
    qtbot.waitUntil(lambda: bool(ended) and not window.opener.busy)
    QApplication.processEvents()
    assert ended == [str(path)]
    assert not window.session.documents
    qtbot.waitUntil(lambda: not window.stack.findChildren(DocumentPage))


def test_outcomes_are_named_when_their_line_is_opened(window: MainWindow, document: Document) -> None:
    page = window.current_page()
    assert page is not None
    plan = page.findChild(PlanPanel)
    assert plan is not None
    outcomes = plan.findChild(OutcomeList)
    assert outcomes is not None
    folds = [fold for fold in outcomes._folds.values() if fold.link.text().strip("▸ ")]
    assert folds and not any(fold.column.count() for fold in folds)
    folds[0].toggle()
    assert folds[0].column.count()
    document.set_analysis(known_analysis(document.trace))  # anew: an open line stays filled
    assert folds[0].column.count()


def test_no_table_is_made_before_its_tab_is_shown(window: MainWindow, document: Document) -> None:
    page = window.current_page()
    assert page is not None
    assert set(page._unmade) == set(page.panel_ids()) - {"details"}
    page.show_panel("operators")
    assert "operators" not in page._unmade
    assert "kernels" in page._unmade
