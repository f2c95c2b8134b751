"""Device work as the replay sees it: when it could have started, and what kept it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from core import sets
from core.figures.lookup import View
from core.tables import I32, I64, Bool, Whole

# A launch that owns at least this many pieces of device work is a graph: its inner order is kept as it ran.
GRAPH_NODES = 3
# Kernels of one stream overlap by some microseconds (programmatic dependent launch); by more, they are not in line.
OVERLAP_NS = 10_000
# Work that starts later than this after its launch, and after all else of its stream, is held up by something.
HELD_NS = 20_000
NEVER = np.iinfo(np.int64).min
_DEFAULT_GAP_NS = 1_000
_DEFAULT_LATENCY_NS = 5_000


@dataclass(frozen=True, eq=False)
class Work:
    """Pieces of device work in order of start on their stream; a graph launch is one piece. All int64 ns."""

    slice_id: I32  # first slice of the piece
    stream: I32  # dense stream number
    start_ns: I64
    end_ns: I64
    launch_ns: I64  # start of the launching call; of the work itself where the launch is not in the trace
    launch_id: I32  # launching slice, -1
    thread: I32  # launching thread, -1
    latency_ns: Whole  # from the launch to the earliest possible start
    gap_ns: Whole  # from the end of the work before it to its start, when it was queued
    typical_ns: int  # usual latency on an idle stream
    device_slices: I32  # slices of all pieces, ascending
    piece_of_each: I32  # piece of each of them
    stream_track: I32  # track id of each dense stream
    stream_device: I32
    free_ns: I64  # per dense stream: until when launches of before the recording held it up, `NEVER` for not at all

    def __len__(self) -> int:
        return len(self.slice_id)

    @property
    def dur_ns(self) -> I64:
        """int64[n], ns: duration of each piece."""
        return self.end_ns - self.start_ns

    @cached_property
    def before_ns(self) -> I64:
        """int64[n], ns: latest end on the same stream before each piece, `NEVER` for the first one of a stream."""
        return _end_before(self.stream, self.end_ns)

    def piece_of(self, slice_id: I32 | I64) -> I32:
        """int32[n]: piece of each of these slices, -1 for one that is in none (or is none)."""
        if not len(self.device_slices):
            return np.full(len(slice_id), -1, dtype=np.int32)
        slice_id = np.asarray(slice_id, np.int32)  # of another type, the whole column would be turned into it
        at = np.minimum(self.device_slices.searchsorted(slice_id), len(self.device_slices) - 1)
        return np.where(self.device_slices[at] == slice_id, self.piece_of_each[at], -1).astype(np.int32)


def collect_work(view: View, threads: Bool, window: tuple[int, int]) -> Work:
    """Device work launched by the given threads (and, inside the window, work without a launch).

    Parameters
    ----------
    view
        The trace.
    threads
        bool[n_threads + 1]: threads whose launches are replayed; the last entry is for thread -1.
    window
        Start and end of the replayed time, ns; work without a launch outside of it is left out.
    """
    trace, slices = view.trace, view.trace.slices
    ids = _chosen(view, threads, window)
    track, start, launch = slices.track_id[ids], slices.start_ns[ids], trace.links.launch_of[ids]
    first = sets.changes(track)  # ascending
    tracks, stream = track[first], first.cumsum() - 1
    heads, start, end, piece_of = _merge_graphs(launch, start, trace.end_ns[ids])
    own, tracks = _split_overlaps(stream[heads], start, end, tracks)
    order = _in_line(start, own)
    back = np.arange(len(own), dtype=np.int32)
    if order is not None:
        back[order] = np.arange(len(order))
        heads, start, end, own = heads[order], start[order], end[order], own[order]
    by_id = ids.argsort(kind="stable") if bool((ids[1:] < ids[:-1]).any()) else slice(None)
    launch = launch[heads]
    launched = launch >= 0
    launch_ns = slices.start_ns[launch]
    if not launched.all():
        launch_ns = _in_order(own, np.where(launched, launch_ns, start), launched)
        # What was launched before the recording is no part of its steps; one after the other, as blocks hold so many.
        early = (~launched & _before_the_first(own, start, launched)).nonzero()[0]
        early = early[start[early].argsort(kind="stable")]
        launch_ns[early] = window[0] - np.arange(len(early), 0, -1)
    latency, gap, typical = _delays(_end_before(own, end), start, launch_ns, launched)
    return Work(
        slice_id=ids[heads],
        stream=own,
        start_ns=start,
        end_ns=end,
        launch_ns=launch_ns,
        launch_id=launch,
        thread=np.where(launched, view.thread[launch], -1).astype(np.int32),
        latency_ns=latency,
        gap_ns=gap,
        typical_ns=typical,
        device_slices=ids[by_id],
        piece_of_each=back[piece_of[by_id]],
        stream_track=tracks.astype(np.int32),
        stream_device=view.device_of_track[tracks].astype(np.int32),
        free_ns=np.full(len(tracks), NEVER, dtype=np.int64),
    )


def _chosen(view: View, threads: Bool, window: tuple[int, int]) -> I32:
    """Device slices as told in `collect_work`, by track and start."""
    slices, ids = view.trace.slices, view.work
    launch = view.trace.links.launch_of[ids]
    keep = chosen = (launch >= 0) & threads[view.thread[launch]]
    if bool((alone := launch < 0).any()):
        inside = (slices.start_ns[ids] >= window[0]) & (slices.start_ns[ids] < window[1])
        keep = chosen | (alone & (inside | _before_the_first(slices.track_id[ids], slices.start_ns[ids], chosen)))
    ids = ids if keep.all() else ids[keep]
    order = _in_line(slices.start_ns[ids], slices.track_id[ids])
    return ids if order is None else ids[order]


def explain(work: Work, waiting: I32, waited: I32) -> Work:
    """Return the work with the delays taken out that waiting for another stream explains.

    Parameters
    ----------
    waiting, waited
        Pieces, and the piece of another stream that each waits for.
    """
    if not len(waiting):
        return work
    latency, gap = work.latency_ns.copy(), work.gap_ns.copy()
    before = work.before_ns[waiting]
    bound = np.maximum(before, work.end_ns[waited])
    start, launch = work.start_ns[waiting], work.launch_ns[waiting]
    queued = launch + work.typical_ns < bound
    latency[waiting] = np.where(queued, np.minimum(work.typical_ns, start - launch), latency[waiting])
    gap[waiting] = np.where(queued, start - bound, gap[waiting])
    return replace(work, latency_ns=latency, gap_ns=gap)


def freed(view: View, work: Work) -> Work:
    """Return the work with what held up the first piece of a stream told from the latency of its launch.

    The device may work off launches of the time before when a recording begins. In a loop the work of the step before
    stands for that; as a latency it would come again in every pass, however fast the device became.
    """
    first = work.stream.searchsorted(np.arange(len(work.stream_track)))
    first = first[work.launch_id[first] >= 0] if len(work) else first[:0]
    call_ns = view.trace.slices.dur_ns[work.launch_id[first]]
    # Also of a piece that waits for another stream: what is left of its delay is then a gap.
    held = (work.latency_ns[first] > call_ns + HELD_NS) | (work.gap_ns[first] > HELD_NS)
    first, call_ns = first[held], call_ns[held]
    if not len(first):
        return work
    latency, gap, free = work.latency_ns.copy(), work.gap_ns.copy(), work.free_ns.copy()
    latency[first] = np.minimum(np.maximum(call_ns, work.typical_ns), latency[first])
    gap[first] = np.minimum(gap[first], _DEFAULT_GAP_NS)
    free[work.stream[first]] = work.start_ns[first] - gap[first]
    return replace(work, latency_ns=latency, gap_ns=gap, free_ns=free)


def narrowed(work: Work) -> Work:
    """Return the work with its delays, which are not worked on any more, in half the memory where they fit."""
    return replace(work, latency_ns=sets.narrow(work.latency_ns), gap_ns=sets.narrow(work.gap_ns))


def _merge_graphs(launch: I32, start: I64, end: I64) -> tuple[I32, I64, I64, I32]:
    """Make one piece of all that one graph launch owns.

    Returns
    -------
    tuple
        Position of each piece's first slice, start and end of the pieces, and the piece of each slice.
    """
    owned = np.sort(launch[launch >= 0])
    if not (owned[GRAPH_NODES - 1 :] == owned[: max(len(owned) - GRAPH_NODES + 1, 0)]).any():  # no launch owns so many
        each = np.arange(len(launch), dtype=np.int32)
        return each, start, np.maximum(end, 0), each
    _, owner, count = np.unique(launch, return_inverse=True, return_counts=True)
    graph = (launch >= 0) & (count[owner] >= GRAPH_NODES)
    group = np.where(graph, owner, len(count) + np.arange(len(launch)))
    by_start = start.argsort(kind="stable")
    _, first, piece = np.unique(group[by_start], return_index=True, return_inverse=True)
    piece_of = np.empty(len(launch), dtype=np.int32)
    piece_of[by_start] = piece
    last = np.zeros(len(first), dtype=np.int64)
    np.maximum.at(last, piece, end[by_start])
    heads = by_start[first]
    return heads.astype(np.int32), start[heads], last, piece_of


def _split_overlaps(stream: np.ndarray, start: I64, end: I64, tracks: np.ndarray) -> tuple[I32, np.ndarray]:
    """Put work that truly runs at the same time on one stream (several queues behind it, or a wrong duration) apart.

    Returns
    -------
    tuple
        Stream of each piece, and the track of each stream.
    """
    own = stream.astype(np.int32)
    order = _in_line(start, own)
    parts: list[Any]
    parts = _runs(own) if order is None else np.split(order, np.diff(own[order]).nonzero()[0] + 1)
    for part in parts:
        reach = np.maximum.accumulate(end[part])
        if not (start[part][1:] < reach[:-1] - OVERLAP_NS).any():
            continue
        free = [np.iinfo(np.int64).min]  # end of the work on each of the streams that this one becomes
        names = [int(own[part][0])]
        for piece in np.arange(len(own))[part].tolist():
            at = next((k for k, until in enumerate(free) if until <= start[piece] + OVERLAP_NS), len(free))
            if at == len(free):
                free.append(np.iinfo(np.int64).min)
                names.append(len(tracks))
                tracks = np.append(tracks, tracks[names[0]])
            own[piece] = names[at]
            free[at] = max(free[at], int(end[piece]))
    return own, tracks


def _delays(before: I64, start: I64, launch: I64, launched: Bool) -> tuple[I64, I64, int]:
    """Split the time before each piece into launch latency and the gap that the queue leaves.

    A piece that was launched when its stream had nothing left to do started as soon as its launch allowed: all of the
    delay is latency. One that was queued behind other work started as soon as the device allowed: what lies between
    is the device's gap.
    """
    delay = start - launch
    empty = launched & (launch >= before)
    typical = int(sets.percentile(delay[empty], 10)) if empty.any() else _DEFAULT_LATENCY_NS
    typical = max(0, min(typical, 50_000))
    queued = launched & ~empty & (launch + typical < before)
    gaps = (start - before)[queued]
    usual_gap = int(min(max(sets.median(gaps), 0), 5_000)) if len(gaps) else _DEFAULT_GAP_NS
    latency = np.where(queued, np.minimum(typical, delay), delay)
    has_before = before > NEVER
    spare = np.where(has_before, start - np.where(has_before, before, 0), usual_gap)
    gap = np.where(queued, spare, np.minimum(usual_gap, spare))
    return latency.astype(np.int64), gap.astype(np.int64), typical


def _in_line(start: I64, stream: Whole) -> I64 | None:
    """Order by stream and start, None where that is how they are already: a table has its slices so."""
    later = (stream[1:] > stream[:-1]) | ((stream[1:] == stream[:-1]) & (start[1:] >= start[:-1]))
    return None if later.all() else np.lexsort((start, stream))


def _in_order(stream: I32, launch: I64, launched: Bool) -> I64:
    """Put the unknown launch of a piece no later than the launches of what follows it on its stream."""
    fixed = launch.copy()
    for part in _runs(stream):
        earliest = np.minimum.accumulate(launch[part][::-1])[::-1]
        fixed[part] = np.where(launched[part], launch[part], earliest)
    return fixed


def _runs(stream: Whole) -> list[slice]:
    """Stretches of equal numbers, one after the other."""
    borders = (np.diff(stream).nonzero()[0] + 1).tolist()
    return [slice(first, end) for first, end in pairwise([0, *borders, len(stream)])]


def _before_the_first(stream: Whole, start: I64, launched: Bool) -> Bool:
    """Pieces that start before the first launched one of their stream: they had been queued before it."""
    first = np.full(int(stream.max(initial=-1)) + 1, np.iinfo(np.int64).min, dtype=np.int64)
    first[stream[launched]] = np.iinfo(np.int64).max
    np.minimum.at(first, stream[launched], start[launched])
    early: Bool = start < first[stream]
    return early


def _end_before(stream: I32, end: I64) -> I64:
    """Latest end on the same stream before each piece; the smallest integer for the first one of a stream."""
    before = np.full(len(end), NEVER, dtype=np.int64)
    for part in _runs(stream):
        if part.stop - part.start > 1:
            np.maximum.accumulate(end[part][:-1], out=before[part][1:])
    return before
