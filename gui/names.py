"""Short names that tell traces apart where there is little room: on tabs, and in lists of files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

_SUFFIX = re.compile(r"(\.pt)?(\.trace)?(\.json)?(\.(gz|zst|zip))?$")
_RUN = re.compile(
    r"^\d{4}-\d\d-\d\d_(\d\d)-(\d\d)-\d\d_(.+?)(?:-round-(\d+)(?:-round-\d+-again)?)?(-\d+)?$"
)  # folder of a run (`profiling.manifest`)
_BETWEEN = " ,_-.·/("  # what stands between words is left out before dots
_WORDS = 8  # that are looked at at both ends of a name
_PLAIN = re.compile(r"^trace(-rank\d+)?$")


def stem(name: str) -> str:
    """A file's name without the endings that all traces have."""
    return _SUFFIX.sub("", name) or name


def file_stem(title: str) -> str:
    """Name to propose for a file that is written of a trace: a name only, whatever the title holds."""
    return re.sub(r"[^\w.,-]+", "-", stem(title)).strip("-.") or "trace"


def of_path(path: Path) -> str:
    """Name of a file for a list: of a run's trace its script and the time of day."""
    run, plain = _RUN.match(path.parent.name), _PLAIN.match(stem(path.name))
    if run is None or plain is None:
        return path.name
    part = f" · {path.name}" if plain[1] else ""
    number = f", round {run[4]}" if run[4] else ""
    return f"{run[3]}{number}, {run[1]}:{run[2]}{part}"


def told_apart(names: Sequence[str], paths: Sequence[Path | None]) -> list[str]:
    """Names for tabs: without common endings, and with the folder in front where two would be the same.

    Parameters
    ----------
    names
        Titles.
    paths
        File behind each, None where there is none.
    """
    brief = [short(name, path) for name, path in zip(names, paths, strict=True)]
    shown = list(brief)
    for place, (name, path) in enumerate(zip(brief, paths, strict=True)):
        twins = [p for n, p in zip(brief, paths, strict=True) if n == name and p is not None and p != path]
        if path is not None and twins:
            shown[place] = f"{_folder(path, twins)}/{name}"
    return shown


def short(name: str, path: Path | None) -> str:
    """A title without the endings of its file's name."""
    return name.replace(path.name, stem(path.name)) if path is not None else name


def _folder(path: Path, twins: Sequence[Path]) -> str:
    """The nearest folder above a file that none of its namesakes has at the same place."""
    parts = path.parent.parts
    for back in range(1, len(parts) + 1):
        others = {t.parent.parts[-back] for t in twins if len(t.parent.parts) >= back}
        if parts[-back] not in others:
            return parts[-back]
    return os.path.basename(path.parent)


def telling_part(name: str, others: Sequence[str]) -> int:
    """Where the word begins by which a name differs from the others that begin as it does; 0 where none does."""
    shared = max((len(os.path.commonprefix([name, other])) for other in others if other != name), default=0)
    starts = [found.start() for found in re.finditer(r"(?<![^\W_])[^\W_]", name) if found.start() <= shared]
    if shared >= len(name) or not starts:
        return 0
    at = starts[-1]
    # A number alone says little: the word before it goes with it ("round 2").
    numbered = len(starts) > 1 and name[at].isdigit() and name[at - 1] == " " and name[at - 2].isalnum()
    return starts[-2] if numbered else at


def _to_word(head: str) -> str:
    """A beginning without the part of a word at its end, where more than half of it is left."""
    found = [k.start() for k in re.finditer(r"[\s,_.·/-]+", head)]
    end = found[-1] if found and 2 * found[-1] > len(head) else len(head)
    return head[:end].rstrip(_BETWEEN)


def cut_whole(name: str, width: Callable[[str], int], room: int, *, at_end: bool = False) -> str:
    """A name in less room than it needs, cut between words: ``ranks 0-7…``, a file's ``d01_v100…nw0``.

    Parameters
    ----------
    width, room
        As for `cut_apart`.
    at_end
        What follows is out of sight, so that the beginning counts.
    """
    if width(name) <= room:
        return name
    words = [found.start() for found in re.finditer(r"(?<=[_.-])[^\W_]", name)]
    if not at_end and " " not in name:
        ends = [(head, tail) for head in words[:_WORDS] for tail in words[-_WORDS:] if head < tail]
        pairs = [(name[:head].rstrip(_BETWEEN), name[tail:]) for head, tail in ends]
        fitting = [(a, b) for a, b in pairs if a and width(f"{a}…{b}") <= room]
        if fitting:
            head, tail = max(fitting, key=lambda pair: (len(pair[0]) + len(pair[1]), len(pair[0])))
            return f"{head}…{tail}"
    longest = next((k for k in range(len(name), 0, -1) if width(name[:k].rstrip(_BETWEEN) + "…") <= room), 0)
    return _to_word(name[:longest]) + "…"


def cut_apart(name: str, others: Sequence[str], width: Callable[[str], int], room: int) -> str:
    """A name in so little room that what tells it from the others stays: ``tr…round 2, 17:43``.

    Parameters
    ----------
    width
        How wide a text is.
    room
        Its place, in the same unit.
    """
    at = telling_part(name, others)
    if width(name) <= room or not at:
        return name
    tail = name[at:]
    for head in range(at - 1, -1, -1):
        words = _to_word(name[:head]) + "…" + tail
        if width(words) <= room:
            return words
    parts = [k for k in range(len(tail) - 1, 0, -1) if tail.startswith(", ", k)]  # rather whole: ``round 2…``
    for end in [*parts, *range(len(tail) - 1, 0, -1)]:
        words = tail[:end].rstrip(" ,_-.") + "…"
        if width(words) <= room:
            return words
    return name
