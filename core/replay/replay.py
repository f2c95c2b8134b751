"""The replay of one trace: the pace of its loop as it is, and as it would be with fixes in place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from core import memory, sets
from core.figures.lookup import View, view_of
from core.figures.model import Figures
from core.intervals import Spans, span, union
from core.replay.accuracy import held_out_error, in_turn, included, own_error
from core.replay.batches import loader_chains
from core.replay.bounds import Bounds
from core.replay.change import Change, Changes
from core.replay.engine import Compiler, Folder, Plan
from core.replay.graph import Graph, build_graph
from core.replay.loops import MIN_STEPS, main_threads
from core.replay.overlap import overlapped
from core.replay.pace import once, settle
from core.replay.program import Program, make_program
from core.suggestions import Effect
from core.tables import I32
from core.trace import Trace

MISSING_PCT = 20.0  # of the period: more than steps that are left out of the means make of it


@dataclass(frozen=True)
class Outcome:
    """Result of one replay, ns per step (per window where the trace has no steps)."""

    step_ns: float
    passes: int
    host_step_ns: float | None = None  # what ``ProfilerStep`` would say of as many steps as were recorded


@dataclass(frozen=True)
class WhatIf:
    """What a change is worth per step, ns: ``saved_ns`` is what the replay says, but no more than the bound."""

    now_ns: float
    saved_ns: float
    replayed_ns: float
    bound_ns: float
    freed_host_ns: float  # CPU time, waits included, that the change frees
    promise_ns: float = 0.0  # time of host and device that the change takes away: the more, the more it may bring
    reach_ns: float = float("inf")  # what it can add at most to any others; waits take over what others leave: no end
    host_step_ns: float | None = None  # what ``ProfilerStep`` would then say; None without steps

    @property
    def step_ns(self) -> float:
        """Step time with the change."""
        return self.now_ns - self.saved_ns

    @property
    def bounded(self) -> bool:
        """Whether the bound is what counts."""
        return self.replayed_ns > self.bound_ns * 1.02 + 1_000


class ProcessReplay:
    """Replay of one process.

    Parameters
    ----------
    view, figures
        The trace and its figures.
    graph
        The process's dependency graph.

    Attributes
    ----------
    repeated
        Whether the recorded steps are repeated until the pace settles. With one step, or none, the recording is run
        once, and what it takes from the first call to the end of the last work stands for the step.
    error_pct
        How far the unchanged replay is off the recording, % of the step (mean over the steps, of the window without).
        Close to 0 by construction; `held_out_pct` is the measure of accuracy.
    contradicted
        The recording shows a far longer period than the replay, in a loop that waits for the device in each step: such
        a loop cannot run ahead, so that the replay lacks part of it. ``error_pct`` is then at least the difference.
    """

    def __init__(self, view: View, figures: Figures, graph: Graph) -> None:
        self.graph = graph
        self.view = view
        self.changes = Changes(view, graph)
        counted = [i for i, row in enumerate(graph.step_rows) if figures.step_figures.counted[row]]
        self.counted = tuple(counted or range(len(graph.step_rows)))
        self.repeated = len(self.counted) >= MIN_STEPS
        self.blocks = self._chosen_blocks()
        self._lead_ns = self._lead()
        calls_per_step = max(1, round(graph.waits.loader_calls / max(1, len(graph.step_rows))))
        calls = calls_per_step * self.unit_count if self.repeated else 0
        self._chains = loader_chains(graph.waits, included(graph, self.blocks), calls)
        self._per_pass = max(1, self._launches_per_pass())
        self._folder = Folder(graph)
        self._looked = False
        self._crowded: list[frozenset[int]] = []  # changes with which a queue was full; with more it mostly is, too
        self._programs: dict[tuple[bool, bytes], tuple[Program, Compiler]] = {}
        self._ends = self._step_ends()
        self._rounds = figures.step_figures.round_steps
        self._measured_ns = self._lengths(figures)
        self._kinds = _kinds(figures, graph)
        self.bounds = Bounds(view, graph, self._windows(), self.repeated, self._kinds)
        # What effects can be worth at most; they are kept, so that their ids stay their own.
        self._bounds_known: list[tuple[frozenset[int], float, tuple[Effect, ...]]] = []
        self.now = self.run(self.changes.nothing())
        if self._looked:  # as it is: then with any change, too
            self._crowded.append(frozenset())
            self._programs.pop((False, b""), None)
        self.error_pct = own_error(graph, self._folder, self.changes.nothing(), self.counted, self._pieces_in_order())
        self.own_error_pct = self.error_pct
        self.period_ns = self._period(figures)
        missing_pct = 100.0 * (1.0 - self.now.step_ns / self.period_ns) if self.period_ns else 0.0
        self.contradicted = missing_pct > MISSING_PCT
        if self.contradicted:
            self.error_pct = max(self.error_pct, missing_pct)

    @cached_property
    def held_out_pct(self) -> float | None:
        """How far steps are off that the replay was not given, predicted from the others, %; None with too few."""
        if not self.repeated:
            return None
        calls = max(1, round(self.graph.waits.loader_calls / max(1, len(self.graph.step_rows))))
        halves = in_turn(self.counted, self._rounds)
        return held_out_error(self.graph, self._folder, self.changes.nothing(), halves, self._measured_ns, calls)

    @property
    def unit_count(self) -> int:
        """Steps per pass; 1 for a window."""
        return max(1, len(self.counted)) if self.repeated else 1

    def what_if(self, effects: Iterable[Effect], saving_only: bool = False) -> WhatIf:
        """Replay with the effects of some fixes.

        Parameters
        ----------
        saving_only
            The bounds are worked out only where they could cut the saving; else they are left infinite.
        """
        effects = tuple(effects)
        change = self.changes.of(effects)
        asked = frozenset(map(id, effects))
        after = self.run(change, any(full <= asked for full in self._crowded), rough=saving_only)
        if self._looked:
            self._crowded.append(asked)
        now, saved = self.now.step_ns, self.now.step_ns - after.step_ns
        # More changes are worth no less: what some of them can be worth together, all of them can be.
        sure = max((most for known, most, _ in self._bounds_known if known <= asked), default=0.0)
        if saving_only and saved <= sure:
            return WhatIf(now, max(0.0, min(saved, now)), saved, float("inf"), 0.0, host_step_ns=after.host_step_ns)
        if saving_only:
            most = self.most_ns(effects, change)
            return WhatIf(now, max(0.0, min(saved, most, now)), saved, most, 0.0, host_step_ns=after.host_step_ns)
        most, freed, promise, reach = (value / self.unit_count for value in self.bounds.of(change))
        self._bounds_known.append((asked, most, effects))
        return WhatIf(now, max(0.0, min(saved, most, now)), saved, most, freed, promise, reach, after.host_step_ns)

    def most_ns(self, effects: tuple[Effect, ...], change: Change | None = None) -> float:
        """Bound of what the effects of some fixes save, ns per step."""
        asked = frozenset(map(id, effects))
        most = next((most for known, most, _ in self._bounds_known if known == asked), None)
        if most is None:
            most = self.bounds.of(change or self.changes.of(effects))[0] / self.unit_count
            self._bounds_known.append((asked, most, effects))
        return most

    def run(self, change: Change, crowded: bool = False, rough: bool = False) -> Outcome:
        """Replay with a change.

        Parameters
        ----------
        crowded
            A queue is likely to be full, so that launches look for room at once.
        rough
            As in `settle`.
        """
        if not len(self.blocks):
            return Outcome(0.0, 0)
        # Few fixes ever fill a queue: launches look for room only where a run without has shown that one was full.
        for looks in (True,) if crowded else (False, True):
            program, compiler = self._program(change, looks)
            plan = compiler.compile(change)
            pace = settle(program, plan, self._per_pass, rough) if self.repeated else once(program, plan)
            if pace is not None:
                break
        else:
            raise AssertionError("a program that looks for room has an end")
        self._looked = looks
        host = self._host_step(program, plan, pace.delays)
        if self.repeated:
            return Outcome(pace.pass_ns / self.unit_count, pace.passes, host)
        return Outcome(pace.pass_ns - self._lead_ns, pace.passes, host)

    # -- parts ----------------------------------------------------------------------------------------------------

    def _program(self, change: Change, looks: bool) -> tuple[Program, Compiler]:
        """Program with some copies on a stream of their own; those without, and the last one with, are kept."""
        key = (looks, np.packbits(change.moved).tobytes() if change.moves else b"")
        found = self._programs.get(key)
        if found is None:
            graph = overlapped(self.graph, change.moved, self._kinds) if key[1] else self.graph
            like = next((kept[0] for old, kept in self._programs.items() if old[1] == key[1]), None)
            program = make_program(graph, self.blocks, self.repeated, self._chains, looks, like)
            found = program, Compiler(program, Folder(graph) if key[1] else self._folder)
            self._programs = {old: kept for old, kept in self._programs.items() if old[1] in (b"", key[1])}
            self._programs[key] = found
        return found

    def _lengths(self, figures: Figures) -> dict[int, int]:
        """Measured length of the counted steps, of whole rounds: the period; the host step where none has one."""
        own, rows = figures.step_figures, self.graph.step_rows
        turns = [self.counted[at : at + self._rounds] for at in range(0, len(self.counted), self._rounds)]
        whole = [i for turn in turns if all(i < len(rows) and own.period_ns[rows[i]] > 0 for i in turn) for i in turn]
        known = {i: int(own.period_ns[rows[i]]) for i in whole}
        return known or {i: int(own.dur_ns[rows[i]]) for i in self.counted if i < len(rows)}

    def _period(self, figures: Figures) -> float:
        """Recorded period of a loop that cannot run ahead of its device, ns; 0 where it may, or nothing is known."""
        own = figures.step_figures
        rows = np.array([self.graph.step_rows[i] for i in self.counted], dtype=np.int64)
        rows = rows[own.period_ns[rows] > 0]
        if not self.repeated or not len(rows) or (own.sync_wait_ns[rows] <= 0).any():
            return 0.0
        # The mean alone may hold what an outlier beside a counted step took; the median alone is one of two lengths.
        return min(float(np.mean(own.period_ns[rows])), sets.median(own.period_ns[rows]))

    def _step_ends(self) -> tuple[I32, I32]:
        """First block of each counted step, and the last one of its main lane."""
        graph = self.graph
        own = self.blocks[(graph.block_lane[self.blocks] == 0) & (graph.block_step[self.blocks] >= 0)]
        last = np.full(len(graph.step_rows), -1, dtype=np.int32)
        last[graph.block_step[own]] = own
        known = [i for i in self.counted if last[i] >= 0]
        return graph.step_begin[known], last[known]

    def _host_step(self, program: Program, plan: Plan, delays: list[float]) -> float | None:
        """Mean of the counted steps on the host in the first pass, which starts with an idle device, ns."""
        first, last = self._ends
        if not len(first):
            return None
        at_first, at_last = (
            np.array([delays[segment] for segment in program.segment_of[blocks].tolist()]) for blocks in self._ends
        )
        length = (at_last + plan.begin[last] + plan.length[last]) - (at_first + plan.begin[first])
        return float(length.sum()) / len(length)

    def _chosen_blocks(self) -> I32:
        graph = self.graph
        if not graph.step_rows:
            return np.arange(graph.block_count, dtype=np.int32)
        return sets.among(graph.block_step, self.counted).nonzero()[0].astype(np.int32)

    def _lead(self) -> int:
        """Time before the first device work of a window without steps: start-up, which is no part of the loop."""
        graph = self.graph
        if graph.step_rows or not len(graph.work):
            return 0
        return max(0, int(graph.work.start_ns.min() - graph.block_ns.min()))

    def _windows(self) -> Spans:
        """Replayed time."""
        graph = self.graph
        if graph.step_rows:
            rows = [graph.step_rows[i] for i in self.counted]
            spans = union(graph.steps.start_ns[rows], graph.steps.end_ns[rows])
            if self.repeated or not len(spans):
                return spans
            first, last = int(spans.start[0]), int(spans.end[-1])
        else:
            first, last = int(graph.block_ns.min()), int(graph.lane_end_ns.max())
        inside = (graph.work.launch_ns >= first) & (graph.work.launch_ns < last)
        return span(first, max([last, *graph.work.end_ns[inside].tolist()]))

    def _pieces_in_order(self) -> np.ndarray:
        chosen = np.zeros(self.graph.block_count, dtype=bool)
        chosen[self.blocks] = True
        graph = self.graph
        inside: np.ndarray = chosen[graph.block_of_group][graph.group_of] if len(graph.work) else chosen[:0]
        return inside

    def _launches_per_pass(self) -> int:
        inside = self._pieces_in_order()
        if not len(inside):
            return 0
        return int(np.bincount(self.graph.work.stream[inside]).max(initial=0))


def _kinds(figures: Figures, graph: Graph) -> np.ndarray:
    """SyncKind of each wait, -1 for waits that are no sync points."""
    row = graph.waits.sync_id
    kinds: np.ndarray = np.full(len(row), -1, dtype=np.int16)
    kinds[row >= 0] = figures.syncs.kind[row[row >= 0]]
    return kinds


class Replay:
    """Replay of a trace: of each process that runs steps, or, without steps, of the busiest one.

    Where several processes (ranks of one run) are in the trace, the slowest one sets the pace; so it is with threads of
    one process (stages of a pipeline) that run steps of their own at the same time.
    """

    def __init__(self, trace: Trace, figures: Figures) -> None:
        view = view_of(trace)
        self.parts: list[ProcessReplay] = []
        for thread in main_threads(view, figures):
            graph = build_graph(view, figures, thread)
            if graph is not None and graph.block_count:
                memory.give_back_between(len(trace.slices))
                self.parts.append(ProcessReplay(view, figures, graph))
        self.parts = [p for p in self.parts if p.now.step_ns > 0]

    def __bool__(self) -> bool:
        return bool(self.parts)

    @property
    def repeated(self) -> bool:
        """Whether the pace is that of repeated steps."""
        return all(p.repeated for p in self.parts)

    @property
    def has_steps(self) -> bool:
        """Whether figures are per step (else per recorded window)."""
        return all(p.graph.step_rows for p in self.parts)

    @property
    def error_pct(self) -> float:
        """Largest replay error of the processes, %."""
        return max(p.own_error_pct if self._is_held_up(p) else p.error_pct for p in self.parts)

    @property
    def contradicted(self) -> bool:
        """Whether the recording contradicts the pace of any process (see `ProcessReplay`)."""
        return any(p.contradicted and not self._is_held_up(p) for p in self.parts)

    @property
    def held_out_pct(self) -> float | None:
        """How far steps are off that were predicted from the others, %: of the worst process; None where unknown."""
        each = [p.held_out_pct for p in self.parts if not self._is_held_up(p)]
        return max((one for one in each if one is not None), default=None) if None not in each else None

    def _is_held_up(self, part: ProcessReplay) -> bool:
        """Whether a process takes longer than its own work, as it keeps the pace of the slowest one."""
        return part.contradicted and (1.0 - MISSING_PCT / 100.0) * part.period_ns <= self.step_ns

    @property
    def step_ns(self) -> float:
        """Sustained step time of the recording, ns."""
        return max(p.now.step_ns for p in self.parts)

    def what_if(self, effects: Iterable[Effect], saving_only: bool = False) -> WhatIf:
        """Replay with the effects of fixes; the process that is then the slowest sets the pace.

        With ``saving_only`` the bounds are left out, but where they cut the saving (see `ProcessReplay.what_if`).
        """
        effects = tuple(effects)
        each = [p.what_if(effects, saving_only) for p in self.parts]
        slowest = max(each, key=lambda w: w.step_ns)
        saved = max(0.0, self.step_ns - slowest.step_ns)
        hosts = [w.host_step_ns for w in each if w.host_step_ns is not None]
        return replace(
            slowest,
            now_ns=self.step_ns,
            saved_ns=saved,
            promise_ns=max(w.promise_ns for w in each),
            reach_ns=max(w.reach_ns for w in each),
            host_step_ns=max(hosts) if hosts else None,
        )

    def limit_ns(self, effects: Iterable[Effect]) -> float:
        """Bound of what the effects of fixes save, ns per step: cheaper than a replay."""
        effects = tuple(effects)
        return self.step_ns - max(p.now.step_ns - p.most_ns(effects) for p in self.parts)

    def host_step_ns(self, effects: Iterable[Effect]) -> float | None:
        """What ``ProfilerStep`` would say with the effects of fixes, ns; None without steps."""
        return self.what_if(effects).host_step_ns

    def with_effects(self, effects: Iterable[Effect]) -> float:
        """Sustained step time with the effects of fixes, ns."""
        return self.what_if(effects).step_ns
