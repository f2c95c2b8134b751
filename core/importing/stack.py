"""Nesting: parents, lanes and crossings of the slices of one track."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from heapq import heappop, heappush
from operator import neg

import numpy as np

from core.importing import native
from core.tables import I32, I64, Bool

TOLERANCE_NS = 1000  # Kineto of 2021 to 2023 wrote whole microseconds: a child may outlast its parent by one

MAX_LANES = 1000  # lanes that crossing slices are spread over
_STEPS = 64


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
    if n == 0 or bool(np.all(start[1:] >= end[:-1])):
        flat = np.zeros(n, np.int32)
        return Nesting(np.full(n, -1, np.int32), flat, np.arange(1, n + 1, dtype=np.int32), np.zeros(n, np.bool_))
    fast = native.nest(start, end) or _nest_clean(start, end, dur)
    if fast is not None:
        return Nesting(*fast, np.zeros(n, np.bool_))
    subtree = np.searchsorted(start, end, side="left").astype(np.int32)
    np.maximum(subtree, np.arange(1, n + 1, dtype=np.int32), out=subtree)
    parent, depth, crossing = _nest_any(start.tolist(), end.tolist(), siblings)
    parents, lanes = np.array(parent, dtype=np.int32), np.array(depth, dtype=np.int32)
    crossed = np.array(crossing, dtype=np.bool_)
    if crossed.any():
        _place_crossing(start, end, parents, lanes, crossed)
    return Nesting(parents, lanes, subtree, crossed)


def _nest_clean(start: I64, end: I64, dur: I64) -> tuple[I32, I32, I32] | None:
    """Parents, depths and ends of the subtrees when every slice nests exactly; None when some do not.

    The depth of slice ``i`` is the number of slices that started before it minus those that ended by then. What
    starts inside a slice is below it, and ends with the next one that is no deeper.
    """
    n = len(start)
    zero = dur == 0
    closed = np.searchsorted(np.sort(end), start, side="right")
    if zero.any():  # marks that end where they start are not closed before themselves and those that share the place
        mark_ends = start[zero]
        closed -= np.searchsorted(mark_ends, start, side="right") - np.searchsorted(mark_ends, start, side="left")
        closed += _marks_before(start, zero)
    depth = np.arange(n) - closed
    deepest = int(depth.max(initial=0))
    if depth.min(initial=0) < 0 or deepest > max(n // 16, 1000):  # one by one is quicker then
        return None
    order = np.argsort(depth.astype(np.uint16) if deepest < 1 << 16 else depth, kind="stable")
    bounds = np.concatenate(([0], np.cumsum(np.bincount(depth, minlength=1))))
    parent, subtree = np.full(n, -1, np.int32), np.empty(n, np.int32)
    above = order[: bounds[1]]
    subtree[above] = np.append(above[1:], n)
    for level in range(1, len(bounds) - 1):
        rows = order[bounds[level] : bounds[level + 1]]
        at = np.searchsorted(above, rows) - 1
        if len(rows) and at.min() < 0:
            return None
        over = above[at]
        if bool(np.any((end[rows] > end[over]) | (start[rows] >= end[over]))):
            return None
        parent[rows] = over
        subtree[rows] = np.minimum(np.append(rows[1:], n), subtree[over])
        above = rows
    return parent, depth.astype(np.int32), subtree


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
                above = bisect_right(closes, TOLERANCE_NS - e, key=neg)  # those that end no earlier
                parent[i] = stack[above - 1] if above else -1
                continue
        if stack:
            parent[i] = stack[-1]
        depth[i] = len(stack)
        stack.append(i)
        closes.append(min(e, closes[-1]) if closes else e)
    return parent, depth, crossing


def _fits(closes: list[int], end: int) -> bool:
    """Whether a slice fits into the open ones once those that end here anyway are closed."""
    longer = bisect_left(closes, -closes[-1] - TOLERANCE_NS, key=neg)  # those that do not end here
    return longer == 0 or end <= closes[longer - 1] + TOLERANCE_NS


def _place_crossing(start: I64, end: I64, parent: I32, depth: I32, crossing: Bool) -> None:
    """Give each crossing slice the first lane below all that it meets (changes ``depth`` in place)."""
    nested = np.flatnonzero(~crossing)
    rows = np.flatnonzero(crossing)
    below = _deepest_met(start, end, parent, depth, nested, rows)
    taken = 0  # bit for each lane that a crossing slice still holds
    busy: list[tuple[int, int]] = []  # heap of (end, lane) of these
    for i, lane in zip(rows.tolist(), below.tolist(), strict=True):
        while busy and busy[0][0] <= start[i]:
            taken &= ~(1 << heappop(busy)[1])
        free = ~(taken >> lane)
        lane += (free & -free).bit_length() - 1
        if lane >= MAX_LANES:  # more than can be drawn: they share the last one
            depth[i] = MAX_LANES
            continue
        taken |= 1 << lane
        heappush(busy, (int(end[i]), lane))
        depth[i] = lane


def _deepest_met(start: I64, end: I64, parent: I32, depth: I32, nested: I64, rows: I64) -> I64:
    """int64[rows]: first lane below all nested slices that each crossing one meets."""
    nested_start, nested_depth = start[nested], depth[nested]
    first = np.searchsorted(nested_start, start[rows], side="right")
    last = np.maximum(np.searchsorted(nested_start, end[rows], side="left"), first)
    deepest = np.full(len(rows), -1, np.int64)
    # those that began before and are still open: up from the last one
    at = np.where(first > 0, nested[np.maximum(first - 1, 0)], -1) if len(nested) else deepest
    at = np.asarray(climb(at, parent, end, start[rows]))
    deepest[at >= 0] = depth[at[at >= 0]]
    # those that begin inside: maxima of runs of 2, 4, 8 ... in turn, two of which cover any stretch
    level, length = nested_depth, last - first
    for power in range(int(length.max(initial=0)).bit_length()):
        size = 1 << power
        mine = np.flatnonzero((length >= size) & (length < 2 * size))
        met = np.maximum(level[first[mine]], level[last[mine] - size])
        deepest[mine] = np.maximum(deepest[mine], met)
        level = np.maximum(level[:-size], level[size:]) if len(level) > size else level[:0]
    return deepest + 1


def climb(rows: I64, parent: I32, end: I64, times: I64) -> I64:
    """int64[n]: the first of each row and those above it that ends after a time; -1 where none does.

    Shallow ones go up together; what is nested deeper than `_STEPS` goes up one by one, past what has ended for good.
    """
    rows = rows.astype(np.int64)
    for _ in range(_STEPS):
        late = np.flatnonzero(rows >= 0)
        late = late[end[rows[late]] <= times[late]]
        if not len(late):
            return rows
        rows[late] = parent[rows[late]]
    late = late[np.argsort(times[late], kind="stable")]
    past: dict[int, int] = {}  # row that has ended by now -> one above it
    for i in late.tolist():
        row, path = int(rows[i]), []
        while row >= 0 and end[row] <= times[i]:
            path.append(row)
            row = past.get(row, int(parent[row]))
        past.update(dict.fromkeys(path, row))
        rows[i] = row
    return rows
