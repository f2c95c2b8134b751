"""Sync points: where the CPU is blocked on the device, for how long, why, and on what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core import sets
from core.figures.lookup import View, distinct, innermost, launch_start, of_kinds, outermost_op, thread_tracks
from core.figures.model import SyncTable
from core.kinds import CopyDirection, HostMemory, SliceKind, SyncKind, TrackKind
from core.tables import I32, I64, U8, Bool, StepTable

# The clocks of host and device agree to about a microsecond; a wait may seem to end that much before the work does.
CLOCK_TOLERANCE_NS = 3_000
# From a call's return to the start of what it queued, when nothing lies before it, launch latency is all there is.
_RETURNED_BEFORE_NS = 20_000
_ROUNDING_NS = 2_000  # of times in whole microseconds: a call inside a step may seem to end so much after it
_BY_HOST_MEMORY = (int(CopyDirection.HTOD), int(CopyDirection.DTOH))


def find_syncs(view: View, steps: StepTable, step_of: I32) -> SyncTable:
    """Return all sync points in time order (docs/figures.md, "Sync points")."""
    calls, kind, copies = _blocking_calls(view)
    keep = _belongs_to_user(view, calls, steps, step_of)
    calls, kind, copies = calls[keep], kind[keep], copies[keep]
    order = view.trace.slices.start_ns[calls].argsort(kind="stable")
    calls, kind, copies = calls[order], kind[order], copies[order]
    waited = _waited_work(view, calls, kind, copies)
    slices = view.trace.slices
    start, dur = slices.start_ns[calls], slices.dur_ns[calls]
    released = np.where(waited >= 0, view.trace.end_ns[waited], start + dur)
    wait = np.maximum(np.minimum(start + dur, released) - start, 0)
    if len(view.work):  # allocation works, too, where nothing is pending: without work to wait for it did not wait
        wait[(kind == int(SyncKind.ALLOC)) & (waited < 0)] = 0
    # A copy of some bytes can travel inside the launch itself: the call returns before the copy has begun.
    began = np.where(copies >= 0, slices.start_ns[copies], start)
    wait[began > start + dur + _RETURNED_BEFORE_NS] = 0
    device = np.where(waited >= 0, view.device[waited], -1).astype(np.int32)
    # Work that was done before the call began released nobody.
    waited = np.where(wait > 0, waited, -1).astype(np.int32)
    threads = view.thread[calls]
    ranges = innermost(view.trace, thread_tracks(view.trace, TrackKind.CPU_RANGES)[threads], start, (SliceKind.RANGE,))
    frames = innermost(view.trace, thread_tracks(view.trace, TrackKind.CPU_PYTHON)[threads], start, (SliceKind.PYTHON,))
    return SyncTable(
        slice_id=calls,
        kind=kind,
        wait_start_ns=start.copy(),
        wait_ns=wait,
        step_id=step_of[calls],
        thread_id=threads.astype(np.int32),
        device=device,
        op_id=outermost_op(view.trace, calls),
        range_id=ranges,
        frame_id=frames,
        direction=np.where(copies >= 0, slices.direction[copies], int(CopyDirection.NONE)).astype(np.uint8),
        waited_id=waited,
        copy_id=copies,
    )


def _blocking_calls(view: View) -> tuple[I32, U8, I32]:
    """Host calls that may block, their `SyncKind`, and their own copy on the device (-1)."""
    slices = view.trace.slices
    calls = view.named(view.host_calls, (view.names.sync >= 0) | view.names.async_copy)  # all others never do
    calls = calls[view.valid[calls]]
    kind = view.names.sync[slices.name_id[calls]].astype(np.int16)
    copies = _own_copy(view, calls)
    asynchronous = view.names.async_copy[slices.name_id[calls]] & (copies >= 0)
    # An "asynchronous" copy of pageable memory goes through a staging buffer while its caller waits.
    direction, memory = slices.direction[copies], slices.host_memory[copies]
    pageable = asynchronous & (memory == int(HostMemory.PAGEABLE)) & of_kinds(direction, _BY_HOST_MEMORY)
    kind[pageable] = int(SyncKind.MEMCPY)
    # A device-to-device copy returns at once on CUDA; ROCm waits in hipMemcpyWithStream whatever the direction.
    with_stream = view.names.copy_with_stream[slices.name_id[calls]]
    local = (kind == int(SyncKind.MEMCPY)) & (copies >= 0) & (direction == int(CopyDirection.DTOD)) & ~with_stream
    kind[local] = -1
    hit = kind >= 0
    # A driver call inside a runtime call that is listed already is the same wait.
    parent = slices.parent_id[calls]
    listed = np.zeros(len(slices), dtype=bool)
    listed[calls[hit]] = True
    hit &= ~((parent >= 0) & listed[parent])
    return calls[hit], kind[hit].astype(np.uint8), copies[hit]


def _own_copy(view: View, calls: I32) -> I32:
    """First copy that each call launched, -1 for none."""
    links = view.trace.links
    if not len(links.launched):
        return np.full(len(calls), -1, dtype=np.int32)
    at = links.launched_by.searchsorted(calls)
    safe = np.minimum(at, len(links.launched) - 1)
    work = links.launched[safe]
    own = (at < len(links.launched)) & (links.launched_by[safe] == calls)
    own &= view.trace.slices.kind[work] == int(SliceKind.MEMCPY)
    return np.where(own, work, -1).astype(np.int32)


def _belongs_to_user(view: View, calls: I32, steps: StepTable, step_of: I32) -> Bool:
    """Leave out the profiler's own synchronisation, watchdog threads, and allocations outside the steps."""
    trace, slices = view.trace, view.trace.slices
    keep = np.ones(len(calls), dtype=bool)
    if not len(calls):
        return keep
    kind = view.names.sync[slices.name_id[calls]]
    # Threads without operators, launches or steps (collective watchdogs, pinning threads) hold nobody up.
    active = np.zeros(len(trace.threads) + 1, dtype=bool)
    working = of_kinds(slices.kind, (SliceKind.CPU_OP, SliceKind.RANGE, SliceKind.STEP)) & view.valid
    active[view.thread[working]] = True
    active[view.thread[trace.links.launched_by]] = True
    active[view.thread[view.launches]] = True
    if np.count_nonzero(active[:-1]):
        keep &= active[view.thread[calls]]
    alone = outermost_op(trace, calls) < 0
    device_sync = (kind == int(SyncKind.DEVICE)) & alone
    if len(steps):
        outside = step_of[calls] < 0
        # Rounded times may let the profiler's call begin a moment before the last step's end: it ends long after.
        beyond = trace.end_ns[calls] > steps.end_ns[np.maximum(step_of[calls], 0)] + _ROUNDING_NS
        keep &= ~(device_sync & (outside | beyond))
        keep &= ~((kind == int(SyncKind.ALLOC)) & outside)
    else:
        edge = _first_or_last_of_thread(view, calls)
        keep &= ~(device_sync & edge)
    return keep


def _first_or_last_of_thread(view: View, calls: I32) -> Bool:
    """Is each call the first or the last host call of its thread: where the profiler starts and stops."""
    every = view.host_calls
    thread, start = view.thread[every], view.trace.slices.start_ns[every]
    order = np.lexsort((start, thread))
    ids, of = every[order], thread[order]
    first = sets.changes(of)
    ends = np.concatenate((ids[first], ids[:-1][first[1:]], ids[-1:]))
    is_end = np.zeros(len(view.trace.slices), dtype=bool)
    is_end[ends] = True
    return is_end[calls]


@dataclass(frozen=True, eq=False)
class _Queue:
    """Device work in order of launch (unknown launches first), with running latest ends."""

    work: I32
    launched_ns: I64
    end_ns: I64


def _queue(view: View, work: I32) -> _Queue:
    launched = launch_start(view.trace, work)
    order = launched.argsort(kind="stable")
    return _Queue(work[order], launched[order], view.trace.end_ns[work[order]])


def _waited_work(view: View, calls: I32, kind: U8, copies: I32) -> I32:
    """Device slice whose end released each call, -1 where it is not in the trace."""
    waited = copies.copy()
    work = view.work
    open_ = (waited < 0).nonzero()[0]
    if not len(work) or not len(open_):
        return waited
    # Which device or event is meant is not in the trace; the work that ends right before the call returns tells.
    for source in distinct(view.source[calls[open_]]):
        here = open_[view.source[calls[open_]] == source]
        own = work[view.source[work] == source]
        waited[here] = _latest_before(view, own, calls[here])
        whole = here[(kind[here] == int(SyncKind.DEVICE)) | (kind[here] == int(SyncKind.ALLOC))]
        if len(whole) and len(view.devices_of_source(source)) > 1:
            waited[whole] = _of_a_drained_device(view, own, calls[whole], waited[whole])
    of_stream = open_[kind[open_] == int(SyncKind.STREAM)]
    stream = _stream_of_calls(view, calls[of_stream])
    tracks = view.trace.slices.track_id[work]
    for track in distinct(stream):
        here = of_stream[stream == track]
        found = _latest_before(view, work[tracks == track], calls[here])
        waited[here] = np.where(found >= 0, found, waited[here])
    return waited


def _of_a_drained_device(view: View, work: I32, calls: I32, found: I32) -> I32:
    """As ``found``, but of a device that had done all its work when the call returned, where there is one.

    A call that waits for a whole device does not return while that device works: it was for another one.
    """
    start = view.trace.slices.start_ns[calls]
    limit = view.trace.end_ns[calls] + CLOCK_TOLERANCE_NS
    best, best_end = np.full(len(calls), -1, dtype=np.int32), np.full(len(calls), -1, dtype=np.int64)
    for device in distinct(view.device[work]):
        own = work[view.device[work] == device]
        queue = _queue(view, own)
        launched = queue.launched_ns.searchsorted(start)
        done = np.append(-1, np.maximum.accumulate(queue.end_ns))[launched] <= limit
        latest = _latest_before(view, own, calls)
        end = np.where(done & (latest >= 0), view.trace.end_ns[latest], -1)
        better = end > best_end
        best[better], best_end[better] = latest[better], end[better]
    return np.where(best >= 0, best, found)


def _stream_of_calls(view: View, calls: I32) -> I32:
    """Track of the device work that the same thread launched last before each call, -1 for none."""
    trace, links = view.trace, view.trace.links
    track = np.full(len(calls), -1, dtype=np.int32)
    thread_of_launch = view.thread[links.launched_by]
    for thread in sets.distinct(view.thread[calls]):
        here = (view.thread[calls] == thread).nonzero()[0]
        own = (thread_of_launch == thread).nonzero()[0]
        if not len(own):
            continue
        starts = trace.slices.start_ns[links.launched_by[own]]
        order = starts.argsort(kind="stable")
        at = starts[order].searchsorted(trace.slices.start_ns[calls[here]]) - 1
        last = links.launched[own[order[np.maximum(at, 0)]]]
        track[here] = np.where(at >= 0, trace.slices.track_id[last], -1)
    return track


def _latest_before(view: View, work: I32, calls: I32) -> I32:
    """Of ``work`` launched before each call, the slice that ends last and no later than the call; -1 for none.

    Work that ends after the call's return cannot be what it waited for; work launched before the trace counts as
    launched before every call.
    """
    start = view.trace.slices.start_ns[calls]
    limit = view.trace.end_ns[calls] + CLOCK_TOLERANCE_NS
    queue = _queue(view, work)
    by_end = queue.end_ns.argsort(kind="stable")
    ends = queue.end_ns[by_end]
    at = ends.searchsorted(limit, side="right") - 1
    found = np.full(len(calls), -1, dtype=np.int32)
    todo = (at >= 0).nonzero()[0]
    for _ in range(64):  # a queue of another thread may be interleaved: step back past work launched later
        if not len(todo):
            break
        slot = by_end[at[todo]]
        fine = queue.launched_ns[slot] < start[todo]
        found[todo[fine]] = queue.work[slot[fine]]
        todo = todo[~fine]
        at[todo] -= 1
        todo = todo[at[todo] >= 0]
    return found
