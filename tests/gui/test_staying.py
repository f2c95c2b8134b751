"""What a run does by itself leaves the page in front that the user looks at."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from gui import staying
from gui.main_window import MainWindow
from profiling.result import RunResult
from profiling.sentences import say
from tests.gui.conftest import training


@pytest.fixture
def capture(window: MainWindow) -> Any:
    """A run that is on, its page shown."""
    made: Any = window.session.ask("capture")
    window.show_page("output")
    made.run, made.spec = SimpleNamespace(running=False), None
    return made


def result(folder: Path, outcome: str = "ok", recorded: int = 3) -> RunResult:
    folder.mkdir()
    training().build(folder / "trace.json")
    content = {
        "name": "train.py",
        "spec": {"schedule": {"active": 3}},
        "steps": {"recorded": list(range(recorded)), "source": "", "count": recorded},
        "traces": [{"path": "trace.json"}],
    }
    paths = (folder / "trace.json",)
    return RunResult(outcome, say("one-target"), int(outcome != "ok"), folder, paths, "", (), None, content)


def test_who_waits_for_a_run_sees_its_trace(window: MainWindow, capture: Any, tmp_path: Path, qtbot: QtBot) -> None:
    capture._end(result(tmp_path / "run"))
    qtbot.waitUntil(lambda: bool(window.session.documents))
    assert window.session.current is window.session.documents[0]
    qtbot.waitUntil(lambda: not window.opener.busy)


@pytest.mark.parametrize("page", ["launch", "start"])
def test_a_trace_opens_behind_another_page(
    window: MainWindow, capture: Any, tmp_path: Path, qtbot: QtBot, page: str
) -> None:
    window.show_page(page)
    capture._end(result(tmp_path / "run"))
    qtbot.waitUntil(lambda: bool(window.session.documents) and bool(window.session.status))
    assert window.shown_page() == page
    assert "train.py" in window.session.status
    assert window.top.tabs.count() >= 2
    qtbot.waitUntil(lambda: not window.opener.busy)


def test_a_trace_opens_behind_a_search(
    window: MainWindow, document: Any, capture: Any, tmp_path: Path, qtbot: QtBot
) -> None:
    window.session.set_current(document)
    window.run_command("search")
    capture._end(result(tmp_path / "run"))
    qtbot.waitUntil(lambda: len(window.session.documents) == 2 and bool(window.session.status))
    assert window.session.current is document
    assert window.focusWidget() is window.top.search
    qtbot.waitUntil(lambda: not window.opener.busy)


@pytest.mark.parametrize("recorded", [0, 2, 3])
def test_an_error_stays_in_view(window: MainWindow, capture: Any, tmp_path: Path, qtbot: QtBot, recorded: int) -> None:
    opened: list[list[Path]] = []
    window.session.openRequested.connect(lambda paths, _folder: opened.append(paths))
    capture._end(result(tmp_path / "run", "failed", recorded))
    assert bool(opened) is (recorded == 3)
    qtbot.waitUntil(lambda: len(window.session.documents) == len(opened))
    assert window.shown_page() == "output"
    qtbot.waitUntil(lambda: not window.opener.busy)


def test_a_run_that_begins_by_itself_keeps_its_page_behind(
    window: MainWindow, document: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop: Any = window.session.ask("loop")
    shown: list[bool] = []
    started = SimpleNamespace(start=lambda _spec, show=True: shown.append(show))
    monkeypatch.setattr(type(loop.rounds), "capture", started)
    monkeypatch.setattr(loop, "project_in", lambda folder: folder)
    monkeypatch.setattr(loop.rounds, "measure_again", lambda *_: loop.rounds._start(started, None))
    for page, expected in (("iterations", True), ("output", True), ("launch", False), ("", False)):
        window.show_page(page) if page else window.session.set_current(document)
        loop.rounds._next = (Path("project"), 1)
        loop.rounds.go_on()
        assert shown.pop() is expected
    loop.rounds._start(started, None)  # the user has asked for it
    assert shown.pop()


def test_a_measured_round_is_shown_to_who_waits_for_it(window: MainWindow, document: Any) -> None:
    for page, expected in (("output", "iterations"), ("launch", "launch"), ("iterations", "iterations")):
        window.show_page(page)
        staying.show_measured(window.session, document, 4)
        assert window.shown_page() == expected
    window.session.set_current(document)
    staying.show_measured(window.session, document, 4)
    assert window.shown_page() == "iterations"
