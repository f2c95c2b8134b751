"""Source files that may be read: those below folders that the user has allowed, or the run's own copies."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from core import syntax

MAX_SOURCE_BYTES = 4_000_000  # a script is smaller; anything bigger is data


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
        parts = [p for p in PurePosixPath(file.replace("\\", "/")).parts if p not in ("/", "..", ".") and ":" not in p]
        for root in self._roots:
            for first in range(len(parts)):
                path = root.joinpath(*parts[first:])
                try:
                    real = path.resolve()
                    if path.is_file() and real.is_relative_to(root) and real.stat().st_size <= MAX_SOURCE_BYTES:
                        return real
                except (OSError, ValueError):
                    continue
        return None

    def tree(self, file: str) -> ast.Module | None:
        """Syntax tree of a trace's file; None when it may not be read, or cannot."""
        if file not in self._trees:
            self._trees[file] = _parse(self.resolve(file))
        return self._trees[file]


def _parse(path: Path | None) -> ast.Module | None:
    if path is None:
        return None
    try:
        with tokenize.open(path) as handle:
            return syntax.module(handle.read())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
