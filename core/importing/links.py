"""Links between slices: launch to device work, op to launch, forward to backward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from core.importing.columns import EventColumns, FlowColumns
from core.importing.kineto import AUTOGRAD_FLOWS, LAUNCH_FLOWS
from core.importing.stack import climb
from core.importing.tracks import Places
from core.kinds import DEVICE_WORK, HOST_CALLS, SliceKind, TrackKind
from core.tables import I32, I64, U8, Bool, LinkTable, SliceTable, TrackTable

_NONE = np.int32(-1)
_STEPS = 64
_START, _FINISH = ord("s"), ord("f")
_ON_DEVICE, _IS_CALL = (np.isin(np.arange(256), kinds) for kinds in (DEVICE_WORK, HOST_CALLS))


@dataclass(frozen=True)
class Launches:
    """Rows of device work and of host calls, and the launching call of every slice that correlation ids tell."""

    device: I32
    host: I32
    launch_of: I32


def launches_of(kinds: U8, correlation: I64) -> Launches:
    """Link launches to their device work by correlation id; needs neither nesting nor tracks."""
    device = np.flatnonzero(_ON_DEVICE[kinds]).astype(np.int32)
    host = np.flatnonzero(_IS_CALL[kinds]).astype(np.int32)
    launch_of = np.full(len(kinds), _NONE, np.int32)
    launch_of[device] = _launches(kinds, correlation, device, host)
    return Launches(device, host, launch_of)


def make_links(
    columns: EventColumns,
    slices: SliceTable,
    tracks: TrackTable,
    places: Places,
    launches: Launches,
    origin_ns: int,
    tick: Callable[[], None] = lambda: None,
) -> LinkTable:
    """Link the slices of one file; arrows that lead nowhere are counted in ``columns``."""
    device, host, launch_of = launches.device, launches.host, launches.launch_of
    binder = _Binder(columns, slices, tracks, places, origin_ns)
    flows = columns.flows
    launch_flow = _of_category(columns, LAUNCH_FLOWS)
    _launches_by_flow(flows.rows(launch_flow), binder, slices, device, launch_of)
    _count_dangling(columns, flows.rows(launch_flow), slices, launch_of, device)
    tick()
    op_of = _ops(slices, host, device, launch_of)
    tick()
    forward, backward = _autograd(columns, flows.rows(_of_category(columns, AUTOGRAD_FLOWS)), binder)
    linked = device[launch_of[device] >= 0]
    linked = linked[np.argsort(launch_of[linked], kind="stable")]
    table = LinkTable(
        launch_of=launch_of,
        launched=linked,
        launched_by=launch_of[linked],
        op_of=op_of,
        forward=forward,
        backward=backward,
        backward_order=np.argsort(backward, kind="stable").astype(np.int32),
    )
    for name in ("launch_of", "launched", "launched_by", "op_of", "forward", "backward", "backward_order"):
        getattr(table, name).setflags(write=False)
    return table


def _of_category(columns: EventColumns, names: frozenset[str]) -> Bool:
    wanted = np.array([text.lower() in names for text in columns.strings] + [False], dtype=np.bool_)
    return np.asarray(wanted[columns.flows.category])


def _launches(kinds: U8, correlation: I64, device: I32, host: I32) -> I32:
    """Launching call of each device row by correlation id; where several share it, a runtime call, the first."""
    found = np.full(len(device), _NONE, np.int32)
    host = host[correlation[host] >= 0]
    if not len(host) or not len(device):
        return found
    rank = (kinds[host] != SliceKind.RUNTIME).astype(np.int8)
    order = np.lexsort((host, rank, correlation[host]))
    host = host[order]
    ids = correlation[host]
    wanted = correlation[device]
    at = np.searchsorted(ids, wanted)
    hit = (wanted >= 0) & (at < len(ids))
    hit[hit] = ids[at[hit]] == wanted[hit]
    found[hit] = host[at[hit]]
    return found


def _launches_by_flow(flows: FlowColumns, binder: _Binder, slices: SliceTable, device: I32, launch_of: I32) -> None:
    """Dialects without correlation ids say by an arrow what launched what (changes ``launch_of`` in place)."""
    if not len(flows) or not len(device) or not bool((launch_of[device] < 0).any()):
        return
    starts, ends = _pairs(flows)
    target = binder.bind(flows.rows(ends), (TrackKind.DEVICE_STREAM,))
    open_end = target >= 0
    open_end[open_end] = launch_of[target[open_end]] < 0
    open_end[open_end] = slices.correlation_id[target[open_end]] < 0
    starts, target = starts[open_end], target[open_end]
    source = binder.bind(flows.rows(starts), (TrackKind.CPU_OPS, TrackKind.OTHER))
    good = source >= 0
    launch_of[target[good]] = source[good]


def _pairs(flows: FlowColumns) -> tuple[I64, I64]:
    """Rows of starts and of the ends that belong to them: by category and id."""
    starts = np.flatnonzero(flows.phase == _START)
    ends = np.flatnonzero(flows.phase == _FINISH)
    if not len(starts) or not len(ends):
        return starts[:0], ends[:0]
    _, number = np.unique(flows.flow_id, return_inverse=True)  # with axis=1 over both it would hold all threads up
    codes = number.astype(np.int64) * (int(flows.category.max()) + 1) + flows.category
    order = np.argsort(codes[starts], kind="stable")
    starts = starts[order]
    at = np.searchsorted(codes[starts], codes[ends], side="left")
    hit = at < len(starts)
    hit[hit] = codes[starts[at[hit]]] == codes[ends[hit]]
    return starts[at[hit]], ends[hit]


def _count_dangling(columns: EventColumns, flows: FlowColumns, slices: SliceTable, launch_of: I32, device: I32) -> None:
    """Count the launch arrows with an end missing, or without a slice at an end."""
    if not len(flows):
        return
    linked = device[launch_of[device] >= 0]
    numbers = slices.correlation_id[linked].astype(np.int64)  # arrows may be numbered as no int32 is
    by_number = bool(len(numbers)) and int(numbers.max()) >= 0
    low = int(flows.flow_id.min())
    span = int(flows.flow_id.max()) - low + 1
    if span <= 16 * len(flows) + 1024:  # the usual case: counted numbers, so a table of marks will do
        starts, ends, touching = (np.zeros(span, np.bool_) for _ in range(3))
        starts[flows.flow_id[flows.phase == _START] - low] = True
        ends[flows.flow_id[flows.phase == _FINISH] - low] = True
        numbers = numbers[(numbers >= low) & (numbers < low + span)] - low
        touching[numbers] = True
        good = starts & ends & (touching | (not by_number))
        columns.note("dangling-flow", count=int((starts | ends).sum()) - int(good.sum()))
        return
    begun, met = (np.unique(flows.flow_id[flows.phase == phase]) for phase in (_START, _FINISH))
    both = np.intersect1d(begun, met, assume_unique=True)
    kept = np.intersect1d(both, numbers) if by_number else both
    columns.note("dangling-flow", count=len(np.union1d(begun, met)) - len(kept))


def _ops(slices: SliceTable, host: I32, device: I32, launch_of: I32) -> I32:
    """Innermost op above each host call and each piece of device work: by nesting, else by external id.

    External ids are used again: a call is of the operator of that id that runs when it begins, or of none. Where the
    call is not in the trace, its work is of the last operator of that id that began before it.
    """
    op_of = np.full(len(slices), _NONE, np.int32)
    op_of[host] = _op_above(slices, slices.parent_id[host].copy())
    ops = np.flatnonzero((slices.kind == SliceKind.CPU_OP) & (slices.external_id >= 0)).astype(np.int32)
    calls = host[op_of[host] < 0]
    found = _by_external_id(slices, calls, ops)
    end = slices.start_ns[found] + slices.dur_ns[found]
    op_of[calls] = np.where((found >= 0) & (slices.start_ns[calls] <= end), found, _NONE)
    launched = device[launch_of[device] >= 0]
    launch = launch_of[launched]
    own = slices.kind[launch] == SliceKind.CPU_OP
    op_of[launched] = np.where(own, launch, op_of[launch])
    alone = device[launch_of[device] < 0]
    op_of[alone] = _by_external_id(slices, alone, ops)
    return op_of


def _op_above(slices: SliceTable, above: I32) -> I32:
    """The first op of each of these rows and those above it, -1 without one (changes ``above`` in place)."""
    for _ in range(_STEPS):
        wrong = above >= 0
        wrong[wrong] = slices.kind[above[wrong]] != SliceKind.CPU_OP
        if not wrong.any():
            return above
        above[wrong] = slices.parent_id[above[wrong]]
    rows = np.arange(len(slices), dtype=np.int32)  # deep: every row's way up doubles each time
    up = np.append(np.where(slices.kind == SliceKind.CPU_OP, rows, slices.parent_id), _NONE)
    while True:
        further = up[up]
        if bool((further == up).all()):
            return np.asarray(up[above])
        up = further


def _by_external_id(slices: SliceTable, wanted: I32, ops: I32) -> I32:
    """Of the ops with the external id of each wanted row, the last that began by then, -1 for none: int32[k]."""
    found = np.full(len(wanted), _NONE, np.int32)
    if not len(ops) or not len(wanted):
        return found
    rows = np.concatenate((ops, wanted))
    asks = np.arange(len(rows)) >= len(ops)
    order = np.lexsort((asks, slices.start_ns[rows], slices.external_id[rows]))
    rows, asks = rows[order], asks[order]
    last = np.maximum.accumulate(np.where(asks, -1, np.arange(len(rows))))
    same = (last >= 0) & (slices.external_id[rows[last]] == slices.external_id[rows])
    found[order[asks] - len(ops)] = np.where(same, rows[last], _NONE)[asks]
    return found


def _autograd(columns: EventColumns, flows: FlowColumns, binder: _Binder) -> tuple[I32, I32]:
    starts, ends = _pairs(flows)
    kinds = (TrackKind.CPU_OPS, TrackKind.CPU_RANGES, TrackKind.OTHER)
    source = binder.bind(flows.rows(starts), kinds)
    target = binder.bind(flows.rows(ends), kinds)
    good = (source >= 0) & (target >= 0)
    dangling = int((~good).sum()) + abs(int((flows.phase == _START).sum()) - int((flows.phase == _FINISH).sum()))
    columns.note("dangling-flow", count=dangling)
    source, target = source[good], target[good]
    order = np.argsort(source, kind="stable")
    return source[order].astype(np.int32), target[order].astype(np.int32)


class _Binder:
    """Finds the slice that an arrow's end touches: the innermost one of its thread at its time."""

    def __init__(
        self, columns: EventColumns, slices: SliceTable, tracks: TrackTable, places: Places, origin_ns: int
    ) -> None:
        self._slices = slices
        self._tracks = tracks
        self._origin_ns = origin_ns
        self._end = slices.start_ns + slices.dur_ns
        self._track_at: dict[tuple[str, str, int], int] = {}
        self._strings = columns.strings
        for track, key in enumerate(places.track_keys):
            self._track_at[self._strings[key[0]], self._strings[key[1]], key[2]] = track

    def bind(self, flows: FlowColumns, kinds: tuple[int, ...]) -> I32:
        """int32[n]: row of the slice of the first of these kinds of track that holds the arrow's end, -1 none."""
        found = np.full(len(flows), _NONE, np.int32)
        if not len(flows):
            return found
        keys, inverse = np.unique((flows.pid.astype(np.int64) << 32) | flows.tid, return_inverse=True)
        order = np.argsort(inverse, kind="stable")
        bounds = np.searchsorted(inverse[order], np.arange(len(keys) + 1))
        for number, key in enumerate(keys.tolist()):
            mine = order[bounds[number] : bounds[number + 1]]
            pid, tid = self._strings[key >> 32], self._strings[key & 0xFFFFFFFF]
            for kind in kinds:
                track = self._track_at.get((pid, tid, int(kind)), -1)
                if track >= 0:
                    left = mine[found[mine] < 0]
                    found[left] = self._in_track(track, flows.time_ns[left] - self._origin_ns)
        return found

    def _in_track(self, track: int, times: I64) -> I32:
        first, end = int(self._tracks.first_id[track]), int(self._tracks.end_id[track])
        starts = self._slices.start_ns[first:end]
        rows = np.searchsorted(starts, times, side="right") - 1 + first
        rows[rows < first] = -1
        here = rows >= 0  # a mark that has no duration is met by what comes at its very time
        here[here] = self._slices.start_ns[rows[here]] == times[here]
        rows[~here] = climb(rows[~here], self._slices.parent_id, self._end, times[~here])
        return rows.astype(np.int32)
