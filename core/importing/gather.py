"""Putting the pieces of a file together as they come, in as little memory as the whole needs.

Pieces are joined to blocks while the others are being decoded, and the blocks to whole columns in the end. Blocks are
so large that the C library gives the memory of each back as soon as it is let go; hundreds of small pieces would leave
their holes behind, as large as the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from core.importing.columns import GROUPS, STRING_COLUMNS, EventColumns, Interner, dtype_of
from core.tables import I32

BLOCK_ROWS = 1 << 16
Tick = Callable[[], None]
# Numbers of 64 bits that are small as a rule, or all the same: they are held in 32 bits, or once, where that does.
_SMALL = frozenset({"correlation", "external", "copy_bytes", "stream", "order", "async_id", "flow_id"})
_INT32 = np.iinfo(np.int32)


class Gathering:
    """The columns of one file, piece after piece, in the order of the file."""

    def __init__(self) -> None:
        self._interner = Interner()
        self._first: EventColumns | None = None  # as it came, until there is a second
        self._pieces: list[tuple[EventColumns, I32]] = []
        self._blocks: list[EventColumns] = []
        self._rows = 0
        self._whole = EventColumns(strings=[])

    def add(self, piece: EventColumns) -> None:
        """Take a piece; it is used up."""
        if not self._pieces and not self._blocks and self._first is None:
            self._first = piece
            return
        self._take_first()
        self._take(piece)

    def finish(self, tick: Tick = lambda: None) -> EventColumns:
        """Return the columns of all pieces.

        Columns named in ``_SMALL`` may be int32, and read-only, where all their numbers allow it.
        """
        first = self._first
        if first is not None and len(set(first.strings)) == len(first.strings):
            return first
        self._take_first()
        self._end_block()
        whole, blocks = self._whole, self._blocks
        for attribute, group in GROUPS:
            columns = {}
            for f in fields(group):
                tick()
                parts = []
                for block in blocks:
                    held = getattr(block, attribute)
                    parts.append(getattr(held, f.name))
                    setattr(held, f.name, np.empty(0, np.int8))  # lets go of it
                columns[f.name] = _joined(parts, dtype_of(group, f.name))
                del parts
            setattr(whole, attribute, group(**columns))
        whole.strings = list(self._interner.ids)
        return whole

    def _take_first(self) -> None:
        first, self._first = self._first, None
        if first is not None:
            self._take(first)

    def _take(self, piece: EventColumns) -> None:
        whole = self._whole
        whole.metadata.update(piece.metadata)
        whole.events += piece.events
        for code, count in piece.problems.items():
            whole.note(code, piece.examples.get(code, ""), count)
        self._pieces.append((piece, self._interner.translate(piece.strings)))
        self._rows += sum(len(getattr(piece, attribute)) for attribute, _ in GROUPS)
        if self._rows >= BLOCK_ROWS:
            self._end_block()

    def _end_block(self) -> None:
        """Join the pieces that came since the last block."""
        if not self._pieces:
            return
        block = EventColumns(strings=[])
        for attribute, group in GROUPS:
            columns = {}
            for f in fields(group):
                parts = [getattr(getattr(piece, attribute), f.name) for piece, _ in self._pieces]
                if f.name in STRING_COLUMNS:
                    maps = [ids for _, ids in self._pieces]
                    parts = [_translated(part, ids) for part, ids in zip(parts, maps, strict=True)]
                column = np.concatenate(parts)
                columns[f.name] = _small(column) if f.name in _SMALL else column
            setattr(block, attribute, group(**columns))
        self._blocks.append(block)
        self._pieces, self._rows = [], 0


def _translated(part: I32, ids: I32) -> I32:
    """Ids of the whole file for those of a piece."""
    if not len(part) or not len(ids):
        return part
    return np.where(part >= 0, ids[part], np.int32(-1))


def _small(column: Any) -> Any:
    """The same numbers in less memory, where they are all one, or small."""
    if not len(column):
        return column
    low, high = int(column.min()), int(column.max())
    if low < _INT32.min or high > _INT32.max:
        return column
    if low == high:
        return np.broadcast_to(np.int32(low), len(column))
    return column.astype(np.int32)


def _joined(parts: Sequence[Any], dtype: type[np.generic]) -> Any:
    """One column of those of all blocks."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return np.empty(0, dtype)
    first = parts[0][0]
    if all(part.strides == (0,) and part[0] == first for part in parts):
        return np.broadcast_to(first, sum(map(len, parts)))
    return np.concatenate(parts)
