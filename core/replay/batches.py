"""The pace of a DataLoader's processes: how its waits are chained to each other in the loop."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from core import sets
from core.replay.waits import Waits
from core.tables import I32, I64

_LONGEST_BURST = 128  # batches that the processes deliver at once


def loader_chains(waits: Waits, included: np.ndarray, calls: int) -> dict[int, tuple[int, float]]:
    """Chain the waits for the loader to each other, by the pace at which the batches came.

    Parameters
    ----------
    included
        bool[n_waits]: waits that are replayed.
    calls
        How many calls of the loader, waiting or not, there are in the time that is repeated; 0 when nothing is.

    Returns
    -------
    dict
        Row of a wait -> row of the wait before it, and the least time between their ends, ns.
    """
    rows = (waits.loader > 0).nonzero()[0]
    rows = rows[waits.end_ns[rows].argsort(kind="stable")]
    position = included[rows].nonzero()[0]
    if len(position) < 2:
        return {}
    rows = rows[position]
    near = np.diff(position) == 1  # nothing left out between the two
    between, apart = np.diff(waits.end_ns[rows]), np.diff(waits.loader[rows])
    dur = waits.end_ns[rows] - waits.start_ns[rows]
    longest = sets.distinct(np.diff(waits.loader[rows[2 * dur >= dur.max()]]))
    pace = _batch_pace(waits.batch_ns, waits.loader[rows], near, longest[0] if len(longest) == 1 else 1)
    if pace is None:  # without any, the time left out holds as many batches as calls
        pace = float(between.sum() / apart.sum()) if apart.all() else 0.0
    lags = np.where(near, between, pace)
    whole = pace * max(calls, int(apart[near].sum()) + int((~near).sum()) + 1)
    around = whole - float(lags.sum())
    if calls and around < 0:  # the recording ends behind a late batch, with which others came
        lags, around = lags * whole / lags.sum(), 0.0
    chains = {int(row): (int(rows[i]), float(lags[i])) for i, row in enumerate(rows[1:])}
    chains[int(rows[0])] = (int(rows[-1]), around if calls else float("-inf"))
    return chains


def _batch_pace(batch_ns: I64, number: I32, near: np.ndarray, every: int) -> float | None:
    """Time per batch, ns, of the stretches whose waits are all replayed; None where two never follow each other.

    Processes deliver in bursts, and a recording ends somewhere in one: arrivals are compared with those so many batches
    later that the time between them varies least.

    Parameters
    ----------
    number
        1-based number of the call of each wait, ascending.
    near
        Whether each but the last is followed by its next.
    every
        At this distance the longest waits lie: it is tried however few of them were recorded.
    """
    borders = [0, *((~near).nonzero()[0] + 1).tolist(), len(number)]
    ends = [
        batch_ns[int(number[first]) - 1 : int(number[after]) - 1 if after < len(number) else None]
        for first, after in pairwise(borders)
        if after - first > 1
    ]
    best, least = None, np.inf
    longest = min(_LONGEST_BURST, max(map(len, ends), default=0) // 2)
    for burst in sorted({*range(1, 1 + longest), every} if ends else ()):
        apart = np.concatenate([of[burst:] - of[:-burst] for of in ends])
        if not len(apart):
            continue
        mean = float(apart.mean())
        if apart.std() < least * mean:
            best, least = mean / burst, float(apart.std()) / mean
    return best
