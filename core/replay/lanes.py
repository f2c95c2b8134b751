"""Lanes: CPU threads as the replay sees them.

Threads that hand work to each other and wait (a backward pass runs on a thread of its own while the main thread
sleeps) act as one: their calls, merged by time, are one program order. Threads that truly run at the same time as
the main one keep a lane, and a clock, of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core import sets
from core.figures.lookup import of_kinds
from core.intervals import EMPTY, Spans, intersect, union, union_all
from core.kinds import HOST_CALLS, SliceKind
from core.tables import I32, I64
from core.trace import Trace

# A thread counts as working beside the main one when more than this share of its work happens at the same time.
# Handing over takes microseconds, so that a share of a fifth is far outside of what a relay shows.
CONCURRENT_SHARE = 0.2
# A thread that is waited for hands back: the main thread goes on within this time after its work, mostly.
PROMPT_NS = 200_000
HANDED_BACK_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class Lanes:
    """Lane of each thread (-1: not replayed), the main thread of lane 0, and when each thread worked."""

    of_thread: I32  # int32[n_threads]
    count: int
    main_thread: int
    busy: dict[int, Spans]  # thread -> union of its operators and calls

    def threads(self, lane: int) -> list[int]:
        """Threads of a lane."""
        return [int(t) for t in (self.of_thread == lane).nonzero()[0]]


def find_lanes(trace: Trace, active: I32, main_thread: int) -> Lanes:
    """Put threads into lanes.

    Parameters
    ----------
    trace
        The trace.
    active
        Threads that launch, wait or mark steps in the process to replay.
    main_thread
        The thread that runs the steps; it is lane 0.
    """
    busy: dict[int, Spans] = {}
    for thread in {int(main_thread), *map(int, active)}:
        busy[thread] = union_all([_outermost_calls(trace, rows) for rows in _rows_of(trace, thread)])
    edges = _edges(trace, int(main_thread)) if len(busy) > 1 else trace.slices.start_ns[:0]
    of_thread = np.full(len(trace.threads), -1, dtype=np.int32)
    of_thread[main_thread] = 0
    relay, count = busy[main_thread], 1
    for thread in sorted(busy, key=lambda t: -busy[t].total_ns):
        if thread == main_thread:
            continue
        work = busy[thread]
        both = intersect(work, relay).total_ns
        if both <= CONCURRENT_SHARE * max(1, work.total_ns) and _handed_back(work, edges) >= HANDED_BACK_SHARE:
            of_thread[thread] = 0
            relay = union_all((relay, work))
        else:
            of_thread[thread] = count
            count += 1
    return Lanes(of_thread, count, int(main_thread), busy)


def _rows_of(trace: Trace, thread: int) -> list[slice]:
    """Rows of a thread's slices, a stretch for each of its tracks."""
    tracks = trace.tracks
    held = (tracks.thread_id == thread).nonzero()[0]
    return [slice(int(tracks.first_id[t]), int(tracks.end_id[t])) for t in held]


def _outermost_calls(trace: Trace, rows: slice) -> Spans:
    """When a track was in an operator or a call that nothing is around."""
    slices = trace.slices
    own = of_kinds(slices.kind[rows], (SliceKind.CPU_OP, *HOST_CALLS)) & (slices.parent_id[rows] < 0)
    return union(slices.start_ns[rows][own], trace.end_ns[rows][own])


def _edges(trace: Trace, thread: int) -> I64:
    """Starts and ends of all slices of a thread, ascending, ns."""
    rows = _rows_of(trace, thread)
    edges = np.concatenate([column[own] for own in rows for column in (trace.slices.start_ns, trace.end_ns)])
    edges.sort(kind="stable")  # sorted runs
    return edges


def _handed_back(work: Spans, edges: I64) -> float:
    """Share of a thread's work after which the main thread went on at once.

    Parameters
    ----------
    edges
        Starts and ends of everything on the main thread, ascending, ns: between two of them it shows nothing.
    """
    if not len(work) or not len(edges):
        return 1.0
    gap = edges.searchsorted(work.start, side="right")
    numbers, first, _ = sets.grouped(gap)
    last_end = np.maximum.reduceat(work.end, first)
    total = np.add.reduceat(work.dur_ns, first)
    goes_on = edges[np.minimum(numbers, len(edges) - 1)]
    prompt = (numbers < len(edges)) & (goes_on - last_end <= PROMPT_NS + total // 20)
    return float(total[prompt].sum() / max(1, total.sum()))


def others_busy(lanes: Lanes, thread: int) -> Spans:
    """When other threads of the same lane worked: time inside a thread's slice that is not the thread's own."""
    mates = [t for t in lanes.threads(int(lanes.of_thread[thread])) if t != thread]
    return union_all(lanes.busy[t] for t in mates) if mates else EMPTY


def bursts(work: Spans, pause_ns: int) -> tuple[I64, I64]:
    """Start and end of the stretches of work that are separated by at least ``pause_ns``."""
    if not len(work):
        return work.start, work.end
    new = np.concatenate(([True], work.start[1:] - work.end[:-1] >= pause_ns))
    heads = new.nonzero()[0]
    tails = np.append(heads[1:], len(work)) - 1
    return work.start[heads], work.end[tails]
