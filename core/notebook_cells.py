"""Where a line of a script that was made of a notebook stands in the notebook (`profiling.notebooks` writes them)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_HEAD = re.compile(r"# The code of (?P<name>.+), cell by cell\. ")
_CELL = re.compile(r"# %% cell (\d+)")
LARGEST_BYTES = 50_000_000


@dataclass(frozen=True)
class Cell:
    """A place in a notebook: its name, and cell and line in it, counted from 1; both None where no cell is known."""

    notebook: str
    number: int | None = None
    line: int | None = None


def cell_of(script: Path, line: int) -> Cell | None:
    """Place in the notebook of a line (from 1) of a script made of one; None for any other script.

    Cells are counted as a notebook holds them, those of text among them.
    """
    try:
        if script.stat().st_size > LARGEST_BYTES:
            return None
        lines = script.read_text("utf-8", "replace").split("\n")
    except OSError:
        return None
    head = _HEAD.match(lines[0])
    if head is None:
        return None
    for at in range(min(line, len(lines)) - 1, -1, -1):
        if found := _CELL.fullmatch(lines[at].rstrip("\r")):
            return Cell(head["name"], int(found[1]), line - at - 1) if line > at + 1 else Cell(head["name"])
    return Cell(head["name"])
