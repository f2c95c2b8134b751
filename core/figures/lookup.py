"""Questions about the nesting of slices, answered for many slices at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from core import memory, sets
from core.figures.names import NameClasses, classify
from core.kinds import HOST_CALLS, SliceKind, TrackKind
from core.tables import FLAG_COMMUNICATION, FLAG_CROSSING, FLAG_NO_DURATION, FLAG_UNFINISHED, I32, I64, U8, Bool, Whole
from core.trace import Trace

NEVER = np.iinfo(np.int64).max
RENUMBERED = 1000  # added to the indices of devices for each file before theirs, where files use the same ones
_COUNTED_BELOW = 1 << 20
_FEW = 64  # so many are looked at one by one in less time than numpy takes to begin
_PART = 1 << 16  # rows looked at at a time
_ZERO = np.zeros(1, dtype=np.int32)
_ZERO.setflags(write=False)


class OfTrack:
    """A column of numbers that each slice has of its track: looked up for the slices asked for, never held for all."""

    def __init__(self, track_id: Whole, values: I32) -> None:
        self._track_id, self._values = track_id, values

    def __getitem__(self, rows: Any) -> Any:
        """Return the numbers of some slices (rows, a mask, a slice, or a single row)."""
        return self._values[self._track_id[rows]]


@dataclass(frozen=True, eq=False)
class View:
    """A trace with the masks and columns that most figures need, each worked out once on first use."""

    trace: Trace

    @cached_property
    def names(self) -> NameClasses:
        """Classes of the distinct names."""
        return classify(self.trace.strings)

    @cached_property
    def valid(self) -> Bool:
        """bool[n_slices]: has a duration that may be counted."""
        flags = self.trace.slices.flags
        return np.asarray((flags & (FLAG_NO_DURATION | FLAG_UNFINISHED)) == 0)

    @cached_property
    def thread(self) -> OfTrack:
        """int32[n_slices]: row of the thread table, -1 for device tracks."""
        return OfTrack(self.trace.slices.track_id, self.trace.tracks.thread_id)

    @cached_property
    def device_of_track(self) -> I32:
        """int32[n_tracks]: device index, -1 for CPU tracks.

        Where ranks of one trace use the same index for devices of their own, that of a later file is raised by a
        thousand (`RENUMBERED`) for each file before it.
        """
        tracks = self.trace.tracks
        if len(self.trace.sources) < 2:
            return tracks.device
        source = self.trace.processes.source_id[tracks.process_id]
        used = np.unique(np.stack((source, tracks.device))[:, tracks.device >= 0], axis=1)
        if len(np.unique(used[1])) == used.shape[1]:
            return tracks.device
        return np.where(tracks.device >= 0, tracks.device + RENUMBERED * source, -1).astype(np.int32)

    @cached_property
    def device(self) -> OfTrack:
        """int32[n_slices]: device (see `device_of_track`) of the slice's track, -1 for CPU tracks."""
        return OfTrack(self.trace.slices.track_id, self.device_of_track)

    def devices_of_source(self, source: int) -> tuple[int, ...]:
        """Devices with work that one file recorded."""
        if len(self.trace.sources) < 2:
            return self.devices
        return self._devices_of_sources.get(source, ())

    @cached_property
    def _devices_of_sources(self) -> dict[int, tuple[int, ...]]:
        """Devices with work by file: looked up once for all, as there may be hundreds of either."""
        source = self.trace.processes.source_id[self.trace.tracks.process_id]
        working, found = set(self.devices), dict[int, set[int]]()
        for one, device in zip(source.tolist(), self.device_of_track.tolist(), strict=True):
            if device in working:
                found.setdefault(one, set()).add(device)
        return {one: tuple(sorted(held)) for one, held in found.items()}

    @cached_property
    def source(self) -> I32:
        """int32[n_slices]: file the slice came from."""
        if len(self.trace.sources) < 2:
            return np.ndarray((len(self.trace.slices),), np.int32, _ZERO, strides=(0,))  # held once
        tracks = self.trace.tracks
        return self.trace.processes.source_id[tracks.process_id][self.trace.slices.track_id]

    @cached_property
    def work(self) -> I32:
        """int32[k]: device work with a countable duration, in table order."""
        ids = self.trace.device_ids
        keep = self.valid[ids]
        return ids if np.count_nonzero(keep) == len(ids) else ids.compress(keep)

    @cached_property
    def host_calls(self) -> I32:
        """int32[k]: runtime and driver calls."""
        return of_kinds(self.trace.slices.kind, HOST_CALLS).nonzero()[0].astype(np.int32)

    @cached_property
    def launches(self) -> I32:
        """int32[k]: host calls that by their name launch device work, whether it is in the trace or not."""
        return self.named(self.host_calls, self.names.launch)

    @cached_property
    def saw_calls(self) -> bool:
        """Whether calls of a known runtime or driver were recorded. Else nobody knows what the CPU waited for."""
        return bool(len(self.named(self.host_calls, self.names.call)))

    @cached_property
    def devices(self) -> tuple[int, ...]:
        """Device indexes with work, ascending."""
        return tuple(distinct(self.device[self.work]))

    @cached_property
    def _by_kind(self) -> dict[tuple[SliceKind, ...], I32]:
        return {}

    def by_kind(self, *kinds: SliceKind) -> I32:
        """Slices of these kinds with a countable duration: int32[k], in table order."""
        found = self._by_kind.get(kinds)
        if found is None:
            hit = of_kinds(self.trace.slices.kind, kinds) & self.valid
            found = self._by_kind[kinds] = hit.nonzero()[0].astype(np.int32)
            found.setflags(write=False)
        return found

    @cached_property
    def within_kind(self) -> Bool:
        """bool[n_slices]: lies in its parent, which is of the same kind and counts: a union of a kind needs it not."""
        slices, end = self.trace.slices, self.trace.end_ns
        inside = np.zeros(len(slices), dtype=bool)
        for first in range(0, len(slices), _PART):
            rows = slice(first, first + _PART)
            above = slices.parent_id[rows]
            np.equal(slices.kind[above], slices.kind[rows], out=inside[rows])
            inside[rows] &= (above >= 0) & (end[rows] <= end[above]) & self.valid[above]
        return inside

    @cached_property
    def is_neat(self) -> bool:
        """Whether all slices nest: each ends by its parent's end, and what is open at its start are those above it."""
        slices, end, count = self.trace.slices, self.trace.end_ns, len(self.trace.slices)
        if (slices.flags & (FLAG_NO_DURATION | FLAG_UNFINISHED | FLAG_CROSSING)).any():
            return False
        for first in range(0, count, _PART):
            rows = slice(first, first + _PART)
            above, depth = slices.parent_id[rows], slices.depth[rows]
            nested, until = above >= 0, end[above]
            bad = (end[rows] > until) | (slices.start_ns[rows] >= until) | (depth - 1 != slices.depth[above])
            if bad[nested].any() or depth[~nested].any():
                return False
        # All above a slice are open at its start. Siblings, too, if they overlap by rounding: then the sums differ.
        still_open = int(slices.subtree_end.sum(dtype=np.int64)) - count * (count + 1) // 2
        return still_open == int(slices.depth.sum(dtype=np.int64))

    def outermost(self, ids: I32) -> I32:
        """Those of ``ids`` (all slices of one kind that count, of any threads) whose union is that of them all."""
        return ids.compress(~self.within_kind[ids]) if len(ids) >= _PART else ids

    @cached_property
    def idle_launches(self) -> tuple[I32, I32]:
        """Launches without device work in the trace: those captured into a graph, which run nothing; and the lost ones.

        A launch is captured where its thread has begun the capture of a stream and not ended it. The file may begin
        within a capture: then the part before its end is one.
        """
        launches, launched = self.launches, np.zeros(len(self.trace.slices), dtype=bool)
        launched[self.trace.links.launched_by] = True
        idle = launches.compress(~launched[launches])
        begins = self.named(self.host_calls, self.names.capture_begin)
        ends = self.named(self.host_calls, self.names.capture_end)
        if not len(idle) or not (len(begins) or len(ends)):
            return idle[:0], idle
        start, thread = self.trace.slices.start_ns, self.thread
        captured = np.zeros(len(idle), dtype=bool)
        for one in sets.distinct(thread[np.concatenate((begins, ends))]):
            mine = thread[idle] == one
            begun, ended = np.sort(start[begins[thread[begins] == one]]), np.sort(start[ends[thread[ends] == one]])
            depth = begun.searchsorted(start[idle[mine]]) - ended.searchsorted(start[idle[mine]])
            before = int(len(ended) > 0 and (not len(begun) or ended[0] < begun[0]))
            captured[mine] = depth + before > 0
        return idle[captured], idle[~captured]

    def let_go(self) -> None:
        """Forget what is long and quickly worked out again: the next stage needs the memory, and little of it."""
        for name in ("valid", "work", "host_calls", "launches", "_by_kind", "within_kind"):
            self.__dict__.pop(name, None)
        memory.give_back_between(len(self.trace.slices))

    def named(self, ids: I32, classes: Bool) -> I32:
        """Those of ``ids`` whose name is in a class."""
        if not len(ids) or not np.count_nonzero(classes):
            return ids[:0]
        name = self.trace.slices.name_id[ids]
        return ids.compress(classes[name] & (name >= 0))  # not by a mask: that takes four times as long

    def are_collectives(self, ids: I32) -> Bool:
        """bool[len(ids)]: which slices are kernels of a collective."""
        slices = self.trace.slices
        return np.asarray((slices.kind[ids] == int(SliceKind.KERNEL)) & ((slices.flags[ids] & FLAG_COMMUNICATION) != 0))


_views: WeakValueDictionary[int, View] = WeakValueDictionary()


def view_of(trace: Trace) -> View:
    """Return the view of a trace that somebody holds already, else a new one.

    Nothing is kept for later: whoever wants columns to be shared between stages holds the view meanwhile.
    """
    view = _views.get(id(trace))
    if view is None or view.trace is not trace:
        view = _views[id(trace)] = View(trace)
    return view


def of_kinds(kind: U8 | I64, kinds: Sequence[int]) -> Bool:
    """Tell for each kind (of a slice, a copy, a cause: below 256) whether it is one of some: `np.isin` for a few."""
    result: Bool = kind == int(kinds[0])
    for one in kinds[1:]:
        result |= kind == int(one)
    return result


def distinct(values: Whole) -> list[int]:
    """Distinct numbers of an array of row numbers, ascending, -1 (none) left out: `np.unique` without its sorting."""
    if len(values) <= _FEW:
        return sorted(value for value in set(values.tolist()) if value >= 0)
    if int(values.max()) > _COUNTED_BELOW:  # numbers of a file's own, such as devices, may be any
        return [i for i in np.unique(values).tolist() if i >= 0]
    found: list[int] = rows_among(values).tolist()
    return found


def rows_among(rows: Whole) -> I64:
    """Distinct row numbers of an array, ascending, -1 (none) left out: int64[k]; for as many rows as slices, too."""
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    there = np.zeros(max(int(rows.max()), -1) + 2, dtype=bool)  # the last one stands for -1
    there[rows] = True
    return there[:-1].nonzero()[0]


def innermost(trace: Trace, track_id: I32, time_ns: I64, kinds: tuple[SliceKind, ...]) -> I32:
    """Innermost slice of given kinds around an instant.

    Parameters
    ----------
    track_id
        int32[k], the track to look in; -1 gives -1.
    time_ns
        int64[k], ns.
    kinds
        Kinds that count; slices of other kinds are looked through.

    Returns
    -------
    int32[k]: slice ids, -1 where there is none.
    """
    slices, tracks = trace.slices, trace.tracks
    found = np.full(len(track_id), -1, dtype=np.int32)
    for track in distinct(track_id):
        first, last = int(tracks.first_id[track]), int(tracks.end_id[track])
        here = (track_id == track).nonzero()[0]
        found[here] = first - 1 + slices.start_ns[first:last].searchsorted(time_ns[here], side="right")
        found[here[found[here] < first]] = -1
    todo = (found >= 0).nonzero()[0]
    while len(todo):
        at = found[todo]
        todo = todo.compress((trace.end_ns[at] <= time_ns[todo]) | ~of_kinds(slices.kind[at], kinds))
        at = slices.parent_id[found[todo]]
        found[todo] = at
        todo = todo.compress(at >= 0)
    return found


def thread_tracks(trace: Trace, kind: TrackKind) -> I32:
    """int32[n_threads + 1]: track of that kind of each thread, -1 for none (and at the end, for thread -1)."""
    result = np.full(len(trace.threads) + 1, -1, dtype=np.int32)
    hit = ((trace.tracks.kind == kind) & (trace.tracks.thread_id >= 0)).nonzero()[0]
    result[trace.tracks.thread_id[hit]] = hit
    return result


def outermost_op(trace: Trace, ids: I32) -> I32:
    """Outermost CPU_OP slice above each slice on its own track, -1 for none: int32[k]."""
    slices = trace.slices
    best = np.full(len(ids), -1, dtype=np.int32)
    at = slices.parent_id[ids].copy()
    todo = (at >= 0).nonzero()[0]
    while len(todo):
        here = at[todo]
        is_op = slices.kind[here] == int(SliceKind.CPU_OP)
        best[todo[is_op]] = here[is_op]
        at[todo] = slices.parent_id[here]
        todo = todo[at[todo] >= 0]
    return best


def launch_start(trace: Trace, work: I32) -> I64:
    """Start of the call that launched each device slice, -1 where it is not in the trace: int64[k], ns."""
    launch = trace.links.launch_of[work]
    start: I64 = np.where(launch >= 0, trace.slices.start_ns[launch], -1)
    return start
