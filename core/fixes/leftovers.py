"""What a process that died in the middle of a copy left behind, found by our own names and taken away."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

OLD_S = 24 * 3600.0  # no copy takes as long: whoever made it is not at it any more
COPIES = "copies"  # `core.project.COPIES`
# As `part_folder` names them; those of older versions lack the process. The end is what `tempfile` adds.
_FOLDER = re.compile(r"\.\d+\.(?:(\d+)-([0-9a-f]{8})\.)?[a-z0-9_]{8}\.part")
_FILE = re.compile(r"\.project\.json\.[a-z0-9_]{8}\.part")


def part_folder(target: Path) -> Path:
    """Make the folder that receives a copy until it is whole, beside its place; its name says who is at it."""
    prefix = f".{target.name}.{os.getpid()}-{_machine()}."
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
            if _FILE.fullmatch(entry.name) and entry.is_file(follow_symlinks=False) and _age_s(entry, now) > OLD_S:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)
                    count += 1
        for entry in _entries(Path(project.path) / COPIES):
            found = _FOLDER.fullmatch(entry.name)
            if found is None or not entry.is_dir(follow_symlinks=False):
                continue
            ours = found[1] is not None and found[2] == _machine()
            if _age_s(entry, now) > OLD_S or (ours and not _is_alive(int(found[1]))):
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


def _machine() -> str:
    """A short name of this machine: the folder may lie on a disk that several share."""
    return hashlib.sha256(platform.node().encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _is_alive(pid: int) -> bool:
    """Whether there is such a process; True where that cannot be told."""
    if os.name != "posix":  # os.kill would end it there
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
