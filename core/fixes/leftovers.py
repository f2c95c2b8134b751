"""What a process that died in the middle of a copy left behind, found by our own names and taken away."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from core.files import PART, is_left, maker

COPIES = "copies"  # `core.project.COPIES`
_FOLDER = re.compile(rf"\.\d+\.{PART}")  # as `part_folder` names them
_FILE = re.compile(rf"\.project\.json\.{PART}")


def part_folder(target: Path) -> Path:
    """Make the folder that receives a copy until it is whole, beside its place; its name says who is at it."""
    prefix = f".{target.name}.{maker()}."
    return Path(tempfile.mkdtemp(prefix=prefix, suffix=".part", dir=target.parent))


def clear_leftovers(root: Path, now_s: float | None = None) -> int:
    """Remove unfinished copies below the folder of all projects, and files that were never renamed.

    Only what bears our own name is looked at, and only what a process of this machine that has ended was making, or
    what is older than a day. Links in a copy are taken away, never what they lead to.

    Parameters
    ----------
    root
        Folder of all projects.
    now_s
        Seconds since the epoch; for tests.

    Returns
    -------
    int
        How many were removed.
    """
    now, count = time.time() if now_s is None else now_s, 0
    for project in _entries(root):
        if not project.is_dir(follow_symlinks=False):
            continue
        for entry in _entries(Path(project.path)):
            found = _FILE.fullmatch(entry.name)
            if found is not None and entry.is_file(follow_symlinks=False) and is_left(found, _age_s(entry, now)):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)
                    count += 1
        for entry in _entries(Path(project.path) / COPIES):
            found = _FOLDER.fullmatch(entry.name)
            if found is None or not entry.is_dir(follow_symlinks=False):
                continue
            if is_left(found, _age_s(entry, now)):
                shutil.rmtree(entry.path, ignore_errors=True)
                count += not os.path.lexists(entry.path)
    return count


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Entries of a folder, none where it cannot be read; a folder that is itself a link is not looked into."""
    if folder.name == COPIES and folder.is_symlink():
        return
    try:
        with os.scandir(folder) as found:
            entries = list(found)
    except OSError:
        return
    yield from entries


def _age_s(entry: os.DirEntry[str], now_s: float) -> float:
    try:
        return now_s - entry.stat(follow_symlinks=False).st_mtime
    except OSError:
        return 0.0
