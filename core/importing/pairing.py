"""Begin and end events put together: ``B``/``E`` by thread, ``b``/``e`` by id."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from core.importing.columns import NO_DURATION, EventColumns, SliceColumns
from core.tables import Bool

_X, _B, _E, _ASYNC_B, _ASYNC_E = (ord(c) for c in "XBEbe")
_TICK_EVERY = 10_000


@dataclass
class Paired:
    """Slices only; ``unfinished`` bool[n]: begun and never ended."""

    slices: SliceColumns
    unfinished: Bool


class _Open:
    """Begins without an end so far of one thread or id, in order."""

    def __init__(self) -> None:
        self._all: list[int] = []
        self._of_name: dict[int, list[int]] = {}
        self._closed: set[int] = set()

    def add(self, row: int, name: int) -> None:
        self._all.append(row)
        self._of_name.setdefault(name, []).append(row)

    def take(self, name: int | None) -> int:
        """Row of the last begin (of a name, where one is given), -1 without one. No begin is looked at twice."""
        held = self._all if name is None else self._of_name.get(name, [])
        while held:
            row = held.pop()
            if row in self._closed:
                self._closed.discard(row)  # it stood in both lists, and is in neither now
            else:
                self._closed.add(row)
                return row
        return -1

    def rest(self) -> list[int]:
        """Rows that never end."""
        return [row for row in self._all if row not in self._closed]


def pair(columns: EventColumns, tick: Callable[[], None] = lambda: None) -> Paired:
    """Make slices of the halves; counts unmatched ends and unfinished begins in ``columns``."""
    slices, strings = columns.slices, columns.strings
    whole = slices.phase == _X
    if bool(whole.all()):
        return Paired(slices, np.zeros(len(slices), np.bool_))
    keep = whole.copy()
    unfinished = np.zeros(len(slices), np.bool_)
    dur = slices.dur_ns.copy()
    halves = np.flatnonzero(~whole)
    halves = halves[np.argsort(slices.time_ns[halves], kind="stable")]
    held = slices.rows(halves)
    plain = (held.phase == _B) | (held.phase == _E)
    first = np.where(plain, held.pid, -1 - held.category).tolist()
    second = np.where(plain, held.tid, held.async_id).tolist()
    begins = ((held.phase == _B) | (held.phase == _ASYNC_B)).tolist()
    open_of: dict[tuple[int, int], _Open] = {}
    rows = zip(halves.tolist(), first, second, begins, held.name.tolist(), held.time_ns.tolist(), strict=True)
    for number, (i, one, other, begin, name, time) in enumerate(rows):
        if not number % _TICK_EVERY:
            tick()
        stack = open_of.get((one, other))
        if stack is None:
            stack = open_of[one, other] = _Open()
        if begin:
            stack.add(i, name)
            continue
        row = stack.take(name if strings[name] else None)
        if row < 0:
            columns.note("unmatched-end", strings[name])
        else:
            dur[row] = time - slices.time_ns[row]
            keep[row] = True
    for stack in open_of.values():
        for i in stack.rest():
            keep[i] = unfinished[i] = True
            dur[i] = NO_DURATION
            columns.note("unfinished", strings[int(slices.name[i])])
    slices.dur_ns = dur
    return Paired(slices.rows(keep), unfinished[keep])
