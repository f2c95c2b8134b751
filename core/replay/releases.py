"""Work that another stream held up, where no recorded call says so, or the call does not say which."""

from __future__ import annotations

import numpy as np

from core import sets
from core.figures.lookup import View
from core.replay.lanes import Lanes
from core.replay.waits import RELEASED_NS, TOLERANCE_NS, stream_wait_calls
from core.replay.work import HELD_NS, NEVER, Work
from core.tables import I32, I64

_HANDED_OVER_NS = 10_000  # from the end of a collective to the start of what waited for it
_CALLS_BACK = 4  # of the stream waits before a launch, those that may be its stream's


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
    held = _held(work, waiting, waited)
    held = held[work.before_ns[held] > NEVER]
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


def held_by_branches(view: View, work: Work, lanes: Lanes, waiting: I32, waited: I32) -> tuple[I32, I32]:
    """Dependencies of work on what another stream had been given before a ``StreamWaitEvent`` call.

    Which stream a call lets wait is not recorded. Taken to wait is what is launched next; but where several branches
    are let wait, one call after the other, the launches that begin the others follow later. Such a piece had been
    launched, its stream had nothing left to do, and it starts just when the last work ends that one of the latest of
    these calls found on another stream.

    Parameters and result are those of `held_by_collectives`.
    """
    found: list[I64] = [np.zeros((2, 0), dtype=np.int64)]
    calls = stream_wait_calls(view)
    held = _held(work, waiting, waited) if len(calls) else np.zeros(0, dtype=np.int64)
    lane_of_call, lane_of_work = lanes.of_thread[view.thread[calls]], lanes.of_thread[work.thread]
    device = work.stream_device[work.stream]
    for lane in sets.distinct(lane_of_call[lane_of_call >= 0]).tolist():
        called = np.sort(view.trace.slices.start_ns[calls[lane_of_call == lane]])
        own = ((lane_of_work == lane) & (work.launch_id >= 0)).nonzero()[0]
        own = own[work.launch_ns[own].argsort(kind="stable")]
        todo = held[lane_of_work[held] == lane]
        last = called.searchsorted(work.launch_ns[todo])
        other = np.full(len(todo), -1, dtype=np.int64)
        for back in range(1, _CALLS_BACK + 1):
            for stream in sets.distinct(work.stream[own]).tolist():
                there = own[work.stream[own] == stream]
                at = work.launch_ns[there].searchsorted(called[np.maximum(last - back, 0)]) - 1
                piece = there[np.maximum(at, 0)]
                late = work.start_ns[todo] - work.end_ns[piece]
                meets = (other < 0) & (last >= back) & (at >= 0) & (late >= -TOLERANCE_NS) & (late <= RELEASED_NS)
                meets &= (work.stream[todo] != stream) & (device[todo] == work.stream_device[stream])
                other[meets] = piece[meets]
        found.append(np.stack((todo[other >= 0], other[other >= 0])))
    rows = np.concatenate(found, axis=1).astype(np.int32)
    return rows[0], rows[1]


def _held(work: Work, waiting: I32, waited: I32) -> I64:
    """Pieces that start long after their launch, all else of their stream, and what is known that they wait for."""
    ready = np.maximum(work.before_ns, work.launch_ns + work.typical_ns)
    np.maximum.at(ready, waiting, work.end_ns[waited])
    held: I64 = ((work.launch_id >= 0) & (work.start_ns - ready >= HELD_NS)).nonzero()[0]
    return held
