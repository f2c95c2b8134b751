"""The page of rounds goes with the script that is chosen, and compares rounds whose traces are not open."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from core.project import Figures, Iteration, Project
from gui.loop import Loop
from gui.main_window import MainWindow
from gui.panels.iterations import IterationsPage
from tests.gui.test_loop import finish, loop, make_run, run_folder, shown  # noqa: F401 - fixtures

FAST, SLOW = Figures(wall_ns=500.0, sustained_ns=500.0), Figures(wall_ns=1000.0, sustained_ns=1000.0)


def page_of(window: MainWindow) -> IterationsPage:
    window.session.ask("rounds")
    page = window.pages["iterations"]
    assert isinstance(page, IterationsPage)
    return page


def test_another_script_has_its_own_newest_round(window, loop):  # noqa: F811 - a fixture
    a = Project(
        loop.root() / "a",
        "/x/train.py",
        (Iteration(0, "/r/0", 1.0, figures=SLOW), Iteration(1, "/r/1", 2.0, 0, figures=FAST, copy="/c/1")),
    ).save()
    b = Project(loop.root() / "b", "/y/other.py", (Iteration(0, "/q/0", 1.0, figures=SLOW),)).save()
    c = Project(
        loop.root() / "c",
        "/z/third.py",
        tuple(Iteration(n, f"/p/{n}", 1.0 + n, figures=SLOW) for n in range(3)),
    ).save()
    page = page_of(window)
    loop.show_project(a)
    loop.judged = a.folder, 1
    page.show_all()
    assert page.words.text().startswith("Round 1")
    loop.show_project(b)
    assert not page.words.text().startswith("Round 1")
    assert page.table.currentIndex().row() == 0
    loop.show_project(c)
    assert page.table.currentIndex().row() == 2  # the newest, not the one whose number was measured elsewhere
    loop.show_project(a)
    assert page.words.text().startswith("Round 1")


def test_rounds_whose_traces_are_not_open_are_opened_and_compared(
    window: MainWindow,
    loop: Loop,  # noqa: F811 - a fixture
    run_folder: Path,  # noqa: F811 - a fixture
    tmp_path: Path,
    qtbot: QtBot,
) -> None:
    before = shown(window, run_folder, 1_000_000.0)
    folder = make_run(tmp_path / "runs" / "9", tmp_path / "project" / "train.py", wall_us=500.0)
    after = shown(window, folder, 500_000.0, ())
    numbers = tuple(i.number for i in loop.project.iterations) if loop.project is not None else ()
    assert len(numbers) == 2
    asked: list[tuple[object, ...]] = []
    window.session.provide("compare_documents", lambda *documents: asked.append(documents))
    page = page_of(window)
    page._compare(*numbers)
    assert asked == [(before, after)]
    asked.clear()
    window.session.close_document(before)
    page._compare(*numbers)
    assert asked == []
    qtbot.waitUntil(lambda: bool(asked), timeout=20_000)
    ((opened, other),) = asked
    assert other is after
    assert getattr(opened, "trace").path == before.trace.path  # noqa: B009 - any object
    window.session.close_document(after)
    finish()
    assert len(asked) == 1  # a wish is met once


@pytest.mark.parametrize("called_off", [False, True])
def test_a_trace_that_cannot_be_opened_ends_the_wish_to_compare(
    window: MainWindow,
    loop: Loop,  # noqa: F811 - a fixture
    run_folder: Path,  # noqa: F811 - a fixture
    tmp_path: Path,
    qtbot: QtBot,
    called_off: bool,
) -> None:
    before = shown(window, run_folder, 1_000_000.0)
    folder = make_run(tmp_path / "runs" / "9", tmp_path / "project" / "train.py", wall_us=500.0)
    shown(window, folder, 500_000.0, ())
    asked: list[tuple[object, ...]] = []
    window.session.provide("compare_documents", lambda *documents: asked.append(documents))
    page = page_of(window)
    window.session.close_document(before)
    path = before.trace.path
    whole = path.read_bytes()
    path.write_bytes(whole if called_off else b"no trace")
    page._compare(0, 1)
    if called_off:
        window.opener.cancel(str(path))
    else:
        qtbot.waitUntil(lambda: not window.opener.busy)
    assert window.session.status == "Rounds 0 and 1 are not compared: the trace of round 0 is not open."
    path.write_bytes(whole)
    window.session.open([path])
    qtbot.waitUntil(lambda: len(window.session.documents) == 2)
    assert asked == []  # it was opened for itself
