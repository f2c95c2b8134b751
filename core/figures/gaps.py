"""Why a device was idle: each idle nanosecond is charged to exactly one cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core import sets
from core.figures.device import DeviceTimes
from core.figures.lookup import View, of_kinds
from core.figures.model import GapTable, SyncTable
from core.intervals import Spans, ascending, coverage, divide, subtract, union, union_all
from core.kinds import HOST_CALLS, GapCause, SliceKind, SyncKind
from core.tables import I32, I64, U8, StepTable

# A started kernel follows the one before it on a busy stream within some microseconds: that is the device's own
# launch cost. Longer, with work queued, something that the trace does not tell held it back.
_DEVICE_LAUNCH_NS = 20_000
# A launch takes microseconds. While the device idles its queue is empty, so that a call of this length is not held up
# by a full one: it creates the context or loads a module.
_SLOW_CALL_NS = 1_000_000
# So soon after an operator or a call nothing but the interpreter can be what the thread is in.
_HOLE_NS = 1_000_000
_PART = 1 << 16  # slices united at a time


@dataclass(frozen=True, eq=False)
class _Layer:
    """Activity of one thread: a cause, when it held, and the slices behind it."""

    cause: GapCause
    spans: Spans
    ids: I32


@dataclass(eq=False)
class _Pieces:
    """Idle pieces of one device while they are shared out."""

    start: list[I64]
    end: list[I64]
    cause: list[U8]
    blame: list[I32]

    def add(self, spans: Spans, cause: int, blame: I32 | int) -> None:
        count = len(spans)
        if not count:
            return
        self.start.append(spans.start)
        self.end.append(spans.end)
        self.cause.append(np.full(count, cause, dtype=np.uint8))
        self.blame.append(blame if isinstance(blame, np.ndarray) else np.full(count, blame, dtype=np.int32))


def find_gaps(view: View, times: DeviceTimes, window: Spans, steps: StepTable, syncs: SyncTable) -> GapTable:
    """Attribute the idle time of every device inside ``window`` (docs/figures.md, "Idle time and its cause")."""
    threads = _Threads(view, syncs)
    borders = ascending(np.concatenate((steps.start_ns, steps.end_ns)))
    parts = [_split_at(*_gaps_of(view, times, dev, window, syncs, threads), borders) for dev in view.devices]
    start, end, cause, blame = parts[0] if len(parts) == 1 else _joined(parts or [_no_pieces()])
    return GapTable(
        start_ns=start,
        end_ns=end,
        device=np.array(view.devices, dtype=np.int32).repeat([len(part[0]) for part in parts]),
        cause=cause,
        step_id=np.concatenate([np.zeros(0, np.int32), *(_step_at(steps, part[0]) for part in parts)]),
        blame_id=blame,
    )


def _joined(parts: list[tuple[I64, I64, U8, I32]]) -> tuple[I64, I64, U8, I32]:
    start, end, cause, blame = zip(*parts, strict=True)
    return np.concatenate(start), np.concatenate(end), np.concatenate(cause), np.concatenate(blame)


def _no_pieces() -> tuple[I64, I64, U8, I32]:
    return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint8), np.zeros(0, np.int32)


def held_up_lead(view: View, times: DeviceTimes, gaps: GapTable) -> dict[int, Spans]:
    """Per device: idle time before its first recorded work, in which that work was launched already.

    What a device does before its first record is not known to be nothing: work launched before the recording began
    leaves no record.
    """
    result = {}
    for dev, rows in rows_of_devices(gaps, view.devices).items():
        early = int(gaps.end_ns[rows].searchsorted(times.busy[dev].start[:1].sum(), side="right"))
        start, end, cause = gaps.start_ns[rows][:early], gaps.end_ns[rows][:early], gaps.cause[rows][:early]
        mine = cause == int(GapCause.QUEUED)
        result[dev] = union(start[mine], end[mine])
    return result


def rows_of_devices(gaps: GapTable, devices: Sequence[int]) -> dict[int, slice]:
    """Rows of each device's gaps: they follow each other in the table, in time order."""
    wanted = np.array(devices, gaps.device.dtype)
    low, high = (gaps.device.searchsorted(wanted, side).tolist() for side in ("left", "right"))
    return {dev: slice(a, b) for dev, a, b in zip(devices, low, high, strict=True)}


def spans_by_cause(gaps: GapTable, devices: Sequence[int]) -> dict[int, dict[int, Spans]]:
    """Gaps of each device by cause. Neighbours may touch each other, which `core.intervals.coverage` allows."""
    result: dict[int, dict[int, Spans]] = {}
    for dev, rows in rows_of_devices(gaps, devices).items():
        start, end, cause = gaps.start_ns[rows], gaps.end_ns[rows], gaps.cause[rows]
        own = result[dev] = {}
        for one in np.bincount(cause).nonzero()[0].tolist():
            here = (cause == one).nonzero()[0]
            own[one] = Spans(start[here], end[here])
    return result


def _split_at(start: I64, end: I64, cause: U8, blame: I32, borders: I64) -> tuple[I64, I64, U8, I32]:
    """Cut gaps (in time order; they may touch each other) at borders (ascending)."""
    at = start.searchsorted(borders) - 1  # the last one that begins before; few are cut
    hit = (at >= 0).nonzero()[0]
    hit = hit[borders[hit] < end[at[hit]]]
    if not len(hit):
        return start, end, cause, blame
    at, where = at[hit], borders[hit]
    place = at + np.arange(1, len(at) + 1)
    kept = np.ones(len(start) + len(at), dtype=bool)
    kept[place] = False
    left, source, why = np.empty(len(kept), np.int64), np.empty(len(kept), np.int32), np.empty(len(kept), np.uint8)
    left[kept], source[kept], why[kept] = start, blame, cause
    left[place], source[place], why[place] = where, blame[at], cause[at]
    kept[place], kept[place - 1] = True, False  # what is cut ends at the border, its last piece where it ended
    right = np.empty(len(kept), np.int64)
    right[kept], right[place - 1] = end, where
    return left, right, why, source


def _step_at(steps: StepTable, time_ns: I64) -> I32:
    """Step around each instant, of those that begin before it the latest; -1 for none. Instants ascend."""
    if not len(steps):
        return np.full(len(time_ns), -1, dtype=np.int32)
    order = steps.start_ns.argsort(kind="stable").astype(np.int32)
    first = time_ns.searchsorted(steps.start_ns[order])
    following = np.append(first[1:], len(time_ns))
    last = np.minimum(np.maximum(time_ns.searchsorted(steps.end_ns[order]), first), following)
    step, count = np.full((2, len(order) + 1), -1), np.zeros((2, len(order) + 1), dtype=np.int64)
    step[0, 1:], count[0, 1:] = order, last - first
    count[1, 0], count[1, 1:] = first[0], following - last
    return step.T.ravel().astype(np.int32).repeat(count.T.ravel())


def _gaps_of(
    view: View, times: DeviceTimes, dev: int, window: Spans, syncs: SyncTable, threads: _Threads
) -> tuple[I64, I64, U8, I32]:
    """Idle pieces of one device in time order: start, end, cause, blamed slice."""
    idle = subtract(window, times.busy[dev])
    pieces = _Pieces([], [], [], [])
    for thread, waiting, queued in _by_launching_thread(view, dev, idle):
        left = waiting
        for layer in threads.layers(thread):
            if not len(left):
                break
            hit, left = divide(left, layer.spans)
            if len(hit):
                pieces.add(hit, layer.cause, _slice_at(view, layer.ids, hit))
        pieces.add(left, GapCause.UNKNOWN, -1)
        short = queued.dur_ns <= _DEVICE_LAUNCH_NS
        for rows, why in ((short.nonzero()[0], GapCause.LAUNCH), ((~short).nonzero()[0], GapCause.QUEUED)):
            pieces.add(Spans(queued.start[rows], queued.end[rows]), why, -1)
    if not pieces.start:
        return _no_pieces()
    order = np.concatenate(pieces.start).argsort(kind="stable").astype(np.int32)
    start, end = np.concatenate(pieces.start)[order], np.concatenate(pieces.end)[order]
    cause, blame = np.concatenate(pieces.cause)[order], np.concatenate(pieces.blame)[order]
    del pieces  # as long as all that follow
    return charge_waits(times.busy[dev], dev, syncs, start, end, cause, blame)


def _by_launching_thread(view: View, dev: int, idle: Spans) -> list[tuple[int, Spans, Spans]]:
    """Share the idle spans out among the threads that launched the work ending each.

    Returns for each thread the part before the launch ("not launched yet") and the part after it ("queued").
    """
    if not len(idle):
        return []
    trace = view.trace
    work = view.work[view.device[view.work] == dev]
    starts = trace.slices.start_ns[work]
    order = starts.argsort(kind="stable")
    at = starts[order].searchsorted(idle.end, side="left")
    following = np.where(at < len(work), work[order[np.minimum(at, len(work) - 1)]], -1)
    launch = np.where(following >= 0, trace.links.launch_of[following], -1)
    thread = np.where(launch >= 0, view.thread[launch], -1)
    main = _main_thread(view, dev)
    thread = np.where(thread >= 0, thread, main)
    # The launching call itself is launch cost: it belongs to the part before.
    launched = np.where(launch >= 0, trace.end_ns[launch], idle.end)
    border = np.minimum(np.maximum(launched, idle.start), idle.end)
    result = []
    early, late = idle.start < border, border < idle.end
    for one in sets.distinct(thread):
        mine = thread == one
        before, after = (mine & early).nonzero()[0], (mine & late).nonzero()[0]
        result.append((int(one), Spans(idle.start[before], border[before]), Spans(border[after], idle.end[after])))
    return result


def _main_thread(view: View, dev: int) -> int:
    """The thread that launches most of a device's work, else the first that runs steps; -1 for none."""
    links = view.trace.links
    mine = view.thread[links.launched_by[view.device[links.launched] == dev]]
    if len(mine):
        return int(np.bincount(mine[mine >= 0]).argmax()) if (mine >= 0).any() else -1
    main = view.trace.threads.main.nonzero()[0]
    return int(main[0]) if len(main) else -1


class _Threads:
    """What threads were doing, worked out once for all devices."""

    def __init__(self, view: View, syncs: SyncTable) -> None:
        self._view = view
        self._syncs = syncs
        self._known: dict[int, list[_Layer]] = {}

    def layers(self, thread: int) -> list[_Layer]:
        """Activities of the launching thread in falling priority, then those of the thread that runs the steps.

        Within one thread the innermost activity tells most: a pause of the collector or a compilation inside the
        loader is just that; the loader's own operators are the loader.
        """
        threads = self._view.trace.threads
        result = list(self._of(thread))
        for main in threads.main.nonzero()[0].tolist():
            same = threads.process_id[main] == threads.process_id[thread] if thread >= 0 else True
            if main != thread and same:
                result += self._of(main)
        return result

    def _of(self, thread: int) -> list[_Layer]:
        if thread not in self._known:
            self._known[thread] = _layers_of(self._view, thread, self._syncs)
        return self._known[thread]


def _layers_of(view: View, thread: int, syncs: SyncTable) -> list[_Layer]:
    if thread < 0:
        return []
    own = _thread_slices(view, thread)
    kind = view.trace.slices.kind[own]
    names = view.names
    host = own.compress(of_kinds(kind, (SliceKind.CPU_OP, SliceKind.RANGE)))
    calls = own.compress(of_kinds(kind, HOST_CALLS))
    ops = own.compress(kind == int(SliceKind.CPU_OP))
    frames = own.compress(kind == int(SliceKind.PYTHON))
    mine = syncs.thread_id == thread
    sync_kind, sync_ids = syncs.kind[mine], syncs.slice_id[mine]
    waiting = view.named(host, names.waiting_collective)
    slow = calls[view.trace.slices.dur_ns[calls] >= _SLOW_CALL_NS]
    loader = np.concatenate((view.named(host, names.loader), view.named(frames, names.loader_frame)))
    steps = own.compress(of_kinds(kind, (SliceKind.STEP, SliceKind.RANGE)))
    ordered: list[tuple[GapCause, I32]] = [
        (GapCause.COLLECTOR, own[kind == int(SliceKind.GC)]),
        (GapCause.COMPILE, view.named(own, names.compile)),
        (GapCause.ALLOC, sync_ids[sync_kind == int(SyncKind.ALLOC)]),
        (GapCause.COPY, sync_ids[sync_kind == int(SyncKind.MEMCPY)]),
        (GapCause.SYNC, sync_ids[(sync_kind != int(SyncKind.ALLOC)) & (sync_kind != int(SyncKind.MEMCPY))]),
        (GapCause.COMPILE, slow),
        (GapCause.LOADER, loader),
        (GapCause.LAUNCH, calls),
        (GapCause.COMMUNICATION, waiting),
        (GapCause.LAUNCH, ops),
        (GapCause.PYTHON, frames),
        (GapCause.PYTHON, steps),
    ]
    start, end = view.trace.slices.start_ns, view.trace.end_ns
    if not (len(calls) or len(ops) or len(frames)):
        # A step or a range alone says nothing of what went on in it: what Python calls was not recorded either.
        ordered = [(cause, ids) for cause, ids in ordered if cause != GapCause.PYTHON]
    layers = [
        _Layer(cause, _united(start, end, view.outermost(ids) if ids is ops or ids is frames else ids), ids)
        for cause, ids in ordered
        if len(ids)
    ]
    if len(calls) or len(ops) or len(frames):
        # Where calls alone were recorded, an operator around them is as likely as Python between them.
        between = GapCause.PYTHON if len(ops) or len(frames) else GapCause.LAUNCH
        layers.append(_Layer(between, _united(start, end, own.compress(~view.within_kind[own]), _HOLE_NS), own))
    return layers


def _united(start_ns: I64, end_ns: I64, ids: I32, longer_ns: int = 0) -> Spans:
    """Union of slices, each made longer: a part at a time, as a thread's own may be nearly all of a large trace."""
    parts = (ids[at : at + _PART] for at in range(0, len(ids), _PART))
    return union_all([union(start_ns[part], end_ns[part] + longer_ns) for part in parts])


def _thread_slices(view: View, thread: int) -> I32:
    """All countable slices of one thread, over its tracks."""
    tracks = view.trace.tracks
    parts = [
        np.arange(tracks.first_id[t], tracks.end_id[t], dtype=np.int32)
        for t in (tracks.thread_id == thread).nonzero()[0]
    ]
    own: I32 = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    return own.compress(view.valid[own])


def _slice_at(view: View, ids: I32, pieces: Spans) -> I32:
    """The innermost slice around each whole piece, or the outermost around its beginning where none is that long."""
    start, end, parent = view.trace.slices.start_ns, view.trace.end_ns, view.trace.slices.parent_id
    begin, order = start[ids], None
    if np.count_nonzero(begin[1:] < begin[:-1]):
        order = begin.argsort(kind="stable")
        begin = begin[order]
    at = begin.searchsorted(pieces.start, side="right") - 1
    np.maximum(at, 0, out=at)
    found = ids[at if order is None else order[at]].astype(np.int32)
    todo = np.arange(len(found))
    while len(todo):
        todo = todo.compress(end[found[todo]] < pieces.end[todo])
        above = parent[found[todo]]
        todo, above = todo.compress(above >= 0), above.compress(above >= 0)
        found[todo] = above
    return found


def charge_waits(
    busy: Spans, dev: int, syncs: SyncTable, start: I64, end: I64, cause: U8, blame: I32
) -> tuple[I64, I64, U8, I32]:
    """Recharge launch and Python idle after waits to those waits, as far as they are long.

    While the CPU waits for a busy device it launches nothing; had it not waited, all that it did later would have
    come that much earlier. So each wait is a credit of as much time as the device worked during it, and idle time
    that launching or Python explains is charged to SYNC as long as there is credit. The device idles *during* a wait
    are charged already.
    """
    mine = (syncs.wait_ns > 0) & ((syncs.device == -1) | (syncs.device == dev))
    wait_end = syncs.wait_start_ns[mine] + syncs.wait_ns[mine]
    credit = coverage(busy, syncs.wait_start_ns[mine], wait_end)
    if not np.count_nonzero(credit):
        return start, end, cause, blame
    usable = of_kinds(cause, (GapCause.LAUNCH, GapCause.PYTHON, GapCause.UNKNOWN, GapCause.QUEUED))
    spent, payer = spend(wait_end, credit, start[usable], end[usable] - start[usable])
    taken = np.zeros(len(start), dtype=np.int64)
    taken[usable] = spent
    paid_by = np.full(len(start), -1, dtype=np.int64)
    paid_by[usable] = payer
    border = start + taken
    first, second = taken > 0, border < end
    new_start = np.concatenate((start[first], border[second]))
    new_end = np.concatenate((border[first], end[second]))
    new_cause = np.concatenate((np.full(int(first.sum()), GapCause.SYNC, dtype=cause.dtype), cause[second]))
    payers = syncs.slice_id[mine][np.maximum(paid_by[first], 0)]
    new_blame = np.concatenate((payers, blame[second])).astype(np.int32)
    order = new_start.argsort(kind="stable")
    return new_start[order], new_end[order], new_cause[order], new_blame[order]


def spend(credit_at: I64, credit: I64, use_at: I64, use: I64) -> tuple[I64, I64]:
    """Token bucket: credits arrive at instants, uses consume what is there.

    Parameters
    ----------
    credit_at, credit
        int64[n], ns: when each credit arrives (ascending order not needed) and how much it is.
    use_at, use
        int64[m], ns, ascending: when each use begins and how much it could take.

    Returns
    -------
    int64[m] what each use took, and int64[m] the index of the last credit before it (-1 for none).
    """
    order = credit_at.argsort(kind="stable")
    times = np.concatenate((credit_at[order], use_at))
    change = np.concatenate((credit[order], -use))
    is_use = np.concatenate((np.zeros(len(credit), bool), np.ones(len(use), bool)))
    rank = np.lexsort((is_use, times))
    level = change[rank].cumsum()
    # Lindley's recursion in closed form: the level after each event, held at zero from below.
    floor = np.minimum(np.minimum.accumulate(level), 0)
    after = level - floor
    before = np.concatenate(([0], after[:-1]))
    took = np.where(is_use[rank], before - after, 0)
    seen = np.maximum.accumulate(np.where(is_use[rank], -1, rank))
    spent = np.zeros(len(use), dtype=np.int64)
    payer = np.full(len(use), -1, dtype=np.int64)
    at = rank[is_use[rank]] - len(credit)
    spent[at] = took[is_use[rank]]
    last = seen[is_use[rank]]
    payer[at] = np.where(last >= 0, order[np.maximum(last, 0)] if len(order) else -1, -1)
    return spent, payer
