"""Source files that may be read: those below folders that the user has allowed, or the run's own copies."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from core import syntax

MAX_SOURCE_BYTES = 4_000_000  # a script is smaller; anything bigger is data
BEGINNING_BYTES = 8192  # in which a file that is no text gives itself away


class SourceFiles:
    """Files of a trace's frames, below allowed folders.

    Parameters
    ----------
    roots
        Folders whose files may be read. A path in the trace only ever selects a file *below* one of these.
    """

    def __init__(self, roots: Iterable[Path] = ()) -> None:
        self._roots = tuple(Path(r).resolve() for r in roots)
        self._trees: dict[str, ast.Module | None] = {}

    def resolve(self, file: str) -> Path | None:
        """Find a trace's file below an allowed folder; None when no folder is allowed or holds it."""
        every = ((path, root) for root in self._roots for path in _places(file, root))
        return next((path.resolve() for path, root in every if _is_there(path) and not _obstacle(path, root)), None)

    def tree(self, file: str) -> ast.Module | None:
        """Syntax tree of a trace's file; None when it may not be read, or cannot."""
        if file not in self._trees:
            self._trees[file] = _parse(self.resolve(file))
        return self._trees[file]


def why_unread(file: str, root: Path) -> str:
    """What keeps a trace's file below a folder from being read; "" where nothing does, or no such file is there.

    It is ``link`` (one that leads out of the folder), ``size``, ``binary`` or ``denied``.
    """
    inside = root.resolve()
    found = (_obstacle(path, inside) for path in _places(file, inside) if _is_there(path))
    return next(found, "")


def _places(file: str, root: Path) -> Iterator[Path]:
    """Where a file that a trace names may lie below a folder: with all of its path, then with less and less of it."""
    parts = [p for p in PurePosixPath(file.replace("\\", "/")).parts if p not in ("/", "..", ".") and ":" not in p]
    return (root.joinpath(*parts[first:]) for first in range(len(parts)))


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _obstacle(path: Path, root: Path) -> str:
    try:
        real = path.resolve()
        if not real.is_relative_to(root):
            return "link"
        if real.stat().st_size > MAX_SOURCE_BYTES:
            return "size"
        with real.open("rb") as handle:
            return "binary" if b"\0" in handle.read(BEGINNING_BYTES) else ""
    except (OSError, ValueError):
        return "denied"


def _parse(path: Path | None) -> ast.Module | None:
    if path is None:
        return None
    try:
        with tokenize.open(path) as handle:
            return syntax.module(handle.read())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
