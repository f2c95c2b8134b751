"""Files that are opened together: ranks of one job make one timeline, anything else a tab each."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

HEAD_BYTES = 64 << 10  # Kineto writes what it knows of the job before the events
MOST_FILES = 512  # more are not looked into; a folder can be opened as one
_JOB = re.compile(rb'"distributedInfo"\s*:\s*\{([^{}]{0,4000})')
_RANK, _WORLD = (re.compile(rb'"%s"\s*:\s*(\d{1,6})\b' % name) for name in (b"rank", b"world_size"))
_NAMED = re.compile(r"rank[_-]?(\d{1,6})(?!\d)", re.IGNORECASE)

_files: dict[Path, tuple[Path, ...]] = {}


def gather(paths: Sequence[Path]) -> list[Path]:
    """Return what is to be opened, in order: paths as they are, and one that stands for the ranks of a job.

    Files are of one job where they lie in one folder, say different ranks, and the same number of ranks (or are named
    alike but for the rank). The path that stands for them names no file: see `files_of`.
    """
    given = list(dict.fromkeys(Path(path).absolute() for path in paths))
    jobs: dict[object, dict[Path, int]] = {}
    for path in given if 1 < len(given) <= MOST_FILES else ():
        told = _rank_of(path)
        if told is not None:
            jobs.setdefault((path.parent, told[1]), {})[path] = told[0]
    one_job = [tuple(held) for held in jobs.values() if len(held) > 1 and len(set(held.values())) == len(held)]
    opened: list[Path] = []
    for path in given:
        files = next((held for held in one_job if path in held), None)
        if files is None:
            opened.append(path)
        elif path == files[0]:
            whole = whole_of(files)
            remember(whole, files)
            opened.append(whole)
    return opened


def whole_of(files: Sequence[Path]) -> Path:
    """The path that stands for several files: it names none."""
    return files[0].with_name(f"{files[0].name} + {len(files) - 1}")


def remember(path: Path, files: Sequence[Path]) -> None:
    """Have a path stand for several files, as one of `gather` does."""
    _files[path] = tuple(files)


def files_of(path: Path) -> tuple[Path, ...]:
    """The files that a path of `gather` stands for: itself where it is a file or a folder."""
    return _files.get(path, (path,))


def _rank_of(path: Path) -> tuple[int, object] | None:
    """Rank of a trace, and what it shares with the others of its job; None where neither header nor name tell."""
    found = _JOB.search(_head(path))
    if found is not None:
        rank, world = _RANK.search(found.group(1)), _WORLD.search(found.group(1))
        if rank is not None and world is not None and int(world.group(1)) > 1:
            return int(rank.group(1)), int(world.group(1))
    named = _NAMED.search(path.name)
    return None if named is None else (int(named.group(1)), path.name[: named.start()] + path.name[named.end() :])


def _head(path: Path) -> bytes:
    """The first bytes of a file's text; none where it is no file that can be read."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return gzip.GzipFile(fileobj=file).read(HEAD_BYTES) if path.suffix == ".gz" else file.read(HEAD_BYTES)
    except (OSError, EOFError, ValueError, zlib.error):
        return b""
