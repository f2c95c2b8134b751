"""Work can be left and resumed: what was open comes back as it was, after closing the window and after kill -9."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from core.analysis import analyze
from core.importing import open_trace
from gui import opened
from gui.main_window import MainWindow
from gui.opened import Opened, last_opened
from gui.resume import Resume
from gui.session import CHOSEN, Document, Mark
from gui.settings_dialog import SettingsDialog
from tests.gui.conftest import training

VIEW = (1_250_000.0, 1_900_000.0)


def arrange(window: MainWindow, paths: list[Path], waits) -> None:
    """Open traces and leave marks of use on the first."""
    window.session.open(paths)
    waits(lambda: len(window.session.documents) == len(paths) and not window.opener.busy)
    first = window.session.documents[0]
    window.session.set_current(first)
    first.show_suggestion(0)
    first.set_suggestion_state(0, CHOSEN)
    first.set_marks([Mark(1_300_000, 1_300_000, "here")])
    page = window.pages[first]
    row = next(r for r in page.timeline.rows.rows if r.track_id >= 0)  # type: ignore[attr-defined]
    page.timeline.toggle(row.key)  # type: ignore[attr-defined]
    first.select(7)
    page.show_panel("kernels")  # type: ignore[attr-defined]
    first.zoom_to(*VIEW)


def as_left(window: MainWindow) -> dict[str, object]:
    """What a user would miss."""
    documents = window.session.documents
    first, current = documents[0], window.session.current
    window.session.set_current(first)  # its page is made when it is shown
    page = window.pages[first]
    window.session.set_current(current)
    suggestion = first.suggestion(first.current_suggestion)
    return {
        "tabs": [d.trace.path.name for d in documents],
        "front": window.session.current.trace.path.name if window.session.current else "",
        "view": (first.viewport.start_ns, first.viewport.end_ns),
        "slice": first.selected_slice,
        "suggestion": suggestion.key if suggestion else "",
        "ticks": first.suggestion_state,
        "marks": first.marks,
        "tab": page.shown_panel(),  # type: ignore[attr-defined]
        "tracks": page.timeline.state(),  # type: ignore[attr-defined]
        "second": (documents[1].viewport.start_ns, documents[1].viewport.end_ns),
    }


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    return [training().write(tmp_path / "a.json"), training(5).write(tmp_path / "b.json")]


def come_back(window: MainWindow, qtbot: QtBot, where: Path, count: int) -> None:
    """Take the offer of a new window."""
    again = Resume(window, where)
    again.look("ask")
    qtbot.waitUntil(lambda: not window.notice.isHidden(), timeout=60_000)
    assert f"{count} traces were open" in window.notice.words.full_text()
    window.notice.link.click()
    qtbot.waitUntil(lambda: len(window.session.documents) == count and not window.opener.busy, timeout=60_000)
    qtbot.wait(1)


CHILD = """
import json, os, signal, sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication, QEventLoop, QSettings
from gui.app import make_application, make_window
from gui.resume import Resume
from gui.settings import Settings
from tests.gui.test_resume import arrange, as_left

def waits(done):
    while not done():
        QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents, 50)

base = Path(sys.argv[1])
make_application()
window = make_window(Settings(QSettings(str(base / "child.ini"), QSettings.Format.IniFormat)), dark=True)
window.resize(1400, 900)
window.show()
resume = Resume(window, base / "open")
arrange(window, [base / "a.json", base / "b.json"], waits)
waits(lambda: resume._timer.isActive())
waits(lambda: not resume._timer.isActive())  # a moment after the last change
left = as_left(window)
left["marks"] = [[m.start_ns, m.end_ns, m.text] for m in left["marks"]]
(base / "left.json").write_text(json.dumps(left))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_after_kill_9(window: MainWindow, qtbot: QtBot, tmp_path: Path, paths: list[Path]) -> None:
    child = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path)], cwd=Path(__file__).parents[2], check=False)
    assert child.returncode == -signal.SIGKILL
    left = json.loads((tmp_path / "left.json").read_text())
    come_back(window, qtbot, tmp_path / "open", 2)
    now = as_left(window)
    now["marks"] = [[m.start_ns, m.end_ns, m.text] for m in window.session.documents[0].marks]
    assert json.loads(json.dumps(now)) == left
    assert left["view"] == list(VIEW)
    assert left["suggestion"]
    assert left["slice"] == 7
    assert left["ticks"]
    assert left["tab"] == "kernels"


def test_after_closing_the_window(
    window: MainWindow, qtbot: QtBot, tmp_path: Path, paths: list[Path], qapp: object
) -> None:
    from gui.app import make_window

    where = tmp_path / "open"
    first = make_window(window.settings, dark=True)
    first.resize(1400, 900)
    first.show()
    written = Resume(first, where)
    arrange(first, paths, lambda done: qtbot.waitUntil(done, timeout=60_000))
    first.session.pageRequested.emit("iterations")
    first.session.set_current(first.session.documents[1])
    left = as_left(first)
    first.close()
    for document in tuple(first.session.documents):  # what ends with the window does not count as closed by the user
        first.session.close_document(document)
    written.keep()
    first.deleteLater()
    come_back(window, qtbot, where, 2)
    assert as_left(window) == left
    assert left["front"] == "b.json"
    assert "iterations" in window.pages


def test_what_the_user_closed_stays_closed(window: MainWindow, qtbot: QtBot, tmp_path: Path, paths: list[Path]) -> None:
    kept = Resume(window, tmp_path / "open")
    window.session.open(paths)
    qtbot.waitUntil(lambda: len(window.session.documents) == 2 and not window.opener.busy, timeout=60_000)
    kept.keep()
    assert kept.file.exists()
    window.close_tab()
    kept.keep()
    assert [Path(s.path).name for s in opened._read(kept.file).documents] == ["b.json"]
    window.close_tab()
    kept.keep()
    assert not kept.file.exists()


def _write(where: Path, name: str, *paths: Path, **others: object) -> Path:
    where.mkdir(exist_ok=True)
    file = where / name
    rows = [{"path": str(path), **others} for path in paths]
    file.write_text(json.dumps({"format": opened.FORMAT, "documents": rows}))
    return file


def test_only_what_is_there_and_no_window_uses_is_offered(tmp_path: Path, paths: list[Path]) -> None:
    where = tmp_path / "open"
    assert last_opened(where) == Opened()
    old = _write(where, "1-other-1.json", paths[0])
    os.utime(old, (time.time() - 100,) * 2)
    _write(where, f"{os.getppid()}-{opened.machine()}-1.json", paths[1])  # that one runs
    gone = _write(where, "2-other-1.json", tmp_path / "gone.json", paths[0])
    found = last_opened(where)
    assert [s.path for s in found.documents] == [str(paths[0])]
    assert set(found.files) == {old, gone}
    assert [s.path for s in last_opened(where, gone).documents] == [str(paths[0])]


def test_a_damaged_file_costs_what_does_not_fit(tmp_path: Path, paths: list[Path]) -> None:
    where = tmp_path / "open"
    for content in ("", "[]", "[" * 100_000, json.dumps({"format": opened.FORMAT, "documents": 3, "pages": [1, "x"]})):
        where.mkdir(exist_ok=True)
        (where / "1-other-1.json").write_text(content)
        assert not last_opened(where)
    _write(
        where,
        "1-other-1.json",
        paths[0],
        view=[1, float("nan")],
        selected_slice="x",
        range_tracks=[1, "y"],
        tab=[],
        more=1,
    )
    (shown,) = last_opened(where).documents
    assert (shown.view, shown.selected_slice, shown.range_tracks, shown.tab) == (None, -1, (1,), "")
    _write(where, "1-other-1.json", Path("relative.json"))
    assert not last_opened(where)


def test_another_file_of_that_name_opens_as_a_new_one(
    window: MainWindow, qtbot: QtBot, tmp_path: Path, paths: list[Path]
) -> None:
    _write(tmp_path / "open", "1-other-1.json", paths[0], view=list(VIEW), selected_slice=7, stamp="1:2", tab="kernels")
    again = Resume(window, tmp_path / "open")
    again.look("always")
    qtbot.waitUntil(lambda: bool(window.session.documents) and not window.opener.busy, timeout=60_000)
    (document,) = window.session.documents
    assert document.selected_slice == -1
    assert (document.viewport.start_ns, document.viewport.end_ns) != VIEW
    again.keep()
    assert list((tmp_path / "open").iterdir()) == [again.file]  # the one before it is over


def test_nothing_is_offered_to_who_does_not_want_it(
    window: MainWindow, qtbot: QtBot, tmp_path: Path, paths: list[Path]
) -> None:
    _write(tmp_path / "open", "1-other-1.json", *paths)
    again = Resume(window, tmp_path / "open")
    again.look("never")
    qtbot.waitUntil(lambda: bool(again.last))
    assert window.notice.isHidden()
    window.session.add_document(Document(open_trace(paths[0])))
    again.look("ask")  # somebody opened a trace meanwhile
    qtbot.wait(50)
    assert window.notice.isHidden()
    dialog = SettingsDialog(window.settings)
    assert dialog.reopen.currentData() == "ask"
    dialog.reopen.setCurrentIndex(dialog.reopen.findData("always"))
    dialog.accept()
    assert window.settings.get("window/reopen") == "always"


def test_a_trace_that_cannot_be_read_any_more_does_not_keep_the_others(
    window: MainWindow, qtbot: QtBot, tmp_path: Path, paths: list[Path]
) -> None:
    paths[1].write_text("no trace")
    file = _write(tmp_path / "open", "1-other-1.json", *paths)
    values = json.loads(file.read_text())
    file.write_text(json.dumps({**values, "front": str(paths[0]), "compared": [str(p) for p in paths]}))
    again = Resume(window, tmp_path / "open")
    again.look("always")
    qtbot.waitUntil(lambda: bool(window.session.documents) and not window.opener.busy, timeout=60_000)
    assert window.session.current is window.session.documents[0]
    assert not again._coming


def test_the_two_that_are_compared_are_those_chosen_last(window: MainWindow, tmp_path: Path, paths: list[Path]) -> None:
    third = tmp_path / "third.json"
    shutil.copy(paths[0], third)
    documents = [Document(open_trace(path)) for path in (*paths[:2], third)]
    for document in documents:
        window.session.add_document(document)
    window.session.ask("compare_documents", *documents[:2])
    page = window.pages["compare"]
    page.after.setCurrentIndex(2)
    assert page.pair == (documents[0], documents[2])
    assert Resume(window, tmp_path / "open").opened().compared == (str(paths[0]), str(third))


@pytest.mark.parametrize("changed", [False, True])
def test_a_comparison_comes_back_where_it_was_and_the_views_of_its_two_too(
    window: MainWindow, qtbot: QtBot, tmp_path: Path, paths: list[Path], changed: bool
) -> None:
    documents = [Document(open_trace(path)) for path in paths]
    for document in documents:
        window.session.add_document(document)
        document.set_analysis(analyze(document.trace))
        document.zoom_to(*VIEW)
    window.session.ask("compare_documents", *documents)
    page = window.pages["compare"]
    qtbot.waitUntil(lambda: page._found is not None)
    stretch = (2_100_000.0, 2_300_000.0)
    documents[0].zoom_to(*stretch)
    left = Resume(window, tmp_path / "open")
    left.keep()
    assert left.opened().stretch == stretch
    assert [shown.view for shown in left.opened().documents] == [VIEW, VIEW]
    left._closed = True
    left.file.rename(left.file.with_name("1-other-1.json"))
    assert Opened(**{**vars(last_opened(tmp_path / "open")), "files": ()}).stretch == stretch
    for document in documents:
        window.session.close_document(document)
    if changed:
        training(6).write(paths[1])
    again = Resume(window, tmp_path / "open")
    again.look("always")
    qtbot.waitUntil(lambda: len(window.session.documents) == 2 and not window.opener.busy)
    page = window.pages["compare"]
    qtbot.waitUntil(lambda: page._found is not None)
    view = window.session.documents[0].viewport
    assert ((view.start_ns, view.end_ns) == pytest.approx(stretch)) is not changed


def test_tabs_come_back_in_their_order_and_runs_by_their_names(
    window: MainWindow, qtbot: QtBot, tmp_path: Path, paths: list[Path]
) -> None:
    run = tmp_path / "runs" / "2026-11-30_14-21-18_train.py-round-1"
    run.mkdir(parents=True)
    shutil.copy(paths[0], run / "trace.json")
    order = [str(paths[1]), "runs", str(run / "trace.json"), "launch", str(paths[0])]
    file = _write(tmp_path / "open", "1-other-1.json", run / "trace.json", *paths)
    values = json.loads(file.read_text())
    file.write_text(json.dumps({**values, "pages": ["runs", "launch"], "tabs": order}))
    again = Resume(window, tmp_path / "open")
    again.look("ask")
    qtbot.waitUntil(lambda: window.notice.isVisible())
    assert "train.py, round 1, 14:21" in window.notice.words.accessibleName()
    again.reopen()
    qtbot.waitUntil(lambda: len(window.session.documents) == 3 and not window.opener.busy, timeout=60_000)
    assert list(again._tabs()) == order
    assert again.opened().tabs == tuple(order)


def test_numbers_beyond_all_measure_are_left_out(tmp_path: Path, paths: list[Path]) -> None:
    huge = 10**400
    row = {"path": str(paths[0]), "view": [0, huge], "selected_range": [-huge, huge], "range_tracks": [huge, 1]}
    (tmp_path / "left.json").write_text(json.dumps({"format": opened.FORMAT, "documents": [row]}))
    (shown,) = last_opened(tmp_path).documents
    assert (shown.view, shown.selected_range, shown.range_tracks) == (None, None, (1,))


def test_the_script_whose_rounds_were_shown_comes_back(window: MainWindow, tmp_path: Path, paths: list[Path]) -> None:
    shown = [""]
    window.session.provide("rounds_of", lambda: "mine-1234")
    window.session.provide("show_rounds_of", lambda name: shown.append(name))
    where = tmp_path / "open"
    written = Resume(window, where)
    window.session.add_document(Document(open_trace(paths[0])))
    written.keep()
    found = last_opened(where)
    assert found.rounds == "mine-1234"
    written.last = found
    written._rounds, written._front = found.rounds, found.front
    written._all_there()
    assert shown[-1] == "mine-1234"


@pytest.mark.skipif(not hasattr(os, "WNOWAIT"), reason="a process that has ended and is not waited for is posix")
def test_a_window_that_was_killed_and_that_nobody_has_waited_for_does_not_run(tmp_path):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as window:
        file = tmp_path / f"{window.pid}-{opened.machine()}-1.json"
        assert opened.in_use(file)
        window.kill()
        os.waitid(os.P_PID, window.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and its number is not free
        assert not opened.in_use(file) or sys.platform != "linux"
