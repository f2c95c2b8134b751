"""Lines of the user's code around a place."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

NEIGHBOURS = 2
MAX_BYTES = 2_000_000


@dataclass(frozen=True)
class CodeLine:
    """One line; ``marked`` is the one meant."""

    number: int
    text: str
    marked: bool


def around(path: Path, line: int, marked: Iterable[int] = ()) -> tuple[CodeLine, ...]:
    """Lines of a file around one, with the indentation they share taken away; empty when it cannot be read."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return ()
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ()
    wanted = set(marked)
    first, last = max(1, line - NEIGHBOURS), min(len(lines), line + NEIGHBOURS)
    if first > last:
        return ()
    shown = textwrap.dedent("\n".join(text.expandtabs(4) for text in lines[first - 1 : last])).split("\n")
    return tuple(CodeLine(first + k, text, first + k in wanted) for k, text in enumerate(shown))
