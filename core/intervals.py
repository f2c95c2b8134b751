"""Sets of instants as sorted, disjoint, half-open ``[start, end)`` arrays of int64 nanoseconds; all vectorised.

`Spans` is the currency of all figures that measure "how long was any of these going on": unions, what is left of a
window, and how much of each of many windows is covered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from core.tables import I64, Bool

_EMPTY = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Spans:
    """Disjoint half-open intervals in ascending order.

    Parameters
    ----------
    start, end
        int64[n], ns, with ``start < end`` and ``end[i] < start[i + 1]``. Build with `union` unless the arrays are
        known to satisfy that.
    """

    start: I64
    end: I64

    def __len__(self) -> int:
        return len(self.start)

    @property
    def total_ns(self) -> int:
        """Covered time, ns."""
        return int((self.end - self.start).sum())

    @property
    def dur_ns(self) -> I64:
        """int64[n]: length of each interval, ns."""
        return self.end - self.start


EMPTY = Spans(_EMPTY, _EMPTY)


def union(start: I64, end: I64) -> Spans:
    """Return the set of instants inside any of the intervals ``[start[i], end[i])``.

    Parameters
    ----------
    start, end
        int64[n], ns, in any order; intervals may overlap, and empty or inverted ones count as nothing.
    """
    keep = end > start
    if not keep.all():
        start, end = start[keep], end[keep]
    if not len(start):
        return EMPTY
    if len(start) > 1 and not bool((start[1:] >= start[:-1]).all()):
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    first = np.empty(len(start), dtype=bool)
    first[0] = True
    np.greater(start[1:], reach[:-1], out=first[1:])
    heads = np.flatnonzero(first)
    tails = np.append(heads[1:], len(start)) - 1
    return Spans(start[heads], reach[tails])


def union_all(parts: Iterable[Spans]) -> Spans:
    """Return the union of several sets."""
    items = [part for part in parts if len(part)]
    if not items:
        return EMPTY
    if len(items) == 1:
        return items[0]
    return union(np.concatenate([p.start for p in items]), np.concatenate([p.end for p in items]))


def span(start_ns: int, end_ns: int) -> Spans:
    """Return one interval, or nothing when it is empty."""
    return union(np.array([start_ns], dtype=np.int64), np.array([end_ns], dtype=np.int64))


def ascending(time_ns: I64) -> I64:
    """Return the distinct instants in ascending order: `np.unique`, which hashes first, is slower for sorted runs."""
    time_ns = np.sort(time_ns, kind="stable")
    new = np.ones(len(time_ns), dtype=bool)
    np.not_equal(time_ns[1:], time_ns[:-1], out=new[1:])
    return time_ns[new]


def contains(spans: Spans, time_ns: I64) -> Bool:
    """Tell for each instant whether it lies inside: bool, shape of ``time_ns``."""
    at = np.searchsorted(spans.start, time_ns, side="right") - 1
    inside = at >= 0
    inside[inside] = time_ns[inside] < spans.end[at[inside]]
    return inside


def _combine(a: Spans, b: Spans, keep: Callable[[Bool, Bool], Bool]) -> Spans:
    """Cut time at every border of both sets and keep the pieces for which ``keep(in_a, in_b)`` holds."""
    edges = np.concatenate((a.start, a.end, b.start, b.end))
    edges.sort(kind="stable")  # four sorted runs: merged, not sorted anew; borders that coincide make empty pieces
    left, right = edges[:-1], edges[1:]
    wanted = keep(contains(a, left), contains(b, left))
    return union(left[wanted], right[wanted])


def _near(a: Spans, b: Spans) -> Spans:
    """Those intervals of ``b`` that touch ``a``: the others decide nothing about the instants of ``a``."""
    low = np.searchsorted(b.end, a.start, side="right")
    high = np.searchsorted(b.start, a.end, side="left")
    hit = low < high
    change = np.bincount(low[hit], minlength=len(b) + 1) - np.bincount(high[hit], minlength=len(b) + 1)
    wanted = np.cumsum(change[: len(b)]) > 0
    return b if wanted.all() else Spans(b.start[wanted], b.end[wanted])


def intersect(a: Spans, b: Spans) -> Spans:
    """Return the instants in both sets."""
    if not len(a) or not len(b):
        return EMPTY
    if len(a) > len(b):
        a, b = b, a
    b = _near(a, b)
    return _combine(a, b, lambda in_a, in_b: in_a & in_b)


def subtract(a: Spans, b: Spans) -> Spans:
    """Return the instants of ``a`` that are not in ``b``."""
    if not len(a) or not len(b):
        return a
    b = _near(a, b)
    return _combine(a, b, lambda in_a, in_b: in_a & ~in_b)


def clip(spans: Spans, start_ns: int, end_ns: int) -> Spans:
    """Return the part of a set inside ``[start_ns, end_ns)``."""
    a = int(np.searchsorted(spans.end, start_ns, side="right"))
    b = int(np.searchsorted(spans.start, end_ns, side="left"))
    if a >= b:
        return EMPTY
    return Spans(np.maximum(spans.start[a:b], start_ns), np.minimum(spans.end[a:b], end_ns))


def covered_before(spans: Spans, time_ns: I64) -> I64:
    """Return how much of the set lies before each instant: int64, shape of ``time_ns``, ns."""
    if not len(spans):
        return np.zeros(np.shape(time_ns), dtype=np.int64)
    lengths = spans.end - spans.start
    before = np.concatenate(([0], np.cumsum(lengths)))
    at = np.searchsorted(spans.start, time_ns, side="right") - 1
    inside = np.maximum(at, 0)
    partial = np.minimum(time_ns - spans.start[inside], lengths[inside])
    return np.where(at >= 0, before[inside] + partial, 0).astype(np.int64)


def coverage(spans: Spans, start_ns: I64, end_ns: I64) -> I64:
    """Return how much of each window ``[start_ns[i], end_ns[i])`` the set covers: int64[n], ns.

    Windows may overlap and come in any order; inverted ones give 0.
    """
    covered: I64 = covered_before(spans, end_ns) - covered_before(spans, start_ns)
    np.maximum(covered, 0, out=covered)
    return covered


def cut(spans: Spans, at_ns: I64) -> tuple[I64, I64]:
    """Split the intervals of a set at the given instants (ascending): start and end of the pieces, ns.

    The pieces touch each other, so that they are no `Spans`.
    """
    inner = at_ns[contains(spans, at_ns) & ~np.isin(at_ns, spans.start)]
    start = ascending(np.concatenate((spans.start, inner)))
    end = ascending(np.concatenate((spans.end, inner)))
    return start, end
