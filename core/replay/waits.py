"""What each waiting place of the recording waits for: device work, the loader's next batch, room in the queue."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from core import sets
from core.figures.lookup import View, distinct, rows_among
from core.figures.model import Budget, Figures
from core.intervals import Spans, union
from core.kinds import GapCause, SliceKind, SyncKind
from core.replay.handover import find_handovers
from core.replay.lanes import Lanes
from core.replay.queues import DEFAULT_CALL_NS, blocked_launches
from core.replay.work import Work
from core.tables import F64, I32, I64

# Clocks of host and device agree to about a microsecond; a sync may seem to return that much before its work ends.
TOLERANCE_NS = 3_000
# A loader call that is this much longer than the shortest one waited for its batch.
_LOADER_WAIT_NS = 20_000
STARVED_SHARE = (
    0.05  # of the loop's time spent waiting for batches: the loader sets the pace (torch-tb-profiler's mark)
)
IDLES_SHARE = 0.01  # of the loop's time that the device idles for the loader: below it something else sets the pace
_LOADER_TAKE_NS = 100_000  # taking a finished batch out of the queue costs no more than about this
RELEASED_NS = 10_000  # from the end of work on one stream to the start of what waited for it on another
_LOOK_BACK = 64  # launches among which the one before a stream wait on another stream is looked for


@dataclass(frozen=True, eq=False)
class Waits:
    """Places where a lane waits, in no particular order. A wait is ``[start_ns, end_ns)``; host time stands still in
    it as far as it ``depends`` on something that the replay works out.

    ``dep_of``/``dep_piece``/``dep_lag_ns``: the wait ends no earlier than the piece of device work plus the lag.
    ``loader`` numbers the waits for the processes of a DataLoader (see `core.replay.batches`): batches come out of them
    at their own pace, whatever this process does.
    """

    sync_id: I32  # row of Figures.syncs, -1 for waits for the loader, for room in the queue, for other lanes
    slice_id: I32  # -1 for waits for other lanes
    thread: I32  # -1 likewise
    lane: I32
    start_ns: I64
    end_ns: I64
    dep_of: I32  # row of this table, ascending
    dep_piece: I32
    dep_lag_ns: F64
    loader: I32  # 1-based number of the loader call among all calls, 0 for others
    batch_ns: I64  # end of each call of the loader, also of those that did not wait
    at_ns: I64  # place of the wait in its lane's order: where it begins, for another lane where it ends
    mark: I32  # row of the marks, -1: the wait ends no earlier than another lane passes that mark, plus ...
    mark_lag_ns: F64
    mark_lane: I32  # per mark: its lane ...
    mark_ns: I64  # ... and when the lane passed it in the recording
    over: I32 = field(default_factory=lambda: np.zeros(0, dtype=np.int32))  # rows of waits for work that moved away

    def __len__(self) -> int:
        return len(self.slice_id)

    @cached_property
    def depends(self) -> np.ndarray:
        """bool[n]: the replay knows what this wait waits for."""
        known = self.sync_id < 0
        known[self.dep_of] = True
        known[self.over] = True
        known.setflags(write=False)
        return known

    @property
    def loader_calls(self) -> int:
        """Number of all calls of the loader."""
        return len(self.batch_ns)

    @property
    def begin_blocks(self) -> I64:
        """Rows of the waits at which something is looked at; not those that only take no host time."""
        something = (self.sync_id >= 0) | (self.loader > 0) | (self.mark >= 0)
        something[self.dep_of] = True
        return something.nonzero()[0]


def find_waits(view: View, figures: Figures, work: Work, lanes: Lanes, call_ns: int) -> Waits:
    """Collect all waits of the lanes; ``call_ns`` is what a call costs that does not wait."""
    sync = _sync_waits(view, figures, work, lanes, call_ns)
    loader = _loader_waits(view, figures, lanes)
    room = blocked_launches(view, work, lanes, figures.steps.end_ns, TOLERANCE_NS)
    blocked: tuple[Any, ...] = (np.full(len(room.call), -1), *room[:5])
    base = [np.concatenate(parts) for parts in zip(sync[:6], loader[:6], blocked, strict=True)]
    before = len(sync[0]) + len(loader[0])
    more_deps: tuple[Any, ...] = (room.dep_of + before, room.dep_piece, room.dep_lag_ns)
    dep_of, dep_piece, dep_lag = (np.concatenate(parts) for parts in zip(sync[6:9], more_deps, strict=True))
    number = np.concatenate((np.zeros(len(sync[0])), loader[6], np.zeros(len(room.call))))
    main = (base[3] == 0) & (base[5] > base[4])
    hand = find_handovers(view, lanes, base[4][main].astype(np.int64), base[5][main].astype(np.int64))
    nothing = np.full(len(hand), -1)
    more: tuple[np.ndarray, ...] = (nothing, nothing, nothing, hand.lane, hand.start_ns, hand.end_ns)
    at = np.concatenate((base[4], hand.end_ns + (hand.lane == 0)))
    mark = np.concatenate((np.full(len(base[0]), -1), np.arange(len(hand))))
    number = np.concatenate((number, np.zeros(len(hand))))
    lag = np.concatenate((np.zeros(len(base[0])), hand.lag_ns))
    base = [np.concatenate(parts) for parts in zip(base, more, strict=True)]
    return Waits(
        sync_id=base[0].astype(np.int32),
        slice_id=base[1].astype(np.int32),
        thread=base[2].astype(np.int32),
        lane=base[3].astype(np.int32),
        start_ns=base[4].astype(np.int64),
        end_ns=base[5].astype(np.int64),
        dep_of=dep_of.astype(np.int32),
        dep_piece=dep_piece.astype(np.int32),
        dep_lag_ns=dep_lag,
        loader=number.astype(np.int32),
        batch_ns=loader[7],
        at_ns=at.astype(np.int64),
        mark=mark.astype(np.int32),
        mark_lag_ns=lag,
        mark_lane=hand.mark_lane,
        mark_ns=hand.mark_ns,
    )


def call_cost(view: View, work: Work) -> int:
    """Median duration of the calls that launch a kernel: what a call costs that does not wait, ns."""
    launches = rows_among(work.launch_id).astype(np.int32)
    kernels = view.named(launches, view.names.launch)
    if not len(kernels):
        return DEFAULT_CALL_NS
    return int(sets.median(view.trace.slices.dur_ns[kernels]))


def _sync_waits(view: View, figures: Figures, work: Work, lanes: Lanes, call_ns: int) -> tuple[Any, ...]:
    """Waits at sync points, with the pieces of work that each waits for."""
    syncs, slices = figures.syncs, view.trace.slices
    lane = lanes.of_thread[syncs.thread_id]
    rows = ((lane >= 0) & (syncs.thread_id >= 0)).nonzero()[0]
    call = syncs.slice_id[rows]
    copies = syncs.copy_id[rows] >= 0
    cost = np.where(copies, max(1, call_ns), 0)
    cost = np.minimum(cost, slices.dur_ns[call])
    start = slices.start_ns[call] + cost
    end = np.clip(syncs.wait_start_ns[rows] + syncs.wait_ns[rows], start, view.trace.end_ns[call])
    dep_of, dep_piece, dep_lag = _dependencies(view, figures, rows, work, start, end)
    return rows, call, syncs.thread_id[rows], lane[rows], start, end, dep_of, dep_piece, dep_lag


def _dependencies(
    view: View, figures: Figures, rows: np.ndarray, work: Work, start: I64, end: I64
) -> tuple[I32, I32, F64]:
    """Pieces that the syncs wait for: their own copy, an event's, a stream's or every stream's last one.

    What a sync that did not wait would have waited for matters too: a fix elsewhere can make it wait.
    """
    syncs, slices = figures.syncs, view.trace.slices
    call, kind, waited = syncs.slice_id[rows], syncs.kind[rows], syncs.waited_id[rows]
    if not len(work):
        return np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0)
    limit = view.trace.end_ns[call] + TOLERANCE_NS
    copy = work.piece_of(syncs.copy_id[rows])
    copy = np.where((copy >= 0) & (work.end_ns[copy] <= limit), copy, -1)
    named = work.piece_of(waited)
    named = np.where((named >= 0) & (work.end_ns[named] <= limit), named, -1)
    thread = syncs.thread_id[rows]
    behind = _last_launched(work, np.full(len(rows), np.iinfo(np.int64).max), thread)  # in the loop: the step before
    newest = _last_launched(work, slices.start_ns[call], thread)
    hint = np.where(named >= 0, named, np.where(newest >= 0, newest, behind))
    known = hint >= 0
    stream, device = work.stream[hint], work.stream_device[work.stream[hint]]
    told = syncs.device[rows]  # also of a call that found its device idle, whatever was launched last before it
    known, device = known | (told >= 0), np.where(told >= 0, told, device)
    alloc = kind == int(SyncKind.ALLOC)
    frees = np.array(["Free" in view.trace.name(i) for i in call], dtype=bool)
    wide = (kind == int(SyncKind.DEVICE)) | (alloc & frees)
    narrow = ((kind == int(SyncKind.STREAM)) | (kind == int(SyncKind.EVENT))) & (copy < 0)
    owner, target = [(copy >= 0).nonzero()[0]], [copy[copy >= 0]]
    # Which event an event synchronisation waits for is not recorded; it was recorded before, with what it covers.
    recorded, around = _last_record(view, slices.start_ns[call])
    before = np.where(kind == int(SyncKind.EVENT), recorded, slices.start_ns[call])
    early = (narrow & around & (kind == int(SyncKind.EVENT))).nonzero()[0]
    last = _last_launched(work, before[early], syncs.thread_id[rows[early]])
    owner.append(early[last >= 0])
    target.append(last[last >= 0])
    narrow[early] = False
    # What released a call that hardly waited may have ended by chance meanwhile: only a true wait tells its event.
    exact = (narrow & (kind == int(SyncKind.EVENT)) & (named >= 0) & (end - start > 2 * TOLERANCE_NS)).nonzero()[0]
    owner.append(exact)
    target.append(named[exact])
    narrow[exact] = False
    for one in range(len(work.stream_track)):
        first, last = work.stream.searchsorted((one, one + 1))
        launched = np.maximum.accumulate(work.launch_ns[first:last]).searchsorted(before) - 1
        ended = np.maximum.accumulate(work.end_ns[first:last]).searchsorted(limit, side="right") - 1
        # Nothing yet at the beginning of a recording: in the loop it is what the step before launched last.
        found = np.where(launched < 0, last - first - 1, np.minimum(launched, ended))
        all_done = wide & (~known | (device == work.stream_device[one])) & (ended >= launched)
        hit = ((found >= 0) & (all_done | (narrow & (hint >= 0) & (stream == one)))).nonzero()[0]
        owner.append(hit)
        target.append(first + found[hit])
    dep_of, dep_piece = np.concatenate(owner).astype(np.int32), np.concatenate(target).astype(np.int32)
    order = dep_of.argsort(kind="stable")
    dep_of, dep_piece = dep_of[order], dep_piece[order]
    lag = end[dep_of] - work.end_ns[dep_piece]
    released = (end > start)[dep_of] & (np.abs(lag) <= TOLERANCE_NS)
    return dep_of, dep_piece, np.where(released, lag, 0).astype(np.float64)


def _last_record(view: View, time_ns: I64) -> tuple[I64, np.ndarray]:
    """Start of the last ``EventRecord`` call before each instant; the instant itself in a trace without any.

    Before the first one the event is one of the time before the recording. In a loop that is that of the step before:
    the last one of the recording stands for it. The second array tells where.
    """
    wanted = np.array(["EventRecord" in name for name in view.trace.strings.values], dtype=bool)
    records = np.sort(view.trace.slices.start_ns[view.named(view.host_calls, wanted)])
    at = records.searchsorted(time_ns) - 1
    last: I64 = records[at] if len(records) else time_ns
    return last, (at < 0) & bool(len(records))


def _last_launched(work: Work, time_ns: I64, thread: I32) -> I32:
    """Piece that the same thread launched last before each instant, -1 for none."""
    found = np.full(len(time_ns), -1, dtype=np.int32)
    for one in distinct(thread):
        own = ((work.thread == one) & (work.launch_id >= 0)).nonzero()[0]
        own = own[work.launch_ns[own].argsort(kind="stable")]
        here = (thread == one).nonzero()[0]
        at = work.launch_ns[own].searchsorted(time_ns[here]) - 1
        found[here[at >= 0]] = own[at[at >= 0]]
    return found


def _loader_waits(view: View, figures: Figures, lanes: Lanes) -> tuple[Any, ...]:
    """Waits for the processes of a DataLoader; last, the ends of all its calls, ns."""
    trace, slices = view.trace, view.trace.slices
    calls = view.named(view.by_kind(SliceKind.RANGE), view.names.loader)
    calls = calls[np.array(["_MultiProcessing" in trace.name(i) for i in calls], dtype=bool)]
    calls = calls[lanes.of_thread[view.thread[calls]] >= 0]
    calls = calls[slices.start_ns[calls].argsort(kind="stable")]
    dur = slices.dur_ns[calls]
    shortest = int(dur.min()) if len(dur) else 0
    shortest = min(shortest, _LOADER_TAKE_NS)
    hit = (dur > shortest + _LOADER_WAIT_NS).nonzero()[0]
    # Now and then a batch comes late in any run; only a loader that keeps the loop waiting sets its pace.
    between = slices.start_ns[calls[-1]] - slices.start_ns[calls[0]] if len(calls) else 0
    starved = (dur[hit] - shortest)[1:].sum() >= STARVED_SHARE * between
    if len(hit) < 2 or not starved or _hidden(figures.budget):
        hit = hit[:0]
    batches, calls = trace.end_ns[calls], calls[hit]
    thread, end = view.thread[calls], trace.end_ns[calls] - shortest
    nothing = np.full(len(hit), -1)
    return nothing, calls, thread, lanes.of_thread[thread], slices.start_ns[calls], end, hit + 1, batches


def _hidden(budget: Budget) -> bool:
    """Whether the device hardly idles for the loader: then its batches come in time, however long the CPU waits."""
    if not budget.period_ns or budget.busy_ns is None:
        return False
    return budget.idle_by_cause_ns.get(GapCause.LOADER, 0) < IDLES_SHARE * budget.period_ns


def wait_spans(waits: Waits, rows: np.ndarray) -> Spans:
    """Union of the given waits."""
    return union(waits.start_ns[rows], waits.end_ns[rows])


def stream_wait_calls(view: View) -> I32:
    """Slices of the calls that let a stream wait for an event."""
    wanted = np.array(["StreamWaitEvent" in name for name in view.trace.strings.values], dtype=bool)
    calls: I32 = view.named(view.host_calls, wanted) if len(wanted) else view.host_calls[:0]
    return calls


def stream_waits(view: View, work: Work, lanes: Lanes) -> tuple[tuple[I32, I32], tuple[I32, I32]]:
    """Dependencies between streams, from the ``StreamWaitEvent`` calls of the recording.

    The trace does not say which event a stream waits for. The work that the lane launched last on another stream of the
    device is taken for it, of that which the recording shows to have finished by then. (Of the lane, not the thread:
    the collectives that the main thread waits for were mostly launched by the thread of the backward pass.)

    Returns
    -------
    tuple
        Waiting pieces, and the piece that each waits for. Then the same for the first ones, before which nothing was
        launched: in a loop they wait for what the step before launched last, and the recording's last stands for it.
    """
    slices, calls = view.trace.slices, stream_wait_calls(view)
    found: list[np.ndarray] = [np.zeros((2, 0), dtype=np.int64)]
    around = found.copy()
    launched = (work.launch_id >= 0).nonzero()[0]
    lane_of_call, lane_of_work = lanes.of_thread[view.thread[calls]], lanes.of_thread[work.thread[launched]]
    for lane in distinct(lane_of_call):
        if lane < 0:
            continue
        own = launched[lane_of_work == lane]
        own = own[work.launch_ns[own].argsort(kind="stable")]
        at = np.sort(slices.start_ns[calls[lane_of_call == lane]])
        edges, first, tied = _follow(work, own, at)
        found.append(edges)
        around.append(_from_before(work, own, first, tied))
    (waiting, waited), (first, last) = (np.concatenate(parts, axis=1).astype(np.int32) for parts in (found, around))
    return (waiting, waited), (first, last)


def _from_before(work: Work, own: np.ndarray, first: np.ndarray, tied: set[tuple[int, int]]) -> np.ndarray:
    """Pieces that nothing was launched before, each with the last piece of another stream of its device.

    Without any, that of a device which ``tied`` says to wait for it or to be waited for.
    """
    rows = []
    stream = work.stream[own]
    device = work.stream_device[stream]
    for piece in first.tolist():
        here = int(work.stream_device[work.stream[piece]])
        other = (stream != work.stream[piece]) & (device == here)
        if not other.any():
            other = np.array([(here, there) in tied for there in device.tolist()], dtype=bool)
        if other.any():
            rows.append((piece, int(own[np.flatnonzero(other)[-1]])))
    return np.array(rows, dtype=np.int64).reshape(-1, 2).T


def _follow(work: Work, own: np.ndarray, calls_ns: I64) -> tuple[np.ndarray, np.ndarray, set[tuple[int, int]]]:
    """For one lane: the first launch after each stream wait with what it waits for; the first of all apart.

    Last, both ways, the devices of which one is seen to wait for the other. Where nothing of its own device can be what
    a launch waits for, it is what was launched last on a device tied to it so.
    """
    at = sets.distinct(work.launch_ns[own].searchsorted(calls_ns))
    ends, at = bool((at == len(own)).any()), at[at < len(own)]
    stream = work.stream[own]
    device, start, end = work.stream_device[stream], work.start_ns[own], work.end_ns[own]
    before = at - 1
    found = np.full(len(at), -1, dtype=np.int64)
    todo = (before >= 0).nonzero()[0]
    for _ in range(_LOOK_BACK):
        if not len(todo):
            break
        here, back = at[todo], before[todo]
        other = (stream[back] != stream[here]) & (device[back] == device[here])
        other &= end[back] <= start[here] + TOLERANCE_NS
        found[todo[other]] = back[other]
        before[todo] -= 1
        todo = todo[~other & (back > 0)]
    alone = (found < 0) & (before <= 0)
    found = _released_by(work, own, at, found)
    apart = (found >= 0) & (device[at] != device[found])
    pairs = set(zip(device[at[apart]].tolist(), device[found[apart]].tolist(), strict=True))
    tied = pairs | {(there, here) for here, there in pairs}
    for one, there in sorted(tied):
        places = (device == there).nonzero()[0]
        index = places.searchsorted(at) - 1
        last = places[np.maximum(index, 0)]
        follows = (found < 0) & (device[at] == one) & (index >= 0) & (end[last] <= start[at] + TOLERANCE_NS)
        found[follows] = last[follows]
    first = own[at[alone & ((found < 0) | (device[at] == device[found]))]][:_LOOK_BACK]
    at, found = at[found >= 0], found[found >= 0]
    # Behind a call that nothing follows comes, in a loop, the first launch.
    if ends and len(own) and bool((stream[at] == stream[0]).any()):
        first = np.union1d(first, own[:1])
    return np.stack((own[at], own[found])), first, tied


def _released_by(work: Work, own: np.ndarray, at: np.ndarray, found: np.ndarray) -> np.ndarray:
    """What each launch waits for, where another stream's last work ended just when it began and that found did not.

    Several streams may have been launched on since (a prefetched batch): the one whose end released it is meant.
    """
    stream, start, end = work.stream[own], work.start_ns[own], work.end_ns[own]
    device = work.stream_device[stream]
    found = found.copy()
    loose = (found < 0) | (start[at] - end[found] > RELEASED_NS)
    for same in (True, False):  # else another device, from which data came
        for one in distinct(stream):
            places = np.flatnonzero(stream == one)
            index = np.searchsorted(places, at) - 1
            last = places[np.maximum(index, 0)]
            ended = start[at] - end[last]
            meets = loose & (index >= 0) & (stream[at] != one) & ((device[at] == device[last]) == same)
            meets &= (ended >= -TOLERANCE_NS) & (ended <= RELEASED_NS)
            found[meets], loose = last[meets], loose & ~meets
    return found
