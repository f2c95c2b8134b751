"""Upper bounds of what the waits of a trace can be worth, where no replay can tell."""

from __future__ import annotations

import numpy as np

from core.figures.gaps import spend
from core.figures.model import SyncTable
from core.intervals import Spans, coverage, subtract, union
from core.tables import I64


def wait_bounds(syncs: SyncTable, kernels: Spans, window: Spans) -> tuple[I64, int]:
    """Bounds of the gain from removing waits: each alone, and all together.

    Removing a wait moves all that the CPU does after it forward by at most its length, and the device can win only
    time without kernels that lies after it; the next remaining wait absorbs the rest.

    Parameters
    ----------
    kernels
        When the device ran kernels (a copy does not count: it is often what is waited for).
    window
        The time looked at; waits that start outside gain nothing.

    Returns
    -------
    int64[n_syncs], ns: ``min(wait, idle between it and the next wait)`` per row.
    int, ns: all of them; each wait is a credit, and idle time after it consumes what credit there is.
    """
    alone = np.zeros(len(syncs), dtype=np.int64)
    if not len(syncs) or not len(window):
        return alone, 0
    idle = subtract(window, kernels)
    begin = syncs.wait_start_ns
    end = begin + syncs.wait_ns
    last = int(window.end[-1])
    inside = np.flatnonzero((syncs.wait_ns > 0) & (begin >= window.start[0]) & (begin < last))
    if not len(inside):
        return alone, 0
    following = np.append(begin[inside][1:], last)
    alone[inside] = np.minimum(syncs.wait_ns[inside], coverage(idle, end[inside], np.maximum(following, end[inside])))
    borders = np.unique(np.concatenate((end[inside], begin[inside])))
    waiting = union(begin[inside], end[inside])
    free = subtract(idle, waiting)
    spent, _ = spend(end[inside], syncs.wait_ns[inside], *_pieces(free, borders))
    return alone, int(spent.sum())


def _pieces(spans: Spans, borders: I64) -> tuple[I64, I64]:
    """Cut spans at borders: start and length of the pieces, ascending."""
    del borders  # waits are cut out already, so that no credit arrives inside a piece
    return spans.start, spans.end - spans.start
