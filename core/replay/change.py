"""A fix as a change of the graph: which waits go, what host time is saved, what becomes of the device work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from core import sets
from core.figures.lookup import View, distinct, rows_among
from core.intervals import Spans, ascending, contains, subtract, union
from core.kinds import HOST_CALLS, SliceKind
from core.replay.graph import Graph
from core.replay.held_up import usual_dur_ns
from core.replay.lanes import others_busy
from core.suggestions import Effect, EffectKind
from core.tables import F64, I32, I64, Bool


@dataclass(eq=False)
class Change:
    """What is different from the recording.

    ``speeds``: per lane, stretches of host time and their speed (0: gone). ``scale``: factor on each piece's
    duration. ``gone``: pieces that are no longer on their stream. ``dropped``: waits that no longer wait.
    ``moved``: copies that now run on a stream of their own. ``pace``: factor on the time that the loader needs per
    batch, per wait.
    """

    speeds: list[list[tuple[Spans, float]]]
    scale: F64
    gone: Bool
    dropped: Bool
    moved: Bool
    pace: F64
    fused_ns: F64  # duration that a piece has taken over from others, ns
    moves: bool = field(default=False)  # whether any piece is moved
    alters: bool = field(default=False)  # whether any piece is gone, scaled or fused

    @property
    def resizes(self) -> bool:
        """Whether any piece is scaled or fused."""
        return self.scale.flags.writeable

    def resize(self) -> None:
        """Make room for what is scaled or fused: until then one number stands for all pieces."""
        if not self.resizes:
            self.scale, self.fused_ns = self.scale.copy(), self.fused_ns.copy()


@dataclass(frozen=True, eq=False)
class Places:
    """The slices of an effect, by thread: their stretches (less what held them up), and the pieces and waits inside."""

    spans: dict[int, Spans]
    pieces: Bool
    waits: Bool


_Speeds = list[tuple[int, Spans, float]]  # lane, stretches of its host time, their speed


def _no_rows() -> I64:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _Touched:
    """Rows of pieces and waits that an effect touches, as in `Change`."""

    speeds: _Speeds = field(default_factory=list)
    gone: I64 = field(default_factory=_no_rows)
    moved: I64 = field(default_factory=_no_rows)
    scaled: I64 = field(default_factory=_no_rows)
    scale: F64 | float = 1.0  # of each of the scaled pieces
    dropped: I64 = field(default_factory=_no_rows)
    paced: I64 = field(default_factory=_no_rows)
    pace: float = 1.0


def _rows(hit: Bool) -> I64:
    return hit.nonzero()[0]


def _middle(view: View, ids: I32) -> I64:
    """Middle of each slice, ns."""
    middle: I64 = view.trace.slices.start_ns[ids] + view.trace.slices.dur_ns[ids] // 2
    return middle


class Changes:
    """Translates effects into changes of one graph."""

    def __init__(self, view: View, graph: Graph) -> None:
        self._view = view
        self._graph = graph
        self._cache: dict[tuple[int, ...], Places] = {}
        self._by_launch: dict[int, np.ndarray] = {}
        # What an effect touches depends on nothing else; the effect itself is kept, so that its id stays its own.
        self._touched: dict[int, tuple[Effect, _Touched]] = {}
        owned = (graph.work.launch_id >= 0).nonzero()[0].astype(np.int32)
        self._owned = owned[graph.work.launch_id[owned].argsort(kind="stable")]
        self._ones, self._zeros = (sets.all_alike(value, len(graph.work)) for value in (1.0, 0.0))
        self._is_copy: Bool = view.trace.slices.kind[graph.work.slice_id] == int(SliceKind.MEMCPY)

    def nothing(self) -> Change:
        """Return the change that changes nothing."""
        graph = self._graph
        return Change(
            speeds=[[] for _ in range(graph.lanes.count)],
            scale=self._ones,
            gone=np.zeros(len(graph.work), dtype=bool),
            dropped=np.zeros(len(graph.waits), dtype=bool),
            moved=np.zeros(len(graph.work), dtype=bool),
            pace=np.ones(len(graph.waits)),
            fused_ns=self._zeros,
        )

    def of(self, effects: Iterable[Effect]) -> Change:
        """Return the change that several effects make together; what two of them remove is removed once."""
        change = self.nothing()
        for effect in effects:
            if effect.kind is EffectKind.FUSE:
                self._fuse(change, effect)
                continue
            touched = self._touches(effect)
            change.moves |= bool(len(touched.moved))
            change.alters |= bool(len(touched.gone) or len(touched.scaled))
            if len(touched.scaled):
                change.resize()
                change.scale[touched.scaled] = np.minimum(change.scale[touched.scaled], touched.scale)
            change.pace[touched.paced] = np.minimum(change.pace[touched.paced], touched.pace)
            change.gone[touched.gone] = True
            change.dropped[touched.dropped] = True
            change.moved[touched.moved] = True
            for lane, spans, speed in touched.speeds:
                change.speeds[lane].append((spans, speed))
        return change

    def _touches(self, effect: Effect) -> _Touched:
        """What one effect touches, whatever else changes."""
        known = self._touched.get(id(effect))
        if known is not None:
            return known[1]
        if effect.kind is EffectKind.SCALE_DEVICE:
            touched = self._scaled(effect)
        else:
            places = self._places(effect.slices)
            if effect.kind is EffectKind.REMOVE_WORK:
                speeds = self._dropped_time(places.waits) + self._speeds(places, 0.0)
                touched = _Touched(gone=_rows(places.pieces), dropped=_rows(places.waits), speeds=speeds)
            elif effect.kind is EffectKind.SCALE_HOST:
                factor = max(0.0, effect.factor)
                loader = _rows(places.waits & (self._graph.waits.loader > 0))
                touched = _Touched(paced=loader, pace=factor, speeds=self._speeds(places, factor))
            else:
                waits = self._with_followers(places.waits)
                moved = _no_rows()
                if effect.kind is EffectKind.OVERLAP_COPY:
                    moved = _rows(self._own_copies(places.waits) | (places.pieces & self._is_copy))
                speeds = self._dropped_time(waits) + self._unblocked(effect)
                touched = _Touched(dropped=_rows(waits), moved=moved, speeds=speeds)
        self._touched[id(effect)] = (effect, touched)
        return touched

    # -- where ----------------------------------------------------------------------------------------------------

    def _places(self, slices: tuple[int, ...]) -> Places:
        found = self._cache.get(slices)
        if found is None:
            found = self._cache[slices] = self._locate(np.array(slices, dtype=np.int64))
        return found

    def _locate(self, ids: np.ndarray) -> Places:
        view, graph = self._view, self._graph
        thread = view.thread[ids]
        start, end = view.trace.slices.start_ns[ids], view.trace.end_ns[ids]
        rows = list(graph.step_rows)
        usual_end = start + usual_dur_ns(view.trace, graph.steps.start_ns[rows], graph.steps.end_ns[rows], ids)
        spans: dict[int, Spans] = {}
        pieces = np.zeros(len(graph.work), dtype=bool)
        waits = np.zeros(len(graph.waits), dtype=bool)
        # A call that begins where a slice ends is not in it, though rounded times may overlap: its middle tells.
        launched, waiting = self._middles
        for one in distinct(thread):
            if graph.lanes.of_thread[one] < 0:
                continue
            mine = thread == one
            own = union(start[mine], np.maximum(end, start + 1)[mine])
            spans[int(one)] = union(start[mine], np.maximum(usual_end, start + 1)[mine])
            pieces |= (graph.work.thread == one) & (graph.work.launch_id >= 0) & contains(own, launched)
            waits |= (graph.waits.thread == one) & contains(own, waiting)
        return Places(spans, pieces, waits)

    @property
    def _middles(self) -> tuple[I64, I64]:
        """Middles of the launches of the pieces, and of the waiting calls, ns."""
        return _middle(self._view, self._graph.work.launch_id), _middle(self._view, self._graph.waits.slice_id)

    def _with_followers(self, waits: Bool) -> Bool:
        """Add the synchronisations that PyTorch calls right behind a blocking copy, in the same operator.

        ``non_blocking=True`` takes both away.
        """
        graph, op_of = self._graph, self._view.trace.links.op_of
        calls = graph.waits.slice_id
        syncs = graph.waits.sync_id >= 0
        ops = distinct(op_of[calls[waits & syncs]])
        return waits | (syncs & sets.among(op_of[calls], ops))

    def _own_copies(self, waits: Bool) -> Bool:
        """Pieces that are the copies of the given blocking calls."""
        graph = self._graph
        calls = graph.waits.slice_id[waits & (graph.waits.sync_id >= 0)]
        copies = sets.among(graph.work.launch_id, calls)
        followers = self._with_followers(waits)
        return copies | sets.among(graph.work.launch_id, graph.waits.slice_id[followers])

    # -- what -----------------------------------------------------------------------------------------------------

    def _dropped_time(self, waits: Bool) -> _Speeds:
        """Time of waits for something unrecorded: it goes with them."""
        graph = self._graph
        unknown = waits & ~graph.waits.depends
        found: _Speeds = []
        for lane in distinct(graph.waits.lane[unknown]):
            rows = (unknown & (graph.waits.lane == lane)).nonzero()[0]
            found.append((lane, union(graph.waits.start_ns[rows], graph.waits.end_ns[rows]), 0.0))
        return found

    def _speeds(self, places: Places, factor: float) -> _Speeds:
        lanes = self._graph.lanes
        return [
            (int(lanes.of_thread[thread]), subtract(spans, others_busy(lanes, thread)), factor)
            for thread, spans in places.spans.items()
        ]

    def _unblocked(self, effect: Effect) -> _Speeds:
        """Let calls that the figures list as no sync point (launches in a debug mode) cost what such calls cost."""
        view, graph = self._view, self._graph
        ids = np.array(effect.slices, dtype=np.int64)
        ids = ids[sets.among(view.trace.slices.kind[ids], HOST_CALLS) & ~sets.among(ids, graph.waits.slice_id)]
        found: _Speeds = []
        if not len(ids):
            return found
        start, dur, thread = view.trace.slices.start_ns[ids], view.trace.slices.dur_ns[ids], view.thread[ids]
        keep = np.minimum(dur, self._call_cost(ids))
        for one in distinct(thread):
            lane = int(graph.lanes.of_thread[one])
            if lane >= 0:
                mine = thread == one
                found.append((lane, union((start + keep)[mine], (start + dur)[mine]), 0.0))
        return found

    def _call_cost(self, calls: np.ndarray) -> np.ndarray:
        """What calls cost that do not wait; at most until their own work started, where it ended inside the call."""
        work, trace = self._graph.work, self._view.trace
        cost = np.full(len(calls), self._graph.call_ns, dtype=np.int64)
        owned = self._owned
        at = work.launch_id[owned].searchsorted(calls)
        piece = owned[np.minimum(at, len(owned) - 1)] if len(owned) else np.zeros(len(calls), dtype=np.int64)
        if len(owned):
            inside = (work.launch_id[piece] == calls) & (work.end_ns[piece] <= trace.end_ns[calls])
            begun = np.maximum(work.start_ns[piece] - trace.slices.start_ns[calls], 0)
            cost = np.where(inside, np.minimum(cost, begun), cost)
        return cost

    def _scaled(self, effect: Effect) -> _Touched:
        """Multiply durations of device slices; inside a graph launch the whole shrinks by what its part loses."""
        work, slices = self._graph.work, self._view.trace.slices
        ids = ascending(np.array(effect.slices, dtype=np.int64))
        piece = work.piece_of(ids)
        ids, piece = ids[piece >= 0], piece[piece >= 0]
        lost = np.bincount(piece, weights=slices.dur_ns[ids] * (1.0 - effect.factor), minlength=len(work))
        hit = rows_among(piece)
        share = 1.0 - lost[hit] / np.maximum(work.dur_ns[hit], 1)
        return _Touched(scaled=hit, scale=np.maximum(share, 0.0))

    def _fuse(self, change: Change, effect: Effect) -> None:
        """Make one launch of all that each slice launches."""
        work, view = self._graph.work, self._view
        shares: dict[tuple[int, int], list[int]] = {}  # thread and number of launches -> slices
        for slice_id in dict.fromkeys(effect.slices):
            thread = int(view.thread[slice_id])
            order = self._launched_in(thread, slice_id)
            order = order[~change.gone[order]]
            if len(order) < 2:
                continue
            first, change.alters = order[0], True
            change.resize()
            total = float((work.dur_ns[order] * change.scale[order] + change.fused_ns[order]).sum())
            change.gone[order[1:]] = True
            change.scale[first] = 0.0
            change.fused_ns[first] = total * effect.factor
            shares.setdefault((thread, len(order)), []).append(slice_id)
        for (thread, count), ids in shares.items():
            rows = np.array(ids)
            spans = union(view.trace.slices.start_ns[rows], view.trace.end_ns[rows])
            nowhere = np.zeros(0, dtype=bool)
            for lane, own, speed in self._speeds(Places({thread: spans}, nowhere, nowhere), 1.0 / count):
                change.speeds[lane].append((own, speed))

    def _launched_in(self, thread: int, slice_id: int) -> np.ndarray:
        """Pieces launched by a thread inside a slice, in order of launch."""
        work, trace = self._graph.work, self._view.trace
        found = self._by_launch.get(thread)
        if found is None:
            own = ((work.thread == thread) & (work.launch_id >= 0)).nonzero()[0]
            found = self._by_launch[thread] = own[work.launch_ns[own].argsort(kind="stable")]
        start, end = int(trace.slices.start_ns[slice_id]), int(trace.end_ns[slice_id])
        first, last = work.launch_ns[found].searchsorted((start, end))
        return found[first:last]
