"""Words for how a line was found."""

from __future__ import annotations

from collections.abc import Sequence

from core.source_frames import Frame
from core.suggestions import SourceRef

_NOT_EXACT = ", not the exact line"
_DEF_LINE = "the line is where the function begins" + _NOT_EXACT
MADE = "it is made here, in the constructor of the class that was seen"
MADE_ELSEWHERE = "it is made here, and called elsewhere"
ROUNDS = "a loop here runs it in each round"
BY_ORDER = "the line follows from what ran before and after it"


def made_for(loop: SourceRef) -> str:
    """Say how the line was found that makes what a loop goes over."""
    if not loop.exact:
        return "it is made here, and used elsewhere"
    return f"it is made here; the loop over it is in line {loop.line}"


def lines_in_words(lines: Sequence[int]) -> str:
    """Say which lines: ``line 3``, ``lines 3, 5 and 8``, ``lines 3, 5, 8 and 4 more``."""
    shown = [str(line) for line in sorted(lines)[:3]] + ([f"{len(lines) - 3} more"] if len(lines) > 3 else [])
    return f"line {shown[0]}" if len(shown) == 1 else f"lines {', '.join(shown[:-1])} and {shown[-1]}"


def unread(frame: Frame, read: bool = False) -> str:
    """Why a place is no more than what its frame says; ``read``: its source was looked at."""
    if frame.function == "<module>":  # code of a file itself has no line at which it begins
        return "the line is where the file's own code stood when the recording began, not the exact line"
    return f"{_DEF_LINE[: -len(_NOT_EXACT)]}; nothing in it stands out" if read else _DEF_LINE
