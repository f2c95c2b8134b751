"""Putting the pieces of a file together as they come, in as little memory as the whole needs.

Each column of the whole is made once, as long as the part that was read lets expect, and the pieces are written into
it. What is never written to takes no memory; where there is more than was expected, it is made longer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from core.importing.columns import GROUPS, STRING_COLUMNS, EventColumns, Group, Interner, dtype_of
from core.tables import I32

SPARE_ROWS = 1 << 14
_MOST_TIMES = 1 << 10  # as many times as was read there may be to come, however little of a file that was
Tick = Callable[[], None]
# Numbers of 64 bits that are small as a rule, or all the same: they are held in 32 bits, or once, where that does.
_SMALL = frozenset({"correlation", "external", "copy_bytes", "stream", "order", "async_id", "flow_id"})
_INT32 = np.iinfo(np.int32)


class Gathering:
    """The columns of one file, piece after piece, in the order of the file.

    Parameters
    ----------
    lasting
        Pieces stay as they are after `add`: one that is the only one need not be copied.
    """

    def __init__(self, *, lasting: bool = True) -> None:
        self._lasting = lasting
        self._interner = Interner()
        self._first: EventColumns | None = None  # as it came, until there is a second
        self._whole = EventColumns(strings=[])
        self._groups = [(attribute, _Rows(group)) for attribute, group in GROUPS]

    def add(self, piece: EventColumns, read: float = 1.0) -> None:
        """Take a piece; it is used up.

        Parameters
        ----------
        piece
            Columns of the next events.
        read
            How much of the file has been read with it, 0 to 1; a guess will do.
        """
        first, self._first = self._first, None
        if first is None and self._lasting and not self._whole.events and not self._interner.ids:
            self._first = piece
            return
        if first is not None:
            self._take(first, read / 2)
        self._take(piece, read)

    def finish(self, tick: Tick = lambda: None) -> EventColumns:
        """Return the columns of all pieces.

        Columns named in ``_SMALL`` may be int32, and read-only, where all their numbers allow it.
        """
        first, self._first = self._first, None
        if first is not None:
            if len(set(first.strings)) == len(first.strings):
                return first
            self._take(first, 1.0)
        whole = self._whole
        for attribute, rows in self._groups:
            tick()
            setattr(whole, attribute, rows.finish())
        whole.strings = list(self._interner.ids)
        return whole

    def _take(self, piece: EventColumns, read: float) -> None:
        whole = self._whole
        whole.metadata.update(piece.metadata)
        whole.events += piece.events
        for code, count in piece.problems.items():
            whole.note(code, piece.examples.get(code, ""), count)
        ids = np.append(self._interner.translate(piece.strings), np.int32(-1))  # -1 stays what it is
        for attribute, rows in self._groups:
            held = getattr(piece, attribute)
            if len(held):
                rows.add(held, ids, read)


class _Rows:
    """The rows of one group of columns."""

    def __init__(self, group: type[Group]) -> None:
        self._group = group
        self._columns: dict[str, _Column] = {}
        self._count = self._room = 0

    def add(self, piece: Group, ids: I32, read: float) -> None:
        """Append rows; ``ids`` are the whole file's string ids of the piece's, the last one -1."""
        if not self._columns:
            self._columns = {f.name: _column_of(self._group, f.name) for f in fields(self._group)}
        end = self._count + len(piece)
        if end > self._room:
            self._room = int(end * min(1.05 / max(read, 1e-9), _MOST_TIMES)) + SPARE_ROWS
        for name, column in self._columns.items():
            part = getattr(piece, name)
            column.put(ids[part] if name in STRING_COLUMNS else part, self._count, self._room)
        self._count = end

    def finish(self) -> Group:
        """Return the whole columns, and keep none."""
        columns, self._columns = self._columns, {}
        return self._group(**{
            f.name: columns[f.name].finish(self._count) if columns else np.empty(0, dtype_of(self._group, f.name))
            for f in fields(self._group)
        })  # fmt: skip


def _column_of(group: type[Group], name: str) -> _Column:
    return _SmallColumn(np.dtype(np.int32)) if name in _SMALL else _Column(np.dtype(dtype_of(group, name)))


class _Column:
    """One column, longer than what is in it."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._values = np.empty(0, dtype)

    def put(self, part: Any, at: int, room: int) -> None:
        """Write numbers behind the ``at`` that are there; ``room`` for so many is there then."""
        if len(self._values) < room:
            self._move(at, room, self._values.dtype)
        self._values[at : at + len(part)] = part

    def _move(self, count: int, room: int, dtype: np.dtype[Any]) -> None:
        moved = np.empty(room, dtype)
        moved[:count] = self._values[:count]
        self._values = moved

    def finish(self, count: int) -> Any:
        """Return the first ``count`` numbers."""
        return self._values[:count]


class _SmallColumn(_Column):
    """Whole numbers, held once while they are all the same, and in 32 bits while that does."""

    _same: np.int32 | None = None

    def put(self, part: Any, at: int, room: int) -> None:
        """As of any column."""
        low, high = int(part.min()), int(part.max())
        small = low >= _INT32.min and high <= _INT32.max
        if not len(self._values):
            if small and low == high and (not at or self._same == low):
                self._same = np.int32(low)
                return
            self._values = np.broadcast_to(np.int32(0) if self._same is None else self._same, at)
        if not small and self._values.dtype == np.int32:
            self._move(at, room, np.dtype(np.int64))
        super().put(part, at, room)

    def finish(self, count: int) -> Any:
        """As of any column."""
        return super().finish(count) if len(self._values) else np.broadcast_to(np.int32(self._same or 0), count)
