"""Names that tell traces apart on tabs, in lists and on what is saved."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from gui import names
from gui.main_window import MainWindow
from tests.gui.conftest import training


def test_a_tab_says_what_differs() -> None:
    paths = [Path("/a/run1/trace.json"), Path("/a/run2/trace.json"), Path("/b/train.pt.trace.json.gz")]
    told = names.told_apart([p.name for p in paths], paths)
    assert told == ["run1/trace", "run2/trace", "train"]
    assert names.told_apart(["Result"], [None]) == ["Result"]
    assert names.stem(".json") == ".json"


def test_the_trace_of_a_run_is_listed_by_script_and_time() -> None:
    folder = Path("/runs/2026-11-30_12-31-07_train.py")
    assert names.of_path(folder / "trace.json") == "train.py, 12:31"
    assert names.of_path(folder / "trace-rank1.json") == "train.py, 12:31 · trace-rank1.json"
    assert names.of_path(folder / "other.json") == "other.json"
    assert names.of_path(Path("/x/trace.json")) == "trace.json"


def test_documents_of_runs_are_named_and_saved_where_they_lie(
    window: MainWindow, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = []
    for minute in (31, 44):
        folder = tmp_path / f"run{minute}"
        folder.mkdir()
        created = time.mktime((2026, 11, 30, 12, minute, 0, 0, 0, -1))
        manifest = {"format": "steplens.run/1", "name": "train.py", "created": created}
        (folder / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
        paths.append(training(2).write(folder / "trace.json"))
    window.session.open(paths)
    qtbot.waitUntil(lambda: not window.opener.busy and len(window.session.documents) == 2, timeout=60_000)
    tabs = window.top.tabs
    assert [tabs.tabText(k) for k in range(2)] == ["train.py, 12:31", "train.py, 12:44"]
    assert str(paths[0]) in tabs.tabToolTip(0)
    proposed: list[str] = []
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda _w, _t, path, _f: (proposed.append(path), ("", ""))[1])
    window.session.set_current(window.session.documents[1])
    window.save_report()
    assert proposed == [str(paths[1].parent / "train.py_12-44.html")]


def test_a_round_is_called_by_its_number() -> None:
    folder = Path("/runs/2026-11-30_14-21-18_train.py-round-1")
    assert names.of_path(folder / "trace.json") == "train.py, round 1, 14:21"
    again = folder.with_name("2026-11-30_14-21-18_train.py-round-3-round-0-again-2")
    assert names.of_path(again / "trace.json") == "train.py, round 3, 14:21"
    assert names.of_path(folder.with_name("2026-11-30_14-21-18_train.py-2") / "trace.json") == "train.py, 14:21"


def test_a_name_without_room_is_cut_between_words() -> None:
    cut = names.cut_whole
    assert cut("ranks 0-7 · traces", len, 18) == "ranks 0-7 · traces"
    assert cut("ranks 0-7 · traces", len, 16) == "ranks 0-7…"
    assert cut("train.py, 22:32 (simulated)", len, 20) == "train.py, 22:32…"
    assert cut("train.py, 22:32", len, 12) == "train.py…"
    assert cut("d01_v100_resnet50_2021_nw0", len, 16) == "d01_v100…nw0"
    assert cut("d01_v100_resnet50_2021_nw0", len, 16, at_end=True) == "d01_v100…"
    assert cut("onelongword", len, 6) == "onelo…"
    for room in range(1, 30):
        for name in ("ranks 0-7 · traces", "d01_v100_resnet50_2021_nw0", "__", "a b c", "…"):
            assert len(cut(name, len, room)) <= max(room, 1)
