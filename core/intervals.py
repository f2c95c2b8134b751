"""Sets of instants as sorted, disjoint, half-open ``[start, end)`` arrays of int64 nanoseconds; all vectorised.

`Spans` is the currency of all figures that measure "how long was any of these going on": unions, what is left of a
window, and how much of each of many windows is covered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from core.tables import I64, Bool

_MANY = 1 << 14  # instants that are not looked up together: they would need twice the memory
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

    @cached_property
    def before_ns(self) -> I64:
        """int64[n + 1]: covered time before each interval, and at the end all of it, ns."""
        before = np.zeros(len(self.start) + 1, dtype=np.int64)
        (self.end - self.start).cumsum(out=before[1:])
        return before


EMPTY = Spans(_EMPTY, _EMPTY)


def union(start: I64, end: I64) -> Spans:
    """Return the set of instants inside any of the intervals ``[start[i], end[i])``.

    Parameters
    ----------
    start, end
        int64[n], ns, in any order; intervals may overlap, and empty or inverted ones count as nothing.
    """
    keep = end > start
    count, own = np.count_nonzero(keep), False
    if count < len(start):
        start, end, own = start.compress(keep), end.compress(keep), True
    if count < 2:
        return Spans(start.copy(), end.copy()) if count else EMPTY
    if np.count_nonzero(start[1:] < start[:-1]):
        order = start.argsort(kind="stable")
        start, end, own = start[order], end[order], True
    reach = np.maximum.accumulate(end, out=end if own else None)
    first = np.empty(count, dtype=bool)
    first[0] = True
    np.greater(start[1:], reach[:-1], out=first[1:])
    if np.count_nonzero(first) == count:
        return Spans(start if own else start.copy(), reach)
    head = first.nonzero()[0]  # in a fifth of the time that looking values up by a mask takes
    last = np.empty(len(head), dtype=np.int64)
    last[-1] = count - 1
    np.subtract(head[1:], 1, out=last[:-1])
    return Spans(start[head], reach[last])


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


def _last_begun(start: I64, time_ns: I64) -> I64:
    """Last of the starts (ascending) up to each instant, -1 for none."""
    if np.size(time_ns) > max(_MANY, 2 * len(start)) and not np.count_nonzero(time_ns[1:] < time_ns[:-1]):
        # Of many instants in order it is quicker to look for the few starts among them.
        first = time_ns.searchsorted(start)
        return np.arange(-1, len(start)).repeat(np.diff(first, prepend=0, append=len(time_ns)))
    return start.searchsorted(time_ns, side="right") - 1


def contains(spans: Spans, time_ns: I64) -> Bool:
    """Tell for each instant whether it lies inside: bool, shape of ``time_ns``."""
    if not len(spans):
        return np.zeros(np.shape(time_ns), dtype=bool)
    at = _last_begun(spans.start, time_ns)
    inside: Bool = time_ns < spans.end[np.maximum(at, 0)]
    inside &= at >= 0
    return inside


def _touching(a: Spans, b: Spans) -> tuple[I64, I64]:
    """For each interval of ``a`` its first one in ``b``, and how many of ``b`` it meets."""
    low = b.end.searchsorted(a.start, side="right")
    count: I64 = b.start.searchsorted(a.end, side="left") - low
    return low, np.maximum(count, 0)


def _expanded(count: I64) -> tuple[I64, I64]:
    """For ``count[i]`` rows of each i: the i of each row, and its number among them."""
    if len(count) and int(count.max()) <= 1:
        origin = count.nonzero()[0]
        return origin, np.zeros(len(origin), dtype=np.int64)
    origin = np.arange(len(count)).repeat(count)
    first = count.cumsum() - count
    return origin, np.arange(len(origin)) - first[origin]


def meet(a: Spans, b: Spans) -> bool:
    """Whether any instant is in both sets."""
    if len(a) > len(b):
        a, b = b, a
    if not len(a):
        return False
    low = b.end.searchsorted(a.start, side="right")
    return bool((low < b.start.searchsorted(a.end, side="left")).any())


def intersect(a: Spans, b: Spans) -> Spans:
    """Return the instants in both sets."""
    if not len(a) or not len(b):
        return EMPTY
    if len(a) > len(b):
        a, b = b, a
    low, count = _touching(a, b)
    origin, number = _expanded(count)
    if not len(origin):
        return EMPTY
    of_b = low[origin] + number
    return Spans(np.maximum(a.start[origin], b.start[of_b]), np.minimum(a.end[origin], b.end[of_b]))


def subtract(a: Spans, b: Spans) -> Spans:
    """Return the instants of ``a`` that are not in ``b``."""
    if not len(a) or not len(b):
        return a
    low, count = _touching(a, b)
    if not np.count_nonzero(count):
        return a
    # What is met cuts an interval into one piece more; those at its borders may be empty.
    if len(a) == 1:
        met = slice(int(low[0]), int(low[0] + count[0]))
        start, end = np.concatenate((a.start, b.end[met])), np.concatenate((b.start[met], a.end))
    else:
        origin, number = _expanded(count)
        of_b = low[origin] + number
        last = (count + 1).cumsum() - 1  # piece of each interval
        start, end = np.empty((2, len(a) + len(of_b)), dtype=np.int64)
        inner = np.ones(len(start), dtype=bool)
        inner[last] = False
        end[inner], end[last] = b.start[of_b], a.end
        inner[last] = True
        inner[last - count] = False
        start[inner], start[last - count] = b.end[of_b], a.start
    keep = (start < end).nonzero()[0]
    return Spans(start[keep], end[keep])


def divide(a: Spans, b: Spans) -> tuple[Spans, Spans]:
    """Return the instants of ``a`` that are in ``b``, and those that are not: `intersect` and `subtract` in one."""
    if not len(a) or not len(b):
        return EMPTY, a
    low, count = _touching(a, b)
    origin, number = _expanded(count)
    if not len(origin):
        return EMPTY, a
    of_b = low[origin] + number
    inside = Spans(np.maximum(a.start[origin], b.start[of_b]), np.minimum(a.end[origin], b.end[of_b]))
    # What is left begins where an interval does or where what is inside ends, and ends the other way round.
    start = np.sort(np.concatenate((a.start, inside.end)), kind="stable")
    end = np.sort(np.concatenate((inside.start, a.end)), kind="stable")
    keep = (start < end).nonzero()[0]
    return inside, Spans(start[keep], end[keep])


def clip(spans: Spans, start_ns: int, end_ns: int) -> Spans:
    """Return the part of a set inside ``[start_ns, end_ns)``."""
    a = int(spans.end.searchsorted(start_ns, side="right"))
    b = int(spans.start.searchsorted(end_ns, side="left"))
    if a >= b:
        return EMPTY
    return Spans(np.maximum(spans.start[a:b], start_ns), np.minimum(spans.end[a:b], end_ns))


def covered_before(spans: Spans, time_ns: I64) -> I64:
    """Return how much of the set lies before each instant: int64, shape of ``time_ns``, ns."""
    if not len(spans):
        return np.zeros(np.shape(time_ns), dtype=np.int64)
    at = _last_begun(spans.start, time_ns)
    none = at < 0
    np.maximum(at, 0, out=at)
    covered: I64 = spans.end[at]  # in place: there may be many
    np.minimum(covered, time_ns, out=covered)
    covered -= spans.start[at]
    covered += spans.before_ns[at]
    covered[none] = 0
    return covered


def coverage(spans: Spans, start_ns: I64, end_ns: I64) -> I64:
    """Return how much of each window ``[start_ns[i], end_ns[i])`` the set covers: int64[n], ns.

    Windows may overlap and come in any order; inverted ones give 0.
    """
    covered: I64
    if not len(spans):
        return np.zeros(len(end_ns), dtype=np.int64)
    if len(end_ns) < _MANY:
        both = covered_before(spans, np.concatenate((end_ns, start_ns)))  # at once: mostly there are few
        covered = both[: len(end_ns)] - both[len(end_ns) :]
    else:
        covered = covered_before(spans, end_ns)
        covered -= covered_before(spans, start_ns)
    np.maximum(covered, 0, out=covered)
    return covered


def cut(spans: Spans, at_ns: I64) -> tuple[I64, I64]:
    """Split the intervals of a set at the given instants (ascending): start and end of the pieces, ns.

    The pieces touch each other, so that they are no `Spans`.
    """
    if not len(spans) or not len(at_ns):
        return spans.start, spans.end
    before = spans.start.searchsorted(at_ns, side="right") - 1
    near = np.maximum(before, 0)
    inner = at_ns[(before >= 0) & (spans.start[near] < at_ns) & (at_ns < spans.end[near])]
    start = ascending(np.concatenate((spans.start, inner)))
    end = ascending(np.concatenate((spans.end, inner)))
    return start, end
