"""Threads that run beside the main one: what starts them, and where the main lane waits for them.

A trace records no hand-over between threads. A burst of work on another lane is taken to follow from what the main
lane was doing when it began. Where the main lane, again and again, does nothing until a burst of another lane ends
and goes on at once, it is taken to wait for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.figures.lookup import View
from core.intervals import Spans, contains, union, union_all
from core.kinds import SliceKind
from core.replay.lanes import Lanes, bursts
from core.tables import F64, I32, I64

_PAUSE_NS = 50_000  # a pause of a thread longer than this divides its bursts, and is a wait when something explains it
_AT_ONCE_NS = 50_000  # waking a thread up takes no longer
_ROUNDING_NS = 2  # begin and duration are rounded each
_USUAL_SHARE = 0.3  # of the bursts of a lane that the main lane must be seen to wait for


@dataclass(frozen=True, eq=False)
class Handovers:
    """Idle stretches that end when another lane gets somewhere.

    ``lane`` idles during ``[start_ns, end_ns)``; it goes on no earlier than lane ``mark_lane`` passes ``mark_ns``, plus
    ``lag_ns``.
    """

    lane: I32
    start_ns: I64
    end_ns: I64
    mark_lane: I32
    mark_ns: I64
    lag_ns: F64

    def __len__(self) -> int:
        return len(self.lane)


def find_handovers(view: View, lanes: Lanes, blocked_start: I64, blocked_end: I64) -> Handovers:
    """Find what starts the work of the lanes beside the main one, and where the main lane waits for them.

    Parameters
    ----------
    blocked_start, blocked_end
        Waits of the main lane for the device, ns.
    """
    rows: list[tuple[int, int, int, int, int, float]] = []
    waits = union(blocked_start, blocked_end)
    edges = _edges(view, lanes) if lanes.count > 1 else waits.start
    for lane in range(1, lanes.count):
        start, end = bursts(_work(view, lanes, lane), _PAUSE_NS)
        joins = _joins(edges, end, waits)
        # A burst that begins while the main lane waits for this one goes on with what the lane was doing anyway.
        own = contains(union(*np.array(joins, dtype=np.int64).reshape(-1, 2).T), start)
        own[:1] = False
        start, end = start[~own], end[np.append(~own[1:], True)]
        # What begins while the main lane waits cannot follow from the end of that wait: it follows from its beginning.
        inside = waits.start.searchsorted(start, side="right") - 1
        cause = start.copy()
        held = inside >= 0
        held[held] = start[held] < waits.end[inside[held]]
        cause[held] = waits.start[inside[held]]
        idle_from = np.concatenate((start[:1], end[:-1]))
        for begin, to, mark in zip(idle_from.tolist(), start.tolist(), cause.tolist(), strict=True):
            rows.append((lane, begin, to, 0, mark, float(to - mark)))
        rows += [(0, begin, to, lane, to, 0.0) for begin, to in joins]
    table = np.array(rows, dtype=np.float64).reshape(-1, 6)
    columns = table.astype(np.int64)
    return Handovers(
        lane=columns[:, 0].astype(np.int32),
        start_ns=columns[:, 1],
        end_ns=columns[:, 2],
        mark_lane=columns[:, 3].astype(np.int32),
        mark_ns=columns[:, 4],
        lag_ns=table[:, 5],
    )


def _work(view: View, lanes: Lanes, lane: int) -> Spans:
    """When the threads of a lane were in an operator, a call or a range of their own."""
    threads = lanes.threads(lane)
    ranges = view.by_kind(SliceKind.RANGE)
    ranges = ranges[np.isin(view.thread[ranges], threads)]
    marked = union(view.trace.slices.start_ns[ranges], view.trace.end_ns[ranges])
    return union_all([*(lanes.busy[t] for t in threads), marked])


def _edges(view: View, lanes: Lanes) -> I64:
    """Starts and ends of everything on the main lane, ascending: moments at which it certainly was not waiting."""
    own = np.isin(view.trace.tracks.thread_id, lanes.threads(0))[view.trace.slices.track_id]
    return np.sort(np.concatenate((view.trace.slices.start_ns[own], view.trace.end_ns[own])))


def _joins(edges: I64, ends: I64, waits: Spans) -> list[tuple[int, int]]:
    """Stretches in which the main lane did nothing until a burst ended; none unless that is usual for the lane.

    What it did while it waited for the device (``waits``) is known: it was not for the other lane.
    """
    if not len(edges) or not len(ends):
        return []
    after = edges.searchsorted(ends - _ROUNDING_NS, side="left")
    inside = (after > 0) & (after < len(edges))
    before_ns = edges[np.maximum(after - 1, 0)]
    after_ns = edges[np.minimum(after, len(edges) - 1)]
    waited = inside & (after_ns - ends <= _AT_ONCE_NS) & (ends - before_ns >= _PAUSE_NS) & ~contains(waits, ends)
    if np.count_nonzero(waited) < max(2, _USUAL_SHARE * len(ends)):
        return []
    until_ns = np.minimum(ends, after_ns) - _ROUNDING_NS  # in the step that ends with it, if one does
    return list(zip(before_ns[waited].tolist(), until_ns[waited].tolist(), strict=True))
