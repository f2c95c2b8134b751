"""What is told of the slices of a regular piece alike, whichever road read them."""

from __future__ import annotations

import numpy as np

from core.importing.columns import NO_DURATION, EventColumns
from core.importing.kineto import CATEGORIES, PROFILER_SPAN
from core.kinds import HOST_CALLS, SliceKind
from core.tables import I32, I64, U8, Bool

_DEVICE_KINDS = (SliceKind.KERNEL, SliceKind.MEMCPY, SliceKind.MEMSET, SliceKind.DEVICE_RANGE, SliceKind.DEVICE_SYNC,
                 SliceKind.OTHER)  # fmt: skip
ON_DEVICE = np.isin(np.arange(256), _DEVICE_KINDS)  # by kind
IS_CALL = np.isin(np.arange(256), HOST_CALLS)
IS_SLICE = np.isin(np.arange(256), list(b"XBEbe"))  # by phase
ARROWS = list(b"stf")
IS_ARROW = np.isin(np.arange(256), ARROWS)
_COMPLETE = ord("X")


_TAIL_BYTES = 256  # of a piece: what follows its last event
_BETWEEN = b", \t\r\n"


class Irregular(Exception):
    """The piece needs the event-by-event road."""


def events_end(text: bytes) -> int:
    """Where the last event of a piece ends: what follows it are commas and blanks."""
    tail = text[-_TAIL_BYTES:]
    kept = tail.rstrip(_BETWEEN)
    return len(text) - len(tail) + len(kept) if kept else len(text.rstrip(_BETWEEN))


def without_spans(out: EventColumns, texts: list[str], category: I32, name: I32, phase: U8) -> Bool | None:
    """bool[n]: which slices are work and not the profiler's own envelope, which is counted; None where all are.

    Parameters
    ----------
    out
        Where it is counted.
    texts
        Texts by id.
    category, name
        int32[n] ids.
    phase
        uint8[n].
    """
    span = [i for i in np.flatnonzero(np.bincount(category, minlength=1)).tolist() if texts[i].lower() == PROFILER_SPAN]
    if not span:
        return None
    shown: Bool = ~np.isin(category, span) | (phase != _COMPLETE)
    if shown.all():
        return None
    out.note("profiler-span", texts[int(name[int(np.argmin(shown))])], len(shown) - int(shown.sum()))
    return shown


def kinds_of(texts: list[str], category: I32) -> U8:
    """uint8[n]: kind of each slice by its category's id."""
    kind_of = np.zeros(max(len(texts), 1), np.uint8)
    for i in np.flatnonzero(np.bincount(category, minlength=1)).tolist():
        kind_of[i] = int(CATEGORIES.get(texts[i].lower(), SliceKind.OTHER))
    kinds: U8 = kind_of[category]
    return kinds


def note_durations(out: EventColumns, texts: list[str], name: I32, phase: U8, durations: I64) -> None:
    """Count the whole slices whose duration is none."""
    invalid = (durations == NO_DURATION) & (phase == _COMPLETE)
    if invalid.any():
        out.note("no-duration", texts[int(name[int(np.argmax(invalid))])], int(invalid.sum()))
