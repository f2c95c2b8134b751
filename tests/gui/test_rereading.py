"""A trace that is open and asked for once more: its file may have changed, or be gone."""

from __future__ import annotations

import ast
import inspect
import os
from pathlib import Path

from pytestqt.qtbot import QtBot

from core.importing import open_trace
from gui import opening, warmup
from gui.main_window import MainWindow
from gui.session import Document
from tests.gui.conftest import training


def opened(window: MainWindow, qtbot: QtBot, path: Path) -> Document:
    window.session.open([path])
    qtbot.waitUntil(lambda: not window.opener.busy, timeout=60_000)
    assert window.session.current is not None
    return window.session.current


def test_a_file_that_was_written_anew_is_read_again_in_the_same_tab(
    window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    paths = [training(3).write(tmp_path / name) for name in ("a.json", "b.json", "c.json")]
    window.session.open(paths)
    qtbot.waitUntil(lambda: len(window.session.documents) == 3 and not window.opener.busy, timeout=60_000)
    old = window.session.documents[1]
    window.session.set_current(old)
    window.show_panel("kernels")
    old.zoom_to(500_000, 700_000)
    training(6).write(paths[1])
    said: list[str] = []
    window.session.statusChanged.connect(lambda: said.append(window.session.status))
    new = opened(window, qtbot, paths[1])
    assert new is not old and len(new.trace.steps) == 6
    assert [d.trace.path for d in window.session.documents] == paths
    assert window.session.documents[1] is new
    assert [window.key_of_tab(i) for i in range(3)] == window.session.documents
    assert (new.viewport.start_ns, new.viewport.end_ns) == (500_000, 700_000)
    page = window.current_page()
    assert page is not None and page.shown_panel() == "kernels"
    assert any("b.json has changed since it was opened" in words for words in said)
    assert opened(window, qtbot, paths[1]) is new  # and now it is what is there


def test_where_the_view_was_the_typical_step_it_is_the_new_one(
    window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    path = training(3).write(tmp_path / "a.json")
    opened(window, qtbot, path)
    training(6).write(path)
    new = opened(window, qtbot, path)
    assert not new.keeps_view
    assert new.viewport.width_ns < 2_000_000


def test_a_file_of_the_same_size_is_told_by_its_time(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    path = training(3).write(tmp_path / "a.json")
    old = opened(window, qtbot, path)
    os.utime(path, ns=(1, 1))
    assert opened(window, qtbot, path) is not old


def test_a_file_that_is_gone_leaves_the_tab_and_says_so(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    path = training(3).write(tmp_path / "a.json")
    old = opened(window, qtbot, path)
    window.show_page("start")
    path.unlink()
    assert opened(window, qtbot, path) is old
    assert "a.json is no longer there" in window.session.status


def test_a_file_that_was_cut_short_keeps_the_tab_and_says_what_is_wrong(
    window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    path = training(3).write(tmp_path / "a.json")
    old = opened(window, qtbot, path)
    path.write_text("[1, 2")
    assert opened(window, qtbot, path) is old
    assert window.banner.isVisible() and "a.json" in window.banner.title.text()


def test_a_folder_of_ranks_is_read_again_when_one_of_them_changed_or_came(
    window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in range(2):
        training(3 + rank).write(folder / f"rank{rank}.json")
    first = opened(window, qtbot, folder)
    assert opened(window, qtbot, folder) is first
    training(5).write(folder / "rank1.json")
    second = opened(window, qtbot, folder)
    assert second is not first and window.session.documents == [second]
    training(6).write(folder / "rank2.json")
    assert len(opened(window, qtbot, folder).trace.sources) == 3


def test_a_trace_that_was_added_without_being_asked_for_is_known_by_its_file(
    window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    path = training(3).write(tmp_path / "a.json")
    document = Document(open_trace(path))
    window.session.add_document(document)
    assert opened(window, qtbot, path) is document


def test_a_trace_that_was_opened_while_its_run_was_on_is_read_again_when_that_has_ended(
    window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    path, manifest = training(3).write(tmp_path / "trace.json"), tmp_path / "run.json"
    manifest.write_text('{"format": "steplens.run/1", "name": "train.py", "state": "running"}')
    old = opened(window, qtbot, path)
    assert opened(window, qtbot, path) is old
    manifest.write_text(
        '{"format": "steplens.run/1", "name": "train.py", "state": "ok", "steps": {"wall_step_us": 900}}'
    )
    new = opened(window, qtbot, path)
    assert new is not old
    assert new.run is not None
    assert new.run.wall_step_ns == 900_000
    assert window.session.documents == [new]


def test_two_threads_that_import_the_readers_ask_for_their_package_first() -> None:
    """A part is locked before its package: who holds one and waits for the other blocks a thread that imports both."""
    assert warmup.MODULES[0] == "core.importing"
    body = ast.walk(ast.parse(inspect.getsource(opening.load_document)))
    first = next(node for node in body if isinstance(node, ast.Import | ast.ImportFrom))
    assert isinstance(first, ast.Import)
    assert first.names[0].name == "core.importing"
