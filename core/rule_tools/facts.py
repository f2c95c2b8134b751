"""Indexed look-ups over one trace and its figures, made once and shared by all rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from core.figures.model import Figures
from core.kinds import HOST_CALLS, SliceKind, TrackKind
from core.rule_tools.arguments import Arguments
from core.rule_tools.name_index import KindIndex
from core.rule_tools.name_patterns import matching
from core.sets import among, distinct
from core.suggestions import NotChecked, RuleContext
from core.tables import FLAG_NO_DURATION, FLAG_UNFINISHED, I32, I64, Bool
from core.trace import Trace

# Looking a member up in its class takes longer than comparing.
_CPU_OP, _CPU_RANGES = int(SliceKind.CPU_OP), int(TrackKind.CPU_RANGES)
_NO_TIME = FLAG_NO_DURATION | FLAG_UNFINISHED
_KEPT = 1 << 16  # slices whose ranges or operators are kept at a time


class Facts(Arguments):
    """Look-ups that several rules need; every array is computed once, on first use.

    Parameters
    ----------
    trace, figures
        What the rules look at.
    """

    def __init__(self, trace: Trace, figures: Figures) -> None:
        super().__init__(trace)
        self.figures = figures
        self._by_kind = KindIndex(trace)
        self._matches: dict[object, I32] = {}
        self._tracks: dict[tuple[int, int], tuple[int, I64]] = {}
        self._ranges: dict[int, list[int]] = {}
        self._sums: dict[int | None, I64] = {}
        self._paths: dict[int, list[int]] = {}
        self.memo: dict[str, Any] = {}  # results that several rules share, by name

    # ------------------------------------------------------------------ names

    def of_kind(self, *kinds: int) -> I32:
        """int32[k]: ids of all slices of these kinds, ascending."""
        return self._by_kind.of(kinds).ids

    def names_of(self, *kinds: int) -> tuple[str, ...]:
        """Distinct names among the slices of these kinds."""
        return self._by_kind.of(kinds).names

    def where(self, test: Callable[[str], object], *kinds: int) -> I32:
        """int32[k]: slices of these kinds whose *name* passes the test (asked once per distinct name)."""
        index = self._by_kind.of(kinds)
        return index.rows([at for at, name in enumerate(index.names) if test(name)])

    def matching(self, pattern: str, *kinds: int) -> I32:
        """As `where`, with a regular expression searched in the name; remembered."""
        key = (pattern, kinds)
        found = self._matches.get(key)
        if found is None:
            index = self._by_kind.of(kinds)
            found = self._matches[key] = index.rows(matching(pattern, index.names, index.text))
        return found

    def ops(self, *names: str) -> I32:
        """int32[k]: CPU ops with one of these exact names, ascending."""
        return self.named(names, SliceKind.CPU_OP)

    def named(self, names: Iterable[str], *kinds: int) -> I32:
        """int32[k]: slices of these kinds with one of these exact names, ascending."""
        names = tuple(names)
        key = (names, kinds)
        found = self._matches.get(key)
        if found is None:
            index = self._by_kind.of(kinds)
            found = self._matches[key] = index.rows([index.place[n] for n in dict.fromkeys(names) if n in index.place])
        return found

    # ---------------------------------------------------------------- nesting

    def ancestors(self, slice_id: int) -> list[int]:
        """Slices of the same track around this one, innermost first, itself left out."""
        out: list[int] = []
        parent = self.trace.slices.parent_id
        at = int(parent[slice_id])
        while at >= 0 and len(out) < 4000:
            out.append(at)
            at = int(parent[at])
        return out

    def path_ids(self, slice_id: int) -> list[int]:
        """CPU ops around a slice on its track, outermost first; ends with itself when it is an op."""
        found = self._paths.get(slice_id)
        if found is None:
            if len(self._paths) >= _KEPT:
                self._paths.clear()
            kind, up = self.trace.slices.kind, reversed([slice_id, *self.ancestors(slice_id)])
            found = self._paths[slice_id] = [a for a in up if kind[a] == _CPU_OP]
        return found

    def path(self, slice_id: int) -> tuple[str, ...]:
        """Names of `path_ids`."""
        return tuple(self.trace.name(i) for i in self.path_ids(slice_id))

    def inside(self, ids: I32, outer: I32) -> Bool:
        """bool[len(ids)]: which of ``ids`` lie under one of the slices ``outer`` of the same track."""
        if not len(outer) or not len(ids):
            return np.zeros(len(ids), dtype=bool)
        ends = np.maximum.accumulate(self.trace.slices.subtree_end[outer])
        at = outer.searchsorted(ids, side="left") - 1
        hit: Bool = (at >= 0) & (ids < ends[np.maximum(at, 0)])
        return hit

    def children(self, slice_id: int) -> I32:
        """int32[k]: direct children of a slice on its track."""
        sl = self.trace.slices
        rows = np.arange(slice_id + 1, int(sl.subtree_end[slice_id]), dtype=np.int32)
        found: I32 = rows[sl.parent_id[rows] == slice_id]
        return found

    def siblings_before(self, slice_id: int, limit: int) -> list[int]:
        """Up to ``limit`` slices of the same track and parent that ended before this one, nearest first."""
        sl = self.trace.slices
        parent = int(sl.parent_id[slice_id])
        first = parent + 1 if parent >= 0 else int(self.trace.tracks.first_id[sl.track_id[slice_id]])
        out: list[int] = []
        at = slice_id - 1
        while at >= first and len(out) < limit:
            while at >= first and int(sl.parent_id[at]) != parent:
                up = int(sl.parent_id[at])
                at = up if up >= first else at - 1
            if at >= first:
                out.append(at)
                at -= 1
        return out

    def innermost(self, thread_id: int, kind: int, time_ns: int) -> int:
        """Innermost slice of a thread's track of this `TrackKind` that covers an instant, or -1."""
        held = self._tracks.get((thread_id, kind))
        if held is None:
            held = self._tracks[thread_id, kind] = self._starts_on(self.trace.track_of_thread(thread_id, kind))
        first, starts = held
        parent, end = self.trace.slices.parent_id, self.trace.end_ns
        at = first + int(starts.searchsorted(time_ns, side="right")) - 1
        while at >= first and end[at] <= time_ns:
            at = int(parent[at])
        return at if at >= first else -1

    def _starts_on(self, track: int) -> tuple[int, I64]:
        """First slice of a track, and the starts of all of them, ns; none for track -1."""
        tracks = self.trace.tracks
        first, end = (int(tracks.first_id[track]), int(tracks.end_id[track])) if track >= 0 else (0, 0)
        return first, self.trace.slices.start_ns[first:end]

    def thread_of(self, slice_id: int) -> int:
        """Row of the thread table of a CPU slice, -1 for device tracks."""
        return int(self.trace.tracks.thread_id[self.trace.slices.track_id[slice_id]])

    def on_launching_thread(self, ids: I32) -> Bool:
        """bool[len(ids)]: which CPU slices are on a thread that launches device work."""
        on: Bool = self._launching_tracks[self.trace.slices.track_id[ids]]
        return on

    @cached_property
    def _launching_tracks(self) -> Bool:
        """bool[n_tracks]: which tracks are of a thread that launches device work."""
        return among(self.trace.tracks.thread_id, list(self.launching_threads))

    @cached_property
    def launching_threads(self) -> frozenset[int]:
        """Rows of the thread table of the threads that launch device work."""
        tracks = distinct(self.trace.slices.track_id[self.trace.links.launched_by])
        return frozenset(int(t) for t in self.trace.tracks.thread_id[tracks])

    def ranges_around(self, slice_id: int) -> list[int]:
        """STEP and RANGE slices of the thread around the start of a CPU slice, innermost first."""
        found = self._ranges.get(slice_id)
        if found is None:
            thread, start = self.thread_of(slice_id), int(self.trace.slices.start_ns[slice_id])
            at = self.innermost(thread, _CPU_RANGES, start) if thread >= 0 else -1
            if len(self._ranges) >= _KEPT:
                self._ranges.clear()
            found = self._ranges[slice_id] = [at, *self.ancestors(at)] if at >= 0 else []
        return found

    # ------------------------------------------------------------------ steps

    @cached_property
    def use_steps(self) -> Bool:
        """bool[n_steps]: steps that count (all, when none is good enough to count)."""
        counted = self.figures.step_figures.counted
        if len(counted) and counted.any():
            return counted.astype(bool)
        return np.ones(len(self.figures.steps), dtype=bool)

    @cached_property
    def n_steps(self) -> int:
        """Number of steps that count; 0 without steps."""
        return int(self.use_steps.sum())

    @cached_property
    def step_rows(self) -> I64:
        """int64[n]: rows of the step table that count."""
        return self.use_steps.nonzero()[0]

    def in_steps(self, ids: I32) -> I32:
        """Those of ``ids`` that lie in a counted step; all of them when the trace has no steps."""
        if not len(self.figures.steps):
            return ids
        counted = np.append(self.use_steps, False)  # the last one for slices in no step, whose row is -1
        return ids.compress(counted[self.figures.step_of[ids]])

    def rows_of(self, ids: Iterable[int]) -> tuple[int, ...]:
        """Distinct step rows in which these slices lie."""
        rows = ids if isinstance(ids, np.ndarray) else np.asarray(list(ids), dtype=np.int64)
        return tuple(row for row in distinct(self.figures.step_of[rows]).tolist() if row >= 0)

    @cached_property
    def window_ns(self) -> int:
        """Analysed time: the counted steps' host time, or the whole trace without steps."""
        if self.n_steps:
            steps = self.figures.steps
            return int((steps.end_ns - steps.start_ns)[self.use_steps].sum())
        return self.trace.span_ns[1] - self.trace.span_ns[0]

    @cached_property
    def sustained_ns(self) -> float:
        """Best known time per step, ns: sustained, else period, else host step, else the analysed time."""
        s = self.figures.summary
        for value in (s.sustained_step_ns, s.period_ns, s.step_ns):
            if value:
                return float(value)
        return float(self.window_ns / max(self.n_steps, 1))

    def per_step(self, total_ns: float) -> float:
        """A total over the analysed steps, per step."""
        return total_ns / max(self.n_steps, 1)

    # ----------------------------------------------------------------- device

    @cached_property
    def on_cpu(self) -> bool:
        """The CPU does the computing: no device work, and no sign of any that was merely not recorded."""
        trace = self.trace
        if trace.has_device_work or trace.meta.devices or bool((trace.memory.device >= 0).any()):
            return False
        return not len(self.where(lambda name: "Launch" in name, *HOST_CALLS))

    def require_compute(self) -> None:
        """Raise `NotChecked` where the work was done by a device that was not recorded."""
        if not self.trace.has_device_work and not self.on_cpu:
            raise NotChecked(
                "The trace holds no GPU work, but signs of a GPU: what the operators cost there is unknown. "
                "Record with ProfilerActivity.CUDA."
            )

    def within_ranges(self, ids: I32, ranges: I32) -> Bool:
        """bool[len(ids)]: which CPU slices start during one of these ranges of the same thread."""
        sl, threads = self.trace.slices, self.trace.tracks.thread_id
        out = np.zeros(len(ids), dtype=bool)
        of_range, of_id = threads[sl.track_id[ranges]], threads[sl.track_id[ids]]
        for thread in distinct(of_range):
            own = ranges[of_range == thread]
            own = own[sl.start_ns[own].argsort(kind="stable")]
            ends = np.maximum.accumulate(self.trace.end_ns[own])
            mine = (of_id == thread).nonzero()[0]
            at = sl.start_ns[own].searchsorted(sl.start_ns[ids[mine]], side="right") - 1
            out[mine] = (at >= 0) & (sl.start_ns[ids[mine]] < ends[np.maximum(at, 0)])
        return out

    @cached_property
    def work(self) -> I32:
        """int32[k]: device work that counts: launched in a counted step (all, without steps), and of known duration."""
        every = self.trace.device_ids
        odd = (self.trace.slices.flags[every] & _NO_TIME) != 0
        return self.in_steps(every[~odd] if odd.any() else every)

    @cached_property
    def kernels(self) -> I32:
        """int32[k]: kernels among `work`."""
        kernels: I32 = self.work.compress(self.trace.slices.kind[self.work] == int(SliceKind.KERNEL))
        return kernels

    @cached_property
    def is_counted_kernel(self) -> Bool:
        """bool[n_slices]: which slices are among `kernels`."""
        mask = np.zeros(len(self.trace.slices), dtype=bool)
        mask[self.kernels] = True
        return mask

    @cached_property
    def kernel_ns(self) -> int:
        """Summed duration of `kernels`, ns."""
        return int(self.trace.slices.dur_ns[self.kernels].sum())

    @cached_property
    def _launches_before(self) -> I32:
        """int32[n_slices + 1]: how many entries of the launch table belong to slices with a smaller id."""
        by = self.trace.links.launched_by  # ascending
        last = np.diff(by, append=-1).nonzero()[0]  # of those of one slice
        before = np.zeros(len(self.trace.slices) + 1, dtype=np.int32)
        before[by[last] + 1] = np.diff(last, prepend=-1)
        return before.cumsum(out=before)

    def device_below(self, slice_id: int) -> I32:
        """int32[k]: device work launched by a CPU slice or anything below it on its track."""
        before, end = self._launches_before, self.trace.slices.subtree_end[slice_id]
        found: I32 = self.trace.links.launched[before[slice_id] : before[end]]
        return found

    def device_below_all(self, ids: Iterable[int]) -> I32:
        """int32[k]: device work launched by these CPU slices or below them, slice by slice."""
        rows = np.asarray(ids if isinstance(ids, np.ndarray) else list(ids), dtype=np.int64)
        first, counts = self._launches_before[rows], self.device_counts(rows)
        shift = np.repeat(first - (np.cumsum(counts) - counts), counts)
        return self.trace.links.launched[shift + np.arange(len(shift))]

    def device_counts(self, ids: I32 | I64) -> I32:
        """int32[len(ids)]: number of pieces of device work launched by each CPU slice or below it."""
        before = self._launches_before
        return before[self.trace.slices.subtree_end[ids]] - before[ids]

    def device_ns(self, ids: I32 | I64, kind: int | None = None) -> I64:
        """int64[len(ids)]: summed duration of the device work (of one kind) launched by each CPU slice or below it."""
        sums, before = self._device_sums(kind), self._launches_before
        total: I64 = sums[before[self.trace.slices.subtree_end[ids]]] - sums[before[ids]]
        return total

    def _device_sums(self, kind: int | None) -> I64:
        """int64: duration of the device work (of one kind) before each entry of the launch table, and of all."""
        held = self._sums.get(kind)
        if held is None:
            work, sl = self.trace.links.launched, self.trace.slices
            took = sl.dur_ns[work] if kind is None else np.where(sl.kind[work] == int(kind), sl.dur_ns[work], 0)
            held = self._sums[kind] = np.concatenate([[0], took.cumsum()])
        return held

    def in_first_step(self, ids: I32) -> I32:
        """Those of ``ids`` in the first counted step that has any; all of them without steps.

        Steps resemble each other, and arguments that lie close together in the file are read much faster.
        """
        if not self.n_steps or not len(ids):
            return ids
        rows = self.figures.step_of[ids]
        good = rows[(rows >= 0) & self.use_steps[np.maximum(rows, 0)]]
        return ids[rows == good.min()] if len(good) else ids

    def name_table(self, ids: Iterable[int]) -> Bool:
        """bool[n_strings + 1]: True for these name ids (the last entry, for -1, is False)."""
        table = np.zeros(len(self.trace.strings) + 1, dtype=bool)
        table[[i for i in ids if i >= 0]] = True
        return table

    @cached_property
    def last_launch_ns(self) -> int:
        """Start of the last host call that launched device work, -1 when unknown."""
        by = self.trace.links.launched_by
        return int(self.trace.slices.start_ns[by].max()) if len(by) else -1

    @cached_property
    def is_rocm(self) -> bool:
        """The runtime calls are HIP's: copies do not say whether host memory is pinned."""
        return any(n.startswith("hip") for n in self.names_of(SliceKind.RUNTIME, SliceKind.DRIVER))

    def busy_pct(self) -> float | None:
        """Use of the device in percent of the counted steps (of the window without any), None unknown."""
        steps = self.figures.step_figures
        rows = self.use_steps & (steps.gpu_busy_ns >= 0) & (steps.dur_ns > 0) if self.n_steps else np.zeros(0, bool)
        if not rows.any():
            return self.figures.summary.gpu_busy_pct
        return 100.0 * float(steps.gpu_busy_ns[rows].sum()) / float(steps.dur_ns[rows].sum())


def facts_of(ctx: RuleContext) -> Facts:
    """Return the look-ups that the rules of one run share (made on first use)."""
    facts = ctx.shared.get("facts")
    if not isinstance(facts, Facts):
        facts = ctx.shared["facts"] = Facts(ctx.trace, ctx.figures)
    return facts


def ids_tuple(ids: Iterable[Any], limit: int = 4000) -> tuple[int, ...]:
    """Plain ints, at most ``limit`` of them: the evidence of a huge trace stays bounded (effects never are cut)."""
    if isinstance(ids, np.ndarray):
        return tuple(ids[:limit].tolist())
    return tuple(map(int, islice(ids, limit)))
