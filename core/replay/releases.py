"""Work that a collective on another stream held up, where no recorded call says so."""

from __future__ import annotations

import numpy as np

from core.figures.lookup import View
from core.replay.waits import TOLERANCE_NS
from core.replay.work import HELD_NS, Work, end_before
from core.tables import I32

_HANDED_OVER_NS = 10_000  # from the end of a collective to the start of what waited for it


def held_by_collectives(view: View, work: Work, waiting: I32, waited: I32) -> tuple[I32, I32]:
    """Dependencies of work on collectives that the recording shows without a call for them.

    A piece that had been launched, on a stream with nothing left to do, and that starts just when a collective of
    another stream ends, waited for that. The call that orders the two may have come before the recording, from a
    thread that is not replayed, or not be recorded at all; without the dependency the time would count as a gap of the
    stream that no faster communication shortens.

    Parameters
    ----------
    waiting, waited
        Dependencies that are known already: pieces, and the piece of another stream that each waits for.

    Returns
    -------
    tuple
        As the parameters, those found besides.
    """
    collective = view.are_collectives(work.slice_id).nonzero()[0]
    before = end_before(work.stream, work.end_ns)
    ready = np.maximum(before, work.launch_ns + work.typical_ns)
    np.maximum.at(ready, waiting, work.end_ns[waited])
    follows = (work.launch_id >= 0) & (before > np.iinfo(np.int64).min)
    held = (follows & (work.start_ns - ready >= HELD_NS)).nonzero()[0]
    collective = collective[work.end_ns[collective].argsort(kind="stable")]
    ends = work.end_ns[collective]
    first = ends.searchsorted(work.start_ns[held] - _HANDED_OVER_NS)
    last = ends.searchsorted(work.start_ns[held] + TOLERANCE_NS, side="right") - 1
    found: list[tuple[int, int]] = []
    for piece, low, high in zip(held.tolist(), first.tolist(), last.tolist(), strict=True):
        for at in range(high, low - 1, -1):
            other = int(collective[at])
            apart = work.stream[other] != work.stream[piece]
            same = work.stream_device[work.stream[other]] == work.stream_device[work.stream[piece]]
            if apart and same and work.launch_ns[other] < work.launch_ns[piece]:
                found.append((piece, other))
                break
    rows = np.array(found, dtype=np.int32).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]
