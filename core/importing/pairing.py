"""Begin and end events put together: ``B``/``E`` by thread, ``b``/``e`` by id."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.importing.columns import NO_DURATION, EventColumns, SliceColumns
from core.tables import Bool

_X, _B, _E, _ASYNC_B, _ASYNC_E = (ord(c) for c in "XBEbe")


@dataclass
class Paired:
    """Slices only; ``unfinished`` bool[n]: begun and never ended."""

    slices: SliceColumns
    unfinished: Bool


def pair(columns: EventColumns) -> Paired:
    """Make slices of the halves; counts unmatched ends and unfinished begins in ``columns``."""
    slices = columns.slices
    whole = slices.phase == _X
    if bool(whole.all()):
        return Paired(slices, np.zeros(len(slices), np.bool_))
    keep = whole.copy()
    unfinished = np.zeros(len(slices), np.bool_)
    dur = slices.dur_ns.copy()
    halves = np.flatnonzero(~whole)
    halves = halves[np.argsort(slices.time_ns[halves], kind="stable")]
    open_of: dict[tuple[int, ...], list[int]] = {}
    for i in halves.tolist():
        phase = int(slices.phase[i])
        if phase in (_B, _E):
            key: tuple[int, ...] = (int(slices.pid[i]), int(slices.tid[i]))
        else:
            key = (-1, int(slices.category[i]), int(slices.async_id[i]))
        stack = open_of.setdefault(key, [])
        if phase in (_B, _ASYNC_B):
            stack.append(i)
            continue
        begin = _begin_of(stack, slices, i, columns.strings)
        if begin < 0:
            columns.note("unmatched-end", columns.strings[int(slices.name[i])])
        else:
            dur[begin] = slices.time_ns[i] - slices.time_ns[begin]
            keep[begin] = True
    for stack in open_of.values():
        for i in stack:
            keep[i] = unfinished[i] = True
            dur[i] = NO_DURATION
            columns.note("unfinished", columns.strings[int(slices.name[i])])
    slices.dur_ns = dur
    return Paired(slices.rows(keep), unfinished[keep])


def _begin_of(stack: list[int], slices: SliceColumns, end: int, strings: list[str]) -> int:
    """Take the begin that an end belongs to: the last one, or the last one of its name when the end has a name."""
    if not stack:
        return -1
    name = int(slices.name[end])
    if not strings[name]:
        return stack.pop()
    for k in range(len(stack) - 1, -1, -1):
        if int(slices.name[stack[k]]) == name:
            return stack.pop(k)
    return -1
