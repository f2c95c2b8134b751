"""Upper bounds of what the waits of a trace can be worth, where no replay can tell."""

from __future__ import annotations

import numpy as np

from core.figures.gaps import spend
from core.figures.model import SyncTable
from core.intervals import Spans, ascending, coverage, cut, subtract
from core.tables import I64


def wait_bounds(syncs: SyncTable, kernels: Spans, window: Spans) -> tuple[I64, int]:
    """Bounds of the gain from removing waits: each alone, and all together.

    Removing a wait moves all that the CPU does after its beginning forward by at most its length, and the device can
    win only time without kernels that lies after that; the next remaining wait absorbs the rest.

    Parameters
    ----------
    kernels
        When the device ran kernels (a copy does not count: it is often what is waited for).
    window
        The time looked at; waits that start outside gain nothing.

    Returns
    -------
    int64[n_syncs], ns: ``min(wait, time without kernels from its start to the next wait's)`` per row.
    int, ns: all of them; each wait is a credit, and time without kernels after it consumes what credit there is.
    """
    alone = np.zeros(len(syncs), dtype=np.int64)
    if not len(syncs) or not len(window):
        return alone, 0
    idle = subtract(window, kernels)
    begin, wait = syncs.wait_start_ns, syncs.wait_ns
    last = int(window.end[-1])
    inside = ((wait > 0) & (begin >= window.start[0]) & (begin < last)).nonzero()[0]
    if not len(inside):
        return alone, 0
    following = np.append(begin[inside][1:], last)
    alone[inside] = np.minimum(wait[inside], coverage(idle, begin[inside], following))
    start, end = cut(idle, ascending(begin[inside]))
    spent, _ = spend(begin[inside], wait[inside], start, end - start)
    return alone, int(spent.sum())
