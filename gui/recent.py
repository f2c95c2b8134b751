"""The recent files as they are kept: a time and a path, or the paths of files that were opened as one timeline."""

from __future__ import annotations

import json
from pathlib import Path

from gui import together
from gui.session import Recent


def to_line(entry: Recent) -> str:
    """One entry as text."""
    files = [str(file) for file in together.files_of(entry.path)]
    return f"{entry.opened_at:.0f}|{files[0] if len(files) == 1 else json.dumps(files)}"


def from_line(line: str) -> Recent | None:
    """The entry that a text is of; None for one that is damaged."""
    time, _, kept = line.partition("|")
    try:
        opened_at = float(time)
        files = [Path(str(file)) for file in json.loads(kept)] if kept.startswith("[") else [Path(kept)]
    except (ValueError, TypeError):
        return None
    if not kept or not files:
        return None
    path = files[0] if len(files) == 1 else together.whole_of(files)
    if len(files) > 1:
        together.remember(path, files)
    return Recent(path, opened_at)


def is_there(entry: Recent) -> bool:
    """Whether all of its files are still there."""
    return all(file.exists() for file in together.files_of(entry.path))


def paths_of(entry: Recent) -> str:
    """Its paths, one a line."""
    return "\n".join(str(file) for file in together.files_of(entry.path))
