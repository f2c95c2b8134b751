"""From the columns of one file to the frozen tables of a trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from core import sets
from core.importing.aside import Alongside
from core.importing.columns import NO_DURATION, EventColumns, Interner, SliceColumns, empty
from core.importing.header import read_header
from core.importing.kineto import UNNUMBERED_STEP, facts_of_names, step_number
from core.importing.links import Launches, launches_of, make_links
from core.importing.notes import make_report
from core.importing.pairing import pair
from core.importing.stack import nest
from core.importing.tracks import Places, kinds_of, place
from core.kinds import SliceKind, TrackKind
from core.strings import StringTable
from core.tables import (
    FLAG_COMMUNICATION,
    FLAG_CROSSING,
    FLAG_NO_DURATION,
    FLAG_UNFINISHED,
    I32,
    I64,
    U8,
    Bool,
    Counter,
    InstantTable,
    MemoryTable,
    ProcessTable,
    SliceTable,
    StepTable,
    ThreadTable,
    TrackTable,
)
from core.trace import EventReader, Trace, TraceSource
from core.words import visible

Tick = Callable[[], None]
_WATCHER = "<steplens>/guard("  # how its frames are named, see `profiling._child_guard`
_NUMBERS = ("correlation", "external", "copy_bytes", "start", "length")  # held as small as their numbers allow
_SIZED = np.isin(np.arange(256), (SliceKind.MEMCPY, SliceKind.MEMSET))
_MANY = 1 << 16  # slices: a column of fewer is sorted before a thread has started
MAX_COUNTERS = 10_000  # each is a curve of its own; nobody looks at more


def assemble(
    columns: EventColumns,
    header: Mapping[str, Any],
    source: TraceSource,
    reader: EventReader,
    tick: Tick = lambda: None,
) -> Trace:
    """Build the tables of one file.

    Parameters
    ----------
    columns
        What decoding yielded; it is used up (its columns are let go on the way to spare memory).
    header
        Top-level keys beside the events.
    tick
        Called between stages; may raise `core.errors.Cancelled`.
    """
    paired = pair(columns, tick)
    slices, unfinished = paired.slices, paired.unfinished
    columns.slices = empty(SliceColumns)
    tick()
    by_time = _by_time(slices)
    kinds = kinds_of(columns, slices)
    if (kept := _without_watcher(columns, slices, kinds)) is not None:
        slices, kinds, unfinished = slices.rows(kept), kinds[kept], unfinished[kept]
        by_time = _by_time(slices)
    tick()
    _note_unnumbered_steps(columns, slices, kinds)
    tick()
    places = place(columns, slices, kinds, by_time.result(), tick)
    tick()
    origin_ns = int(slices.time_ns.min()) if len(slices) else _first_instant(columns)
    order = sort_order(slices, kinds, places.track_of, by_time.result(), tick)
    tick()
    names = _Names(columns, places)
    table, tracks, launches = _slice_table(columns, slices, kinds, unfinished, places, order, origin_ns, names, tick)
    tick()
    links = make_links(columns, table, tracks, places, launches, origin_ns, tick)
    tick()
    facts = read_header(header, columns)
    instants = _instants(columns, places, names, origin_ns)
    counters = _counters(columns, places, origin_ns)
    tick()
    return Trace(
        sources=(source,),
        strings=StringTable(names.final),
        slices=table,
        tracks=tracks,
        threads=_threads(places, names),
        processes=_processes(places, names, facts.meta.rank),
        steps=_steps(table, tracks, names.final),
        links=links,
        memory=_memory(columns, places, origin_ns),
        instants=instants,
        counters=counters,
        meta=replace(facts.meta, origin_ns=origin_ns + facts.base_ns),
        report=make_report(columns),
        reader=reader,
    )


def _by_time(slices: SliceColumns) -> Alongside[I64]:
    """Row numbers by start, equal ones as they come; sorted while other things are done."""
    return Alongside(partial(np.argsort, slices.time_ns, kind="stable"), worthwhile=len(slices) > _MANY)


def _without_watcher(columns: EventColumns, slices: SliceColumns, kinds: U8) -> Bool | None:
    """bool[n]: what is not the thread with which StepLens watches a script that it runs; None where there is no such.

    That thread is in the script's process, so the profiler records its frames among the script's own.
    """
    loops = [i for i, name in enumerate(columns.strings) if name.startswith(_WATCHER) and name.endswith(": _loop")]
    if not loops:
        return None
    frames = kinds == SliceKind.PYTHON
    thread = slices.pid.astype(np.int64) * (len(columns.strings) + 1) + slices.tid
    ours: Bool = frames & np.isin(thread, np.unique(thread[frames & np.isin(slices.name, loops)]))
    if not ours.any():
        return None
    columns.note("profiler-span", columns.strings[loops[0]], int(ours.sum()))
    return ~ours


def sort_order(slices: SliceColumns, kinds: U8, track_of: I32, by_time: I64, tick: Tick = lambda: None) -> I64:
    """Row numbers in table order: by track, start, longest first; equal ones by kind and by the frames' ids.

    ``by_time`` are the row numbers by start alone, equal ones as they come.
    """
    track = track_of[by_time].astype(np.uint16)  # there are at most MAX_TRACKS
    order = by_time[np.argsort(track, kind="stable")]
    tick()
    time, place_of = slices.time_ns[order], track_of[order]
    same = (time[1:] == time[:-1]) & (place_of[1:] == place_of[:-1])
    if not same.any():
        return order
    tied = np.concatenate((same, [False])) | np.concatenate(([False], same))
    at = np.flatnonzero(tied)
    rows = order[at]
    group = np.cumsum(np.concatenate(([True], ~same)))[at]
    rank = np.array([2, 1, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 1, 0], np.int8)[kinds[rows]]
    ids = np.where(kinds[rows] == SliceKind.PYTHON, slices.order[rows], slices.external[rows]).astype(np.int64)
    ids = np.where(ids < 0, np.iinfo(np.int64).max, ids)
    order[at] = rows[np.lexsort((rows, ids, rank, -slices.dur_ns[rows], group))]
    return order


class _Taken:
    """Columns of the slices in table order, one after another."""

    def __init__(self, slices: SliceColumns, order: I64, names: _Names, tick: Tick) -> None:
        self._slices, self._order, self._names, self._tick = slices, order, names, tick

    def take(self, name: str) -> Any:
        """One column; the original is let go, so that there are never two whole sets of columns."""
        self._tick()
        column = getattr(self._slices, name)[self._order]
        setattr(self._slices, name, None)
        return sets.narrow(column, np.int16 if name == "length" else np.int32) if name in _NUMBERS else column

    def rest(self, kind: U8) -> tuple[dict[str, Any], tuple[U8, U8, Bool], Launches]:
        """Return all that needs no nesting: columns, facts of their names, launches."""
        taken = {name: self.take(name) for name in ("name", *_NUMBERS)}
        taken["name"] = self._names.translate(taken["name"])
        taken["copy_bytes"][~_SIZED[kind]] = -1
        facts = facts_of_names(self._names.final, taken["name"], kind)
        return taken, facts, launches_of(kind, taken["correlation"])


class _Names:
    """Final string table: only what the tables name, each as one line that shows what it holds (`visible`)."""

    def __init__(self, columns: EventColumns, places: Places) -> None:
        self._strings = columns.strings
        self._interner = Interner()
        self._local = np.full(len(columns.strings) + 1, -1, np.int32)
        self.of_places = self._interner.translate([visible(text) for text in places.strings.ids])

    @property
    def final(self) -> list[str]:
        return list(self._interner.ids)

    def translate(self, ids: I32) -> I32:
        """int32[n]: final ids of decoding's ids."""
        used = np.flatnonzero(np.bincount(ids[ids >= 0], minlength=1))
        fresh = used[self._local[used] < 0]
        intern, strings = self._interner, self._strings
        self._local[fresh] = np.array([intern(visible(strings[i])) for i in fresh.tolist()], dtype=np.int32)
        return np.asarray(self._local[ids])


def _slice_table(
    columns: EventColumns,
    slices: SliceColumns,
    kinds: U8,
    unfinished: Bool,
    places: Places,
    order: I64,
    origin_ns: int,
    names: _Names,
    tick: Tick,
) -> tuple[SliceTable, TrackTable, Launches]:
    n = len(order)

    taken = _Taken(slices, order, names, tick)
    track_id = places.track_of[order]
    start = taken.take("time_ns") - origin_ns
    dur = taken.take("dur_ns")
    open_end = unfinished[order]
    invalid = (dur == NO_DURATION) & ~open_end
    dur[dur == NO_DURATION] = 0
    if open_end.any():
        dur[open_end] = int((start + dur).max()) - start[open_end]
    bounds = np.searchsorted(track_id, np.arange(len(places.track_kind) + 1)).astype(np.int32)
    for unused in ("phase", "category", "pid", "tid", "device", "stream", "order", "async_id"):
        setattr(slices, unused, None)
    kind = kinds[order]
    rest = Alongside(partial(taken.rest, kind), worthwhile=n > _MANY)
    parent, depth, subtree, crossing = _nest_tracks(start, dur, bounds, places, tick)
    columns.note("crossing", count=int(crossing.sum()))
    columns_of, (direction, memory, communication), launches = rest.result()
    flags = (open_end * FLAG_UNFINISHED + crossing * FLAG_CROSSING + communication * FLAG_COMMUNICATION
             + invalid * FLAG_NO_DURATION).astype(np.uint8)  # fmt: skip
    table = SliceTable(
        start_ns=start,
        dur_ns=dur,
        name_id=columns_of["name"],
        kind=kind,
        track_id=sets.narrow(track_id, np.int16),
        depth=sets.narrow(depth, np.int16),
        parent_id=parent,
        subtree_end=subtree,
        correlation_id=columns_of["correlation"],
        external_id=columns_of["external"],
        copy_bytes=columns_of["copy_bytes"],
        direction=direction,
        host_memory=memory,
        flags=flags,
        event_start=columns_of["start"],
        event_bytes=columns_of["length"],
    )
    lanes = np.maximum.reduceat(depth, bounds[:-1]) + 1 if n else np.zeros(0, np.int32)
    return table, _track_table(places, bounds, np.asarray(lanes, np.int32), names), launches


def _nest_tracks(start: I64, dur: I64, bounds: I32, places: Places, tick: Tick) -> tuple[I32, I32, I32, Bool]:
    """Parent, depth, end of the subtree, and whether it crosses another, of each slice in table order."""
    n = len(start)
    parent, depth, subtree = (np.empty(n, np.int32) for _ in range(3))
    crossing = np.zeros(n, np.bool_)
    for track, track_kind in enumerate(places.track_kind):
        a, b = int(bounds[track]), int(bounds[track + 1])
        nested = nest(start[a:b], dur[a:b], track_kind == TrackKind.DEVICE_STREAM)
        parent[a:b] = np.where(nested.parent >= 0, nested.parent + a, -1)
        depth[a:b] = nested.depth
        subtree[a:b] = nested.subtree_end + a
        crossing[a:b] = nested.crossing
        tick()
    return parent, depth, subtree, crossing


def _note_unnumbered_steps(columns: EventColumns, slices: SliceColumns, kinds: U8) -> None:
    hits = [i for i, text in enumerate(columns.strings) if UNNUMBERED_STEP.match(text)]
    if hits:
        mine = np.isin(slices.name, hits) & np.isin(kinds, (SliceKind.RANGE, SliceKind.CPU_OP))
        columns.note("unnumbered-step", columns.strings[hits[0]], int(mine.sum()))


def _first_instant(columns: EventColumns) -> int:
    times = [g.time_ns.min() for g in (columns.memory, columns.instants, columns.counters) if len(g)]
    return int(min(times)) if times else 0


def _track_table(places: Places, bounds: I32, lanes: I32, names: _Names) -> TrackTable:
    return TrackTable(
        kind=np.array(places.track_kind, np.uint8),
        name_id=names.of_places[np.array(places.track_name, np.int64)],
        process_id=np.array(places.track_process, np.int32),
        thread_id=np.array(places.track_thread, np.int32),
        device=np.array(places.track_device, np.int32),
        stream=np.array(places.track_stream, np.int64),
        first_id=bounds[:-1].copy(),
        end_id=bounds[1:].copy(),
        lanes=lanes,
    )


def _threads(places: Places, names: _Names) -> ThreadTable:
    return ThreadTable(
        process_id=np.array(places.thread_process, np.int32),
        tid=tuple(places.thread_tid),
        name_id=names.of_places[np.array(places.thread_name, np.int64)],
        main=np.array(places.thread_main, np.bool_),
    )


def _processes(places: Places, names: _Names, rank: int | None) -> ProcessTable:
    n = len(places.process_pid)
    return ProcessTable(
        source_id=np.zeros(n, np.int32),
        pid=tuple(places.process_pid),
        name_id=names.of_places[np.array(places.process_name, np.int64)],
        rank=np.full(n, -1 if rank is None else rank, np.int32),
        device=np.array(places.process_device, np.int32),
    )


def _steps(slices: SliceTable, tracks: TrackTable, strings: list[str]) -> StepTable:
    steps = np.flatnonzero(slices.kind == SliceKind.STEP)
    rows = steps[np.argsort(slices.start_ns[steps], kind="stable")].astype(np.int32)
    numbers = [step_number(strings[i]) for i in slices.name_id[rows].tolist()]
    return StepTable(
        start_ns=slices.start_ns[rows],
        end_ns=slices.start_ns[rows] + slices.dur_ns[rows],
        number=np.array(numbers, np.int64),
        name_id=slices.name_id[rows],
        slice_id=rows,
        thread_id=tracks.thread_id[slices.track_id[rows]],
        inferred=np.zeros(len(rows), np.bool_),
    )


def _lookup(places: Places, pid: I32, tid: I32) -> I32:
    """int32[n]: thread of each (pid, tid), -1 when it has no slices."""
    if not len(pid):
        return np.empty(0, np.int32)
    keys, inverse = np.unique((pid.astype(np.int64) << 32) | tid, return_inverse=True)
    threads = [places.thread_of.get((key >> 32, key & 0xFFFFFFFF), -1) for key in keys.tolist()]
    return np.array(threads, np.int32)[inverse]


def _memory(columns: EventColumns, places: Places, origin_ns: int) -> MemoryTable:
    held = columns.memory.rows(np.argsort(columns.memory.time_ns, kind="stable"))
    return MemoryTable(
        time_ns=held.time_ns - origin_ns,
        device=np.where(held.device_type > 0, held.device, np.int32(-1)),
        address=held.address,
        bytes=held.bytes,
        allocated_bytes=held.allocated,
        reserved_bytes=held.reserved,
        thread_id=_lookup(places, held.pid, held.tid),
    )


def _process_ids(places: Places, pid: I32) -> I32:
    if not len(pid):
        return np.empty(0, np.int32)
    keys, inverse = np.unique(pid, return_inverse=True)
    of = places.process_of
    processes = [of.get((key, False), of.get((key, True), -1)) for key in keys.tolist()]
    return np.array(processes, np.int32)[inverse]


def _instants(columns: EventColumns, places: Places, names: _Names, origin_ns: int) -> InstantTable:
    held = columns.instants.rows(np.argsort(columns.instants.time_ns, kind="stable"))
    return InstantTable(
        time_ns=held.time_ns - origin_ns,
        name_id=names.translate(held.name),
        process_id=_process_ids(places, held.pid),
        thread_id=_lookup(places, held.pid, held.tid),
        event_start=held.start,
        event_bytes=held.length,
    )


def _counters(columns: EventColumns, places: Places, origin_ns: int) -> tuple[Counter, ...]:
    held = columns.counters
    if not len(held):
        return ()
    order = np.lexsort((held.time_ns, held.pid, held.name))
    held = held.rows(order)
    process = _process_ids(places, held.pid)
    first = np.flatnonzero(np.diff(held.name, prepend=-1).astype(bool) | np.diff(held.pid, prepend=-1).astype(bool))
    ends = np.append(first[1:], len(held))
    if len(first) > MAX_COUNTERS:
        columns.note("counter-left-out", columns.strings[int(held.name[first[-1]])], len(first) - MAX_COUNTERS)
    counters = []
    for a, b in zip(first[:MAX_COUNTERS].tolist(), ends[:MAX_COUNTERS].tolist(), strict=True):
        time, value = held.time_ns[a:b] - origin_ns, held.value[a:b].copy()
        time.setflags(write=False)
        value.setflags(write=False)
        counters.append(Counter(visible(columns.strings[held.name[a]]), int(process[a]), time, value))
    return tuple(counters)
