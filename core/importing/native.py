"""The compiled reader of regular events (`_native.c`), where it was built: several times as fast as `msgspec`.

It is a plain library, built when the project is installed on a machine with a C compiler. Without it, or with
``STEPLENS_NATIVE=off``, `core.importing.fast` and `core.importing.stack` do everything by themselves, with the same
results.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import numpy as np

from core.tables import I32, I64

_VERSION = 3
TEXTS = 4  # category, name, process, thread
_ARGUMENTS = 8
SWITCH = "STEPLENS_NATIVE"
_P = ctypes.c_void_p
NO_INT = -(1 << 63)
FULL = -(1 << 63)
_EVENT_BYTES = len(b'{"ph":"M"},')  # none is shorter
_MOSTLY_BYTES = 48  # nearly all are longer: rows for all that there could be are made only where they are needed
_DISTINCT = 1 << 15  # texts; ten times as many as a piece has
_SEED = int.from_bytes(os.urandom(8), "little")  # nobody can prepare texts that share a place in the table


class _Columns(ctypes.Structure):
    _fields_ = (
        ("capacity", ctypes.c_int64),
        ("distinct", ctypes.c_int64),
        ("buckets", ctypes.c_int64),
        ("seed", ctypes.c_uint64),
        ("phase", _P),
        ("texts", _P * TEXTS),
        ("time", _P),
        ("duration", _P),
        ("id", _P),
        ("arguments", _P * _ARGUMENTS),
        ("start", _P),
        ("length", _P),
        ("table", _P),
        ("where", _P),
        ("found", ctypes.c_int64),
        ("odd", ctypes.c_int64),
    )


class Scanned:
    """What was read of a piece of text: a row per event; columns hold rubbish where an event has no such value.

    Attributes
    ----------
    phase
        uint8[n]; instants by all their letters are ``i``.
    texts
        int32[4, n]: category, name, process, thread, as ids of distinct texts (none for ``M`` and ``C``; no category
        of instants, no name of arrows).
    time, duration, id
        int64[n]; ns, the duration -1 where there is none, the id of arrows.
    arguments
        int64[8, n]: of slices correlation, external id (by its two names), bytes, size, device, stream, Python id, -1
        where absent; of instants device type, device id, address, bytes (0 where absent), allocated, reserved.
        `NO_INT` where something else stands.
    start, length
        int64[n], int32[n]: place of the event in the text, bytes.
    places
        int64[k, 2]: offset and length of the distinct texts, by id.
    odd
        How many rows have `NO_INT` among their arguments.
    events
        How many events there are, n; where something is not as it should be, -1 minus the offset of that
        event; `FULL` where there are more than the capacity.
    """

    def __init__(self, text: bytes, size: int, capacity: int | None = None) -> None:
        """Read the first ``size`` bytes of events that are separated by commas, ``capacity`` of them at most."""
        if capacity is not None:
            self._read(text, size, capacity)
            return
        self._read(text, size, size // _MOSTLY_BYTES + 1)  # counting them takes as long as reading them
        if self.events == FULL:
            self._read(text, size, size // _EVENT_BYTES + 1)

    def _read(self, text: bytes, size: int, capacity: int) -> None:
        phase = np.empty(capacity, np.uint8)
        texts = np.empty((TEXTS, capacity), np.int32)
        numbers = np.empty((4, capacity), np.int64)
        arguments = np.empty((_ARGUMENTS, capacity), np.int64)
        length = np.empty(capacity, np.int32)
        distinct = min(TEXTS * capacity + 1, _DISTINCT)
        table = np.full(1 << distinct.bit_length(), -1, np.int32)
        where = np.empty((distinct, 2), np.int64)
        held = _Columns(capacity, distinct, len(table), _SEED, phase.ctypes.data)
        held.texts[:] = _rows_of(texts)
        held.time, held.duration, held.id, held.start = _rows_of(numbers)
        held.arguments[:] = _rows_of(arguments)
        held.length, held.table, held.where = length.ctypes.data, table.ctypes.data, where.ctypes.data
        library = _library()
        assert library is not None
        self.events = int(library.steplens_events(text, min(size, len(text)), ctypes.byref(held)))
        n = max(self.events, 0)
        self.phase, self.texts, self.length = phase[:n], texts[:, :n], length[:n]
        self.time, self.duration, self.id, self.start = numbers[:, :n]
        self.arguments = arguments[:, :n]
        self.places = where[: held.found]
        self.odd = int(held.odd)


def _rows_of(columns: Any) -> list[int]:
    """Addresses of the rows of a table."""
    first, step = int(columns.ctypes.data), int(columns.strides[0])
    return [first + row * step for row in range(len(columns))]


def available() -> bool:
    """Whether the compiled reader can be used here."""
    return _library() is not None


def nest(start: I64, end: I64) -> tuple[I32, I32, I32] | None:
    """Nest the slices of one track, where each lies in the one around it and the library is there; else None.

    Parameters
    ----------
    start, end
        int64[n], ns, sorted by (start, -end).

    Returns
    -------
    tuple
        int32[n] each: parent (-1 none), depth, one past the last row that starts inside.
    """
    library = _library()
    if library is None:
        return None
    first, last = np.ascontiguousarray(start, np.int64), np.ascontiguousarray(end, np.int64)
    parent, depth, subtree = (np.empty(len(start), np.int32) for _ in range(3))
    held = (column.ctypes.data for column in (parent, depth, subtree))
    crossed = library.steplens_nest(first.ctypes.data, last.ctypes.data, len(start), *held)
    return None if crossed else (parent, depth, subtree)


@cache
def _library() -> Any:
    if os.environ.get(SWITCH, "").lower() in ("off", "0", "no") or sys.byteorder != "little":
        return None
    folder = Path(__file__).parent
    for suffix in EXTENSION_SUFFIXES:
        file = folder / f"_native{suffix}"
        if file.is_file():
            return _opened(file)
    return None


def _opened(file: Path) -> Any:
    try:
        library = ctypes.CDLL(str(file))
        version, events, nest = library.steplens_version, library.steplens_events, library.steplens_nest
    except (OSError, AttributeError):  # of another machine, or of another version
        return None
    version.restype = events.restype = nest.restype = ctypes.c_int64
    version.argtypes = ()
    events.argtypes = (ctypes.c_char_p, ctypes.c_int64, ctypes.POINTER(_Columns))
    nest.argtypes = (_P, _P, ctypes.c_int64, _P, _P, _P)
    return library if version() == _VERSION else None
