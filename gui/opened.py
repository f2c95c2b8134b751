"""What a window had open, as a file that the next start can read: traces, pages, tabs, and how each was shown."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from core.files import is_alive
from gui import store
from gui.together import MOST_FILES

FORMAT = "steplens.open/1"
MOST = 24  # documents; more were never meant to be open at once
PAGES = ("iterations", "compare", "runs", "launch")  # pages of the whole app that come back


@dataclass(frozen=True)
class Shown:
    """How one trace was shown. Times in ns; -1 and "" are nothing."""

    path: str
    run_folder: str = ""
    stamp: str = ""  # size and time of change: the selection is of this file and of no other
    view: tuple[float, float] | None = None
    selected_slice: int = -1
    selected_range: tuple[int, int] | None = None
    range_tracks: tuple[int, ...] = ()
    suggestion: str = ""  # Suggestion.key
    small_shown: bool = False
    tab: str = ""  # under the timeline
    files: tuple[str, ...] = ()  # those that `path` stands for, where it names none itself


@dataclass(frozen=True)
class Opened:
    """All that was open in a window, in the order of its tabs."""

    documents: tuple[Shown, ...] = ()
    pages: tuple[str, ...] = ()
    front: str = ""  # path of a trace, or id of a page
    compared: tuple[str, ...] = ()  # paths of the two
    tabs: tuple[str, ...] = ()  # paths of traces and ids of pages, as their tabs stood
    rounds: str = ""  # folder of the project whose rounds were shown
    stretch: tuple[float, float] | None = None  # of the first of the two that are compared, ns
    files: tuple[Path, ...] = field(default=(), compare=False)  # where it was read from

    def __bool__(self) -> bool:
        return bool(self.documents)


def folder() -> Path:
    """Folder with one file per running window."""
    return store.folder().parent / "open"


def last_opened(where: Path, own: Path | None = None) -> Opened:
    """What the window that was used last had open; without what is no longer there (reads files: for a job).

    Windows that still run keep theirs to themselves, as does this one (``own``).
    """
    try:
        files = sorted(where.glob("*.json"), key=lambda f: f.stat().st_mtime_ns, reverse=True)
    except OSError:
        return Opened()
    free = [file for file in files if file != own and not in_use(file)]
    for file in free:
        found = _read(file)
        there = tuple(left for shown in found.documents if (left := _left(shown)) is not None)
        if there:
            return replace(found, documents=there, files=tuple(free))
    return Opened(files=tuple(free))


def _left(shown: Shown) -> Shown | None:
    """A trace that is still there; of several files those that are."""
    if not shown.files:
        return shown if exists(shown.path) else None
    files = tuple(file for file in shown.files if exists(file))
    return replace(shown, files=files) if files else None


def exists(path: str) -> bool:
    """Whether a path is there, as far as can be told."""
    try:
        return Path(path).exists()
    except OSError:
        return False


def in_use(file: Path) -> bool:
    """Whether the window that writes this file runs, as far as can be told."""
    pid, _, rest = file.stem.partition("-")
    if not pid.isdigit() or rest.partition("-")[0] != machine() or os.name != "posix" or int(pid) == os.getpid():
        return False  # a file of our number that is not ours is of a process that had it before
    return is_alive(int(pid))


def machine() -> str:
    """A short name of this machine."""
    return hashlib.sha256(platform.node().encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _read(file: Path) -> Opened:
    """Read what a window had open; what does not fit is left out."""
    try:
        values: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return Opened()
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        return Opened()
    rows = values.get("documents")
    shown = [_shown(row) for row in (rows if isinstance(rows, list) else [])[:MOST]]
    front, rounds = values.get("front"), values.get("rounds")
    return Opened(
        tuple(s for s in shown if s is not None),
        tuple(p for p in _texts(values.get("pages")) if p in PAGES),
        front if isinstance(front, str) else "",
        _texts(values.get("compared"))[:2],
        _texts(values.get("tabs"))[: MOST + len(PAGES)],
        rounds if isinstance(rounds, str) else "",
        _pair(values.get("stretch"), (int, float)),
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, list) else ()


def _shown(row: object) -> Shown | None:
    if not isinstance(row, Mapping) or not isinstance(row.get("path"), str) or not os.path.isabs(row["path"]):
        return None
    kinds: dict[str, type] = {"selected_slice": int, "small_shown": bool}
    given: dict[str, Any] = {}
    for known in fields(Shown):
        value = row.get(known.name)
        if known.name == "view":
            given["view"] = _pair(value, (int, float))
        elif known.name == "selected_range":
            given["selected_range"] = _pair(value, (int,))
        elif known.name == "range_tracks":
            given["range_tracks"] = (
                tuple(v for v in value if type(v) is int and _fits(v)) if isinstance(value, list) else ()
            )
        elif known.name == "files":
            given["files"] = tuple(text for text in _texts(value) if os.path.isabs(text))[:MOST_FILES]
        elif type(value) is kinds.get(known.name, str):
            given[known.name] = value
    return Shown(**given)


def _pair(value: object, kinds: tuple[type, ...]) -> Any:
    if not isinstance(value, list) or len(value) != 2 or any(type(v) not in kinds for v in value):
        return None
    return tuple(value) if all(_fits(v) for v in value) else None


def _fits(number: float) -> bool:
    return -(1 << 62) < number < 1 << 62  # a time or a row; nan is not either
