"""Nesting: parents, lanes and crossings of the slices of one track."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.tables import I32, I64, Bool

TOLERANCE_NS = 1000  # Kineto of 2021 to 2023 wrote whole microseconds: a child may outlast its parent by one


@dataclass(frozen=True)
class Nesting:
    """Result for one track, row numbers relative to its first slice."""

    parent: I32
    depth: I32
    subtree_end: I32
    crossing: Bool


def nest(start: I64, dur: I64, siblings: bool) -> Nesting:
    """Nest the slices of one track.

    Parameters
    ----------
    start, dur
        int64[n], ns, sorted by (start, -dur).
    siblings
        True for device streams, where work does not nest: a slice that starts within `TOLERANCE_NS` before the end
        of the one before it is its neighbour, not its child.

    Returns
    -------
    Nesting
        ``parent`` int32[n] (-1 none), ``depth`` int32[n], ``subtree_end`` int32[n] (one past the last row that
        starts inside), ``crossing`` bool[n].
    """
    n = len(start)
    end = start + dur
    subtree = np.searchsorted(start, end, side="left").astype(np.int32)
    np.maximum(subtree, np.arange(1, n + 1, dtype=np.int32), out=subtree)
    if n == 0 or bool(np.all(start[1:] >= end[:-1])):
        flat = np.zeros(n, np.int32)
        return Nesting(np.full(n, -1, np.int32), flat, subtree, np.zeros(n, np.bool_))
    fast = _nest_clean(start, end, dur)
    if fast is not None:
        return Nesting(fast[0], fast[1], subtree, np.zeros(n, np.bool_))
    parent, depth, crossing = _nest_any(start.tolist(), end.tolist(), siblings)
    lanes = np.array(depth, dtype=np.int32)
    crossed = np.array(crossing, dtype=np.bool_)
    if crossed.any():
        _place_crossing(start, end, lanes, crossed)
    return Nesting(np.array(parent, dtype=np.int32), lanes, subtree, crossed)


def _nest_clean(start: I64, end: I64, dur: I64) -> tuple[I32, I32] | None:
    """Parents and depths when every slice nests exactly; None when some do not.

    The depth of slice ``i`` is the number of slices that started before it minus those that ended by then.
    """
    n = len(start)
    zero = dur == 0
    closed = np.searchsorted(np.sort(end), start, side="right")
    if zero.any():  # marks that end where they start are not closed before themselves and those that share the place
        mark_ends = start[zero]
        closed -= np.searchsorted(mark_ends, start, side="right") - np.searchsorted(mark_ends, start, side="left")
        closed += _marks_before(start, zero)
    depth = np.arange(n) - closed
    if depth.min(initial=0) < 0:
        return None
    parent = np.full(n, -1, np.int32)
    order = np.argsort(depth, kind="stable")
    bounds = np.searchsorted(depth[order], np.arange(int(depth.max()) + 2))
    above = order[bounds[0] : bounds[1]]
    for level in range(1, len(bounds) - 1):
        rows = order[bounds[level] : bounds[level + 1]]
        at = np.searchsorted(above, rows) - 1
        if len(rows) and at.min() < 0:
            return None
        parent[rows] = above[at]
        above = rows
    child = np.flatnonzero(parent >= 0)
    over = parent[child]
    if bool(np.any((end[child] > end[over]) | (start[child] >= end[over]))):
        return None
    return parent, depth.astype(np.int32)


def _marks_before(start: I64, zero: Bool) -> I64:
    """For each row, how many marks (no duration) stand before it at the very same time."""
    marks = np.concatenate(([0], np.cumsum(zero)))
    first = np.searchsorted(start, start, side="left")
    return np.asarray(marks[np.arange(len(start))] - marks[first], dtype=np.int64)


def _nest_any(start: list[int], end: list[int], siblings: bool) -> tuple[list[int], list[int], list[bool]]:
    """Nest one by one, with rounding forgiven and crossings taken out of the nest."""
    n = len(start)
    parent, depth, crossing = [-1] * n, [0] * n, [False] * n
    stack: list[int] = []
    closes: list[int] = []  # end of each open slice, never after that of the one around it
    for i in range(n):
        s, e = start[i], end[i]
        while closes and closes[-1] <= s:
            closes.pop()
            stack.pop()
        if siblings:
            while closes and e > closes[-1] and closes[-1] - s <= TOLERANCE_NS:
                closes.pop()
                stack.pop()
        if closes and e > closes[-1] + TOLERANCE_NS:
            if closes[-1] - s <= TOLERANCE_NS and _fits(closes, e):  # its elder ends a rounding too late
                while closes and closes[-1] - s <= TOLERANCE_NS and e > closes[-1] + TOLERANCE_NS:
                    closes.pop()
                    stack.pop()
            else:
                crossing[i] = True
                parent[i] = next((stack[k] for k in range(len(stack) - 1, -1, -1) if closes[k] + TOLERANCE_NS >= e), -1)
                continue
        if stack:
            parent[i] = stack[-1]
        depth[i] = len(stack)
        stack.append(i)
        closes.append(min(e, closes[-1]) if closes else e)
    return parent, depth, crossing


def _fits(closes: list[int], end: int) -> bool:
    """Whether a slice fits into the open ones once those that end here anyway are closed."""
    base = closes[-1]
    for close in reversed(closes):
        if end <= close + TOLERANCE_NS:
            return True
        if close - base > TOLERANCE_NS:
            return False
    return True


def _place_crossing(start: I64, end: I64, depth: I32, crossing: Bool) -> None:
    """Give each crossing slice the first lane below all that it meets (changes ``depth`` in place)."""
    nested = np.flatnonzero(~crossing)
    nested_start, nested_end, nested_depth = start[nested], end[nested], depth[nested]
    reach = np.maximum.accumulate(nested_end) if len(nested) else nested_end
    busy: list[tuple[int, int]] = []  # (end, lane) of crossing slices still open
    for i in np.flatnonzero(crossing).tolist():
        first = int(np.searchsorted(reach, start[i], side="right"))
        last = int(np.searchsorted(nested_start, end[i], side="left"))
        meets = nested_end[first:last] > start[i]
        lane = int(nested_depth[first:last][meets].max(initial=-1)) + 1
        busy = [(until, at) for until, at in busy if until > start[i]]
        taken = {at for _, at in busy}
        while lane in taken:
            lane += 1
        busy.append((int(end[i]), lane))
        depth[i] = lane
