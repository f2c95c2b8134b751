"""Launches that blocked because the queue of their stream was full, and whose end let each of them go on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from core import sets
from core.figures.lookup import View
from core.replay.lanes import Lanes
from core.replay.work import NEVER, Work
from core.tables import F64, I32, I64, Bool

QUEUE_LIMIT = 1022  # pending launches per stream, then a launch blocks: the depth at which launches of real runs did
_NEARLY_FULL = 0.9 * QUEUE_LIMIT
# A launch into a nearly full queue that takes this much longer than one into a shallow one was blocked; where the queue
# is as deep as it ever gets, one that takes any longer.
_BLOCKED_NS, _BLOCKED_SHARE = 3_000, 0.5
_LONGER_NS, _DEEPEST = 300, 2
# What a call costs that does not wait: where the trace has none to take it from.
DEFAULT_CALL_NS = 5_000
# So many of them begin a block of their own, those that end a step among them; the others only take no host time.
MOST_TIED = 4096


class BlockedLaunches(NamedTuple):
    """Blocked calls, ``[start_ns, end_ns)`` each; some with the piece whose end made room for them.

    ``dep_of`` are positions of the calls, ascending; ``dep_lag_ns`` is from the end of the piece to that of the wait.
    """

    call: I32
    thread: I32
    lane: I32
    start_ns: I64
    end_ns: I64
    dep_of: I32
    dep_piece: I32
    dep_lag_ns: F64


def blocked_launches(view: View, work: Work, lanes: Lanes, step_end_ns: I64, tolerance_ns: int) -> BlockedLaunches:
    """Find them.

    Parameters
    ----------
    step_end_ns
        Ends of the steps: how far the host was then is to come out exactly.
    tolerance_ns
        By how much the clocks of host and device may differ.
    """
    slices = view.trace.slices
    depth, deepest = _depths(work)
    launched = (work.launch_id >= 0).nonzero()[0]
    dur = slices.dur_ns[work.launch_id[launched]]
    full = depth[launched] >= _NEARLY_FULL
    usual = int(sets.median(dur[~full])) if not full.all() else _least_cost(dur)
    least = np.where((depth >= deepest - _DEEPEST)[launched], _LONGER_NS, max(_BLOCKED_NS, _BLOCKED_SHARE * usual))
    blocked = launched[full & (dur - usual > least)]
    call, first, _ = sets.grouped(work.launch_id[blocked])
    piece = blocked[first]
    order = slices.start_ns[call].argsort(kind="stable")
    call, piece = call[order], piece[order]
    thread = view.thread[call]
    start, end = slices.start_ns[call], view.trace.end_ns[call] - usual
    before = _ended_before(work, piece, end + tolerance_ns)
    tied = ((before >= 0) & _thinned(start, step_end_ns)).nonzero()[0]
    return BlockedLaunches(
        call=call,
        thread=thread,
        lane=lanes.of_thread[thread],
        start_ns=start,
        end_ns=end,
        dep_of=tied.astype(np.int32),
        dep_piece=before[tied].astype(np.int32),
        dep_lag_ns=(end[tied] - work.end_ns[before[tied]]).astype(np.float64),
    )


def _least_cost(dur: I64) -> int:
    """What a launch costs that is not blocked, where each of them found its queue full: none need tell."""
    return int(min(sets.percentile(dur, 10), DEFAULT_CALL_NS)) if len(dur) else 0


def _streams(work: Work) -> list[slice]:
    borders = np.diff(work.stream).nonzero()[0] + 1
    edges = [0, *borders.tolist(), len(work)]
    return [slice(a, b) for a, b in zip(edges[:-1], edges[1:], strict=True) if b > a]


def _depths(work: Work) -> tuple[I64, I64]:
    """How many pieces of its stream had been queued before each and had not ended when it was launched; and at most.

    Both int64[n]. Of a stream with too few pieces to fill a queue both are 0. Of work that had been queued before the
    recording, and is not in it, as much is taken to be left as the stream works off in the time until it was free.
    """
    depth, deepest = np.zeros(len(work), dtype=np.int64), np.zeros(len(work), dtype=np.int64)
    for part in _streams(work):
        if part.stop - part.start >= _NEARLY_FULL:
            ends = np.maximum.accumulate(work.end_ns[part])
            depth[part] = np.arange(len(ends)) - ends.searchsorted(work.launch_ns[part], side="right")
            free = work.free_ns[work.stream[part.start]]
            if free > NEVER:
                usual = max(1.0, (ends[-1] - work.start_ns[part.start]) / len(ends))
                depth[part] += (np.maximum(free - work.launch_ns[part], 0) / usual).astype(np.int64)
            deepest[part] = depth[part].max()
    return depth, deepest


def _ended_before(work: Work, piece: I64, time_ns: I64) -> I64:
    """Last piece of the same stream, before each of these, that has ended by then: -1 for none.

    Where one that is not in the recording made room, the first piece of the stream stands for it, which ends later.
    """
    found = np.full(len(piece), -1, dtype=np.int64)
    for part in _streams(work):
        own = ((piece >= part.start) & (piece < part.stop)).nonzero()[0]
        if len(own):
            ends = np.maximum.accumulate(work.end_ns[part])
            at = ends.searchsorted(time_ns[own], side="right") - 1
            at = np.minimum(at, piece[own] - part.start - 1)
            free = work.free_ns[work.stream[part.start]] > NEVER
            found[own] = np.where(at >= 0, part.start + at, np.where(free & (piece[own] > part.start), part.start, -1))
    return found


def _thinned(start_ns: I64, step_end_ns: I64) -> Bool:
    """Of very many calls, ascending, every so many; and the last one before the end of each step."""
    kept = np.zeros(len(start_ns), dtype=bool)
    kept[:: max(1, -(-len(kept) // MOST_TIED))] = True
    last = start_ns.searchsorted(step_end_ns) - 1
    kept[last[last >= 0]] = True
    return kept
