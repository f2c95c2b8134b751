"""What is said of one suggestion is not said of its neighbour in the same function; old states are still read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from core.analysis import Analysis
from core.figures.compute import compute_figures
from core.importing import open_trace
from core.suggestions import Evidence, SourceRef, Suggestion, numbered
from gui import store
from gui.panels.plan import PlanPanel
from gui.session import CHOSEN, DISMISSED, DONE, LATER, Document, Mark
from tests.gui.conftest import training

ONE = Suggestion(
    "scalar-read-back", "A scalar", source=SourceRef("t.py", 3, "f", True), evidence=(Evidence("Calls", 1, "", (1,)),)
)
OTHER = replace(ONE, source=SourceRef("t.py", 9, "f", True), evidence=(Evidence("Calls", 1, "", (8,)),))


@pytest.fixture
def document(window, tmp_path) -> Document:
    training().write(tmp_path / "train.json")
    return _opened(tmp_path / "train.json")


def _opened(path) -> Document:
    return Document(open_trace(path))


def _analysis(document: Document) -> Analysis:
    return Analysis(compute_figures(document.trace), numbered([ONE, OTHER]))


def test_each_has_a_state_of_its_own(document, tmp_path):
    document.set_analysis(_analysis(document))
    document.set_suggestion_state(0, CHOSEN)
    document.set_suggestion_state(1, DISMISSED, "meant")
    store.save(document)
    again = _opened(tmp_path / "train.json")
    store.restore(again)
    again.set_analysis(_analysis(again))
    one, other = again.analysis.suggestions
    assert again.suggestion_state == {one.key: CHOSEN, other.key: DISMISSED}
    assert again.dismiss_reason == {other.key: "meant"}
    again.set_suggestion_state(0, "")
    again.set_analysis(_analysis(again))
    assert again.suggestion_state == {other.key: DISMISSED}


def test_a_state_kept_under_the_old_key_is_of_all_that_shared_it(document, tmp_path):
    document.set_analysis(_analysis(document))
    document.set_suggestion_state(0, DONE)
    store.save(document)
    path = store.file_of(document.trace)
    state = json.loads(path.read_text())
    state["suggestions"], state["reasons"] = {ONE.place_key: DISMISSED}, {ONE.place_key: "meant"}
    path.write_text(json.dumps(state))
    again = _opened(tmp_path / "train.json")
    store.restore(again)
    again.set_analysis(Analysis(compute_figures(again.trace)))  # the figures come first
    again.set_analysis(_analysis(again))
    assert set(again.suggestion_state.values()) == {DISMISSED}
    assert len(again.suggestion_state) == len(again.dismiss_reason) == 2
    again.set_suggestion_state(1, "")
    again.set_analysis(_analysis(again))  # it does not come back
    assert again.suggestion_state == {again.analysis.suggestions[0].key: DISMISSED}


def test_later_moves_on_to_the_next_and_stays_where_there_is_none(document):
    document.set_analysis(_analysis(document))
    document.show_suggestion(0)
    document.set_suggestion_state(0, LATER)
    assert document.current_suggestion == 1
    document.set_suggestion_state(1, LATER)
    assert document.current_suggestion == 1  # nothing is left to move to: it can be taken up again
    document.set_suggestion_state(1, DISMISSED)
    assert document.current_suggestion == -1


def test_later_of_the_card_that_is_open_unasked_opens_the_next(window, document, qtbot):
    document.set_analysis(_analysis(document))
    panel = PlanPanel(window.session, document)
    qtbot.waitUntil(lambda: panel._first == 0)
    document.set_suggestion_state(0, LATER)
    qtbot.waitUntil(lambda: panel._first == 1)
    assert [card._body is not None and not card._body.isHidden() for card in panel._cards] == [False, True]
    panel.deleteLater()


def test_two_windows_with_one_trace_lose_nothing_of_each_other(document, tmp_path):
    document.set_analysis(_analysis(document))
    other = _opened(tmp_path / "train.json")
    other.set_analysis(_analysis(other))
    store.restore(other)
    document.set_suggestion_state(0, DONE)
    document.marks.append(Mark(1, 2, "here"))
    store.save(document)
    other.set_suggestion_state(1, DISMISSED, "meant")
    other.marks.append(Mark(3, 4, "there"))
    store.save(other)
    store.save(document)
    one, two = document.analysis.suggestions
    again = _opened(tmp_path / "train.json")
    store.restore(again)
    assert again.suggestion_state == {one.key: DONE, two.key: DISMISSED}
    assert again.dismiss_reason == {two.key: "meant"}
    assert {mark.text for mark in again.marks} == {"here", "there"}
    document.set_suggestion_state(0, "")  # what is taken away is gone, also where the other still has it on disk
    document.marks.clear()
    store.save(document)
    store.save(other)
    assert json.loads(store.file_of(document.trace).read_text())["suggestions"] == {two.key: DISMISSED}
