"""Several files opened at once: ranks of one job make one timeline, others a tab each."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import orjson
import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from gui import recent, together
from gui.main_window import MainWindow
from gui.opened import last_opened
from gui.resume import Resume
from tests.gui.conftest import training


def rank(path: Path, number: int, world: int = 2) -> Path:
    """A trace that says which rank of how many it is."""
    values = {"distributedInfo": {"backend": "gloo", "rank": number, "world_size": world}}
    plain = orjson.loads(training(3).write(path.with_name("plain.json")).read_bytes())
    text = orjson.dumps({**values, **plain})
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def test_ranks_that_are_opened_together_are_one_timeline(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    paths = [rank(tmp_path / "host_1.pt.trace.json", 0), rank(tmp_path / "host_2.pt.trace.json.gz", 1)]
    window.session.open(paths)
    qtbot.waitUntil(lambda: not window.opener.busy, timeout=60_000)
    (document,) = window.session.documents
    assert [source.path for source in document.trace.sources] == paths
    (kept,) = window.session.recent  # one entry, which knows both
    again = recent.from_line(recent.to_line(kept))
    assert again is not None
    assert again.path == kept.path
    assert recent.paths_of(kept).split("\n") == [str(path) for path in paths]
    window.show_page("start")
    start: Any = window.pages["start"]
    (opener,) = [b for b in start.findChildren(QPushButton) if b.text() == kept.path.name]
    assert opener.isEnabled()
    opener.click()
    qtbot.waitUntil(lambda: window.session.current is document)
    window.session.open(paths)  # shown already
    qtbot.waitUntil(lambda: not window.opener.busy, timeout=60_000)
    assert window.session.documents == [document]
    window.session.open(paths[:1])  # alone: a trace of its own
    qtbot.waitUntil(lambda: not window.opener.busy, timeout=60_000)
    assert [len(d.trace.sources) for d in window.session.documents] == [2, 1]


def test_a_tab_of_several_ranks_says_which_and_its_tooltip_of_which_files(
    window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    folder = tmp_path / "my_run"
    folder.mkdir()
    paths = [rank(folder / f"trace-rank{number}.json", number, 8) for number in (0, 1, 2, 5)]
    window.session.open(paths)
    qtbot.waitUntil(lambda: bool(window.session.documents) and not window.opener.busy, timeout=60_000)
    tabs = window.top.tabs
    assert tabs.tabText(0) == "ranks 0-2, 5 · my_run"
    assert all(path.name in tabs.tabToolTip(0) for path in paths)


def test_ranks_that_were_opened_together_come_back_as_one_timeline(
    window: MainWindow, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [rank(tmp_path / f"trace-rank{number}.json", number, 3) for number in range(3)]
    kept = Resume(window, tmp_path / "open")
    window.session.open(paths)
    qtbot.waitUntil(lambda: bool(window.session.documents) and not window.opener.busy, timeout=60_000)
    window.session.documents[0].select(5)
    kept.keep()
    kept._closed = True
    window.session.close_document(window.session.documents[0])
    monkeypatch.setattr(together, "_files", {})  # another start
    again = Resume(window, tmp_path / "open")
    again.last = last_opened(tmp_path / "open", again.file)
    again.reopen()
    qtbot.waitUntil(lambda: bool(window.session.documents) and not window.opener.busy, timeout=60_000)
    (document,) = window.session.documents
    assert [source.path for source in document.trace.sources] == paths
    assert document.selected_slice == 5
    paths[1].unlink()  # of what is left, the rest comes
    (shown,) = last_opened(tmp_path / "open", again.file).documents
    assert shown.files == (str(paths[0]), str(paths[2]))
    for path in paths[::2]:
        path.unlink()
    assert not last_opened(tmp_path / "open", again.file)


def test_only_ranks_of_one_job_belong_together(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    one, two = rank(tmp_path / "a.json", 0, 8), rank(tmp_path / "b.json", 3, 8)
    apart = [
        rank(tmp_path / "c.json", 1, 4),  # of another number of ranks
        rank(other / "d.json", 5, 8),  # in another folder
        training(3).write(tmp_path / "before.json"),
        training(3).write(tmp_path / "after.json"),
        tmp_path / "gone.json",
    ]
    opened = together.gather([apart[0], one, *apart[1:], two])
    assert opened[0] == apart[0] and opened[2:] == apart[1:]
    assert together.files_of(opened[1]) == (one, two)
    assert together.files_of(one) == (one,)
    again = rank(tmp_path / "later.json", 0, 8)  # the same rank twice: two runs
    assert together.gather([one, two, again]) == [one, two, again]


def test_names_tell_the_rank_where_the_header_does_not(tmp_path: Path) -> None:
    named = [training(3).write(tmp_path / f"trace-rank{n}.json") for n in range(3)]
    (whole,) = together.gather(named)
    assert together.files_of(whole) == tuple(named)
    assert together.gather([named[0], training(3).write(tmp_path / "run_rank1.json")])[0] == named[0]
