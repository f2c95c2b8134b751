"""Unfinished copies of a process that died are taken away; nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core import files
from core.fixes.leftovers import clear_leftovers, part_folder

DAY_S = 25 * 3600.0


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    folder = tmp_path / "projects" / "train-0123abcd" / "copies"
    folder.mkdir(parents=True)
    return folder


def _ended() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def _left(copies: Path, name: str) -> Path:
    folder = copies / name
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "train.py").write_text("x = 1\n")
    return folder


def test_what_a_dead_process_left_goes_and_what_it_links_to_stays(copies, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getpid", _ended)
    data = tmp_path / "data"
    data.mkdir()
    (data / "set.bin").write_text("of the user's")
    part = part_folder(copies / "3")
    (part / "data").symlink_to(data, target_is_directory=True)
    assert clear_leftovers(tmp_path / "projects") == 1
    assert list(copies.iterdir()) == []
    assert (data / "set.bin").read_text() == "of the user's"


def test_what_is_being_made_stays_and_so_does_all_that_is_not_ours(copies, tmp_path):
    part = part_folder(copies / "3")  # of this process, which lives
    dead, here = _ended(), files._machine()
    elsewhere = _left(copies, f".4.{dead}-00000000.abcd1234.part")  # another machine on the same disk
    unnamed = _left(copies, ".5.abcd1234.part")  # of a version that did not say who is at it
    others = [
        _left(copies, name)
        for name in ("1", ".part", ".git", ".x.abcd1234.part", f".6.{dead}-{here}.abcd1234.part.old")
    ]
    link = copies / f".7.{dead}-{here}.abcd1234.part"
    link.symlink_to(others[0], target_is_directory=True)
    outside = _left(tmp_path, f".8.{dead}-{here}.abcd1234.part")
    assert clear_leftovers(tmp_path / "projects") == 0
    assert clear_leftovers(tmp_path / "projects", time.time() + DAY_S) == 3  # old ones, whoever was at it
    assert not any(path.exists() for path in (part, elsewhere, unnamed))
    assert all((path / "inner" / "train.py").exists() for path in [*others, outside])
    assert link.is_symlink()


def test_files_that_were_never_renamed(copies, tmp_path):
    project = copies.parent
    left, whole = project / ".project.json.abcd1234.part", project / "project.json"
    for path in (left, whole):
        path.write_text("{}")
    assert clear_leftovers(tmp_path / "projects") == 0
    assert clear_leftovers(tmp_path / "projects", time.time() + DAY_S) == 1
    assert whole.exists()
    assert clear_leftovers(tmp_path / "gone") == 0
