"""Lanes: one drawn row of slices each, as sorted columns that a binary search can answer from."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.source_frames import is_launcher_frame, is_user_frame
from core.tables import I32, I64, Bool
from core.trace import Trace

_OVERLAPPING = 4  # so many slices of a lane at most mostly hold one instant


class _Ends:
    """Where slices end: told by how much they cover, so that no column is needed for it."""

    start_ns: I64
    covered_ns: I64

    def ends(self, at: NDArray[np.integer[Any]]) -> I64:
        """int64[k], ns: ends of the slices at some positions."""
        ends: I64 = self.start_ns[at] + (self.covered_ns[at + 1] - self.covered_ns[at])
        return ends

    @property
    def end_ns(self) -> I64:
        """int64[n], ns: all ends (a new array)."""
        return self.start_ns + np.diff(self.covered_ns)


@dataclass(frozen=True, eq=False)
class Stack(_Ends):
    """Columns of several lanes, one lane after the other, so that one expression reads all of them."""

    ids: I32
    start_ns: I64
    covered_ns: I64  # a running sum of the durations, ns: int64[n + 1]


def _running_sum(start_ns: I64, end_ns: I64) -> I64:
    total = np.zeros(len(start_ns) + 1, np.int64)
    np.subtract(end_ns, start_ns, out=total[1:])
    return np.cumsum(total, out=total)


@dataclass(frozen=True, eq=False)
class Lane(_Ends):
    """Slices of one track at one depth, in time order.

    ``ids`` are slice ids, ``start_ns``/``end_ns`` their borders; ``start_ns`` is ascending and ``end_ns`` is made
    so: siblings may overlap by rounding (1 us at most), which a running maximum hides from the binary search.
    """

    ids: I32
    start_ns: I64
    covered_ns: I64  # int64[n + 1], ns: a running sum of the durations; that of any run is one subtraction
    stack: Stack | None = None  # columns that the lane's are a part of
    offset: int = 0  # where they begin there

    def __len__(self) -> int:
        return len(self.ids)

    def end(self, position: int) -> int:
        """End of one slice, ns; ``position`` counts from the first."""
        covered = self.covered_ns
        return int(self.start_ns[position]) + int(covered[position + 1]) - int(covered[position])

    def window(self, start_ns: float, end_ns: float) -> tuple[int, int]:
        """Positions ``[lo, hi)`` of the slices that touch ``[start_ns, end_ns)``. O(log n).

        The bounds become whole numbers first: numpy answers a float bound by copying the whole column to floats.
        """
        first = math.floor(start_ns)
        lo = self._first_after(first, int(np.searchsorted(self.start_ns, np.int64(first), "right")))
        hi = int(np.searchsorted(self.start_ns, np.int64(math.ceil(end_ns)), "left"))
        return lo, max(lo, hi)

    def _first_after(self, time_ns: int, begun: int) -> int:
        """Position of the first slice that ends after a time, before which ``begun`` have begun."""
        for position in range(begun - 1, max(begun - _OVERLAPPING, 0) - 1, -1):  # ends ascend
            if self.end(position) <= time_ns:
                return position + 1
        return bisect_right(range(max(begun - _OVERLAPPING, 0)), time_ns, key=self.end)

    def at(self, time_ns: float, slack_ns: float = 0.0) -> int:
        """Slice id at a time, else the nearest one within ``slack_ns``, else -1. O(log n)."""
        position = int(np.searchsorted(self.start_ns, np.int64(math.floor(time_ns)), "right")) - 1
        best, distance = -1, slack_ns
        for i in (position, position + 1):
            if not 0 <= i < len(self.ids):
                continue
            away = max(float(self.start_ns[i]) - time_ns, time_ns - float(self.end(i)), 0.0)
            if away <= distance:
                best, distance = i, away
        return int(self.ids[best]) if best >= 0 else -1

    def neighbour(self, slice_id: int, step: int) -> int:
        """Slice id ``step`` places after this one on the lane, -1 past its border or when it is not on the lane."""
        position = int(np.searchsorted(self.ids, np.int32(slice_id)))
        if position >= len(self.ids) or self.ids[position] != slice_id:
            return -1
        other = position + step
        return int(self.ids[other]) if 0 <= other < len(self.ids) else -1


def make_lane(ids: I32, start_ns: I64, end_ns: I64) -> Lane:
    """Build a lane from slices sorted by start, repairing the order of their ends."""
    if len(end_ns) > 1 and bool(np.any(end_ns[1:] < end_ns[:-1])):
        end_ns = np.maximum.accumulate(end_ns)
    return Lane(ids, start_ns, _running_sum(start_ns, end_ns))


def stacked(lanes: Sequence[Lane]) -> list[Lane]:
    """Return lanes with the same slices that are parts of one stack, one after the other. O(n) where they are not yet.

    Lanes of one track in the order of a `LaneIndex` are such already.
    """
    if len(lanes) == 1 or all(a.stack is not None and a.stack is b.stack and a.offset + len(a) <= b.offset
                              for a, b in pairwise(lanes)):  # fmt: skip
        return list(lanes)
    ids, start_ns, end_ns = (
        np.concatenate([getattr(lane, name) for lane in lanes]) for name in ("ids", "start_ns", "end_ns")
    )
    return _cut(Stack(ids, start_ns, _running_sum(start_ns, end_ns)), np.cumsum([0, *map(len, lanes)]))


def _cut(stack: Stack, cuts: NDArray[np.intp]) -> list[Lane]:
    return [
        Lane(stack.ids[a:b], stack.start_ns[a:b], stack.covered_ns[a : b + 1], stack, a)
        for a, b in pairwise(cuts.tolist())
    ]  # fmt: skip


EMPTY_LANE = Lane(np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(1, np.int64))


class LaneIndex:
    """All lanes of a trace, each track split by depth when it is first asked for.

    Splitting costs one stable sort of the track (0.1 s for a track of 2 M slices, measured), so a view that shows
    a part of the tracks pays only for them.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._lanes: dict[int, list[Lane]] = {}
        self._summary: dict[int, list[Lane]] = {}

    def count(self, track_id: int) -> int:
        """Number of lanes of a track."""
        return int(self.trace.tracks.lanes[track_id])

    def lanes(self, track_id: int) -> list[Lane]:
        """Return the lanes of a track, outermost first."""
        lanes = self._lanes.get(track_id)
        if lanes is None:
            lanes = self._lanes[track_id] = self._split(track_id)
        return lanes

    def summary(self, track_id: int) -> list[Lane]:
        """Lanes that stand for a Python track where there is no room for all: modules, else the user's own frames.

        Modules that all end in the first half of the track stand for none of what follows: some recordings name them
        in their first step only.
        """
        if track_id not in self._summary:
            lanes = module_lanes(self.trace, track_id)
            if not lanes or self._end_early(track_id, lanes[0]):
                lanes = own_frame_lanes(self.trace, track_id) or lanes
            self._summary[track_id] = lanes
        return self._summary[track_id]

    def _end_early(self, track_id: int, outermost: Lane) -> bool:
        tracks, slices = self.trace.tracks, self.trace.slices
        first, end = int(tracks.first_id[track_id]), int(tracks.end_id[track_id])
        middle = (int(slices.start_ns[first:end].min()) + int(self.trace.end_ns[first:end].max())) // 2
        return outermost.end(len(outermost) - 1) < middle

    def lane(self, track_id: int, depth: int) -> Lane:
        """One lane; the empty one when the track is not that deep."""
        lanes = self.lanes(track_id)
        return lanes[depth] if 0 <= depth < len(lanes) else EMPTY_LANE

    def lane_of(self, slice_id: int) -> Lane:
        """Return the lane that a slice is on."""
        slices = self.trace.slices
        return self.lane(int(slices.track_id[slice_id]), int(slices.depth[slice_id]))

    def _split(self, track_id: int) -> list[Lane]:
        tracks, slices = self.trace.tracks, self.trace.slices
        first, end = int(tracks.first_id[track_id]), int(tracks.end_id[track_id])
        ids = np.arange(first, end, dtype=np.int32)
        start_ns, end_ns = slices.start_ns[first:end], self.trace.end_ns[first:end]
        depth = slices.depth[first:end]
        deepest = int(depth.max()) if len(depth) else 0
        if deepest == 0:
            return [make_lane(ids, start_ns, end_ns)] if len(ids) else []
        order = np.argsort(depth, kind="stable")
        cuts = np.append(0, np.bincount(depth).cumsum())
        ids, start_ns, end_ns = ids[order], start_ns[order], end_ns[order]
        for a, b in pairwise(cuts.tolist()):
            np.maximum.accumulate(end_ns[a:b], out=end_ns[a:b])
        return _cut(Stack(ids, start_ns, _running_sum(start_ns, end_ns)), cuts)


def module_lanes(trace: Trace, track_id: int) -> list[Lane]:
    """Lanes of the ``nn.Module: `` frames alone of a Python track, outermost first; empty when it has none.

    Depth counts modules only, so that the first lane is the model whatever called it.
    """
    return _lanes_named(trace, track_id, lambda name: name.startswith("nn.Module: "))


def own_frame_lanes(trace: Trace, track_id: int) -> list[Lane]:
    """Lanes of the user's own frames of a Python track (no library, no launcher), outermost first; may be empty."""
    return _lanes_named(trace, track_id, is_user_frame)


def launcher_lanes(trace: Trace, track_id: int) -> int:
    """How many outermost lanes of a Python track lie above the user's own frames because of the launcher.

    0 where the script was not started by the launcher (`profiling`), or has no frame of its own.
    """
    tracks, slices = trace.tracks, trace.slices
    first, end = int(tracks.first_id[track_id]), int(tracks.end_id[track_id])
    names, depth = slices.name_id[first:end], slices.depth[first:end]
    if not any(is_launcher_frame(trace.strings[int(i)]) for i in np.unique(names[depth == 0])):
        return 0
    own = _named(trace, names, is_user_frame)
    return int(depth[own].min()) if own.any() else 0


def _named(trace: Trace, name_ids: I32, test: Callable[[str], bool]) -> Bool:
    """Which of some names pass a test; each distinct name is looked at once."""
    wanted = np.zeros(len(trace.strings) + 1, np.bool_)
    wanted[[int(i) for i in np.unique(name_ids) if i >= 0 and test(trace.strings[int(i)])]] = True
    return np.asarray(wanted[name_ids])


def _lanes_named(trace: Trace, track_id: int, test: Callable[[str], bool]) -> list[Lane]:
    tracks, slices = trace.tracks, trace.slices
    first, end = int(tracks.first_id[track_id]), int(tracks.end_id[track_id])
    ids = (np.flatnonzero(_named(trace, slices.name_id[first:end], test)) + first).astype(np.int32)
    if not len(ids):
        return []
    closed = np.searchsorted(np.sort(slices.subtree_end[ids]), ids, "right")
    depth = np.arange(len(ids)) - closed
    lanes = []
    for level in range(int(depth.max()) + 1):
        at = ids[depth == level]
        lanes.append(make_lane(at, slices.start_ns[at], trace.end_ns[at]))
    return stacked(lanes)


def union_lane(ids: I32, start_ns: I64, end_ns: I64) -> Lane:
    """Union of intervals in any order as a lane that does not overlap; each keeps the id of its first slice."""
    if not len(ids):
        return EMPTY_LANE
    order = np.argsort(start_ns, kind="stable")
    ids, start_ns, end_ns = ids[order], start_ns[order], end_ns[order]
    reach = np.maximum.accumulate(end_ns)
    begin = np.ones(len(ids), np.bool_)
    begin[1:] = start_ns[1:] > reach[:-1]
    first = np.flatnonzero(begin)
    last = np.append(first[1:], len(ids)) - 1
    start_ns = start_ns[first]
    return Lane(ids[first], start_ns, _running_sum(start_ns, reach[last]))


def device_lane(trace: Trace, device: int) -> Lane:
    """Union of the device work of one device over all of its streams."""
    tracks = trace.tracks.device[trace.slices.track_id[trace.device_ids]]
    ids = trace.device_ids[tracks == device]
    return union_lane(ids, trace.slices.start_ns[ids], trace.end_ns[ids])
