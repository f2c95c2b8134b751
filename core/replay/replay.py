"""The replay of one trace: the pace of its loop as it is, and as it would be with fixes in place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from core.figures.lookup import View
from core.figures.model import Figures
from core.intervals import Spans, span, union
from core.kinds import SliceKind
from core.replay.bounds import Bounds
from core.replay.change import Change, Changes
from core.replay.engine import (
    GraphLists,
    Order,
    Plan,
    compile_plan,
    fresh_state,
    graph_lists,
    make_order,
    run_pass,
)
from core.replay.graph import Graph, build_graph
from core.replay.overlap import overlapped
from core.replay.waits import QUEUE_LIMIT, loader_chains
from core.suggestions import Effect
from core.tables import I32
from core.trace import Trace

MIN_STEPS = 2  # one step says nothing about how steps overlap
_MAX_PASSES = 40
_SETTLED = 5e-4  # change of the pace between two passes below which it has settled


@dataclass(frozen=True)
class Outcome:
    """Result of one replay, ns per step (per window where the trace has no steps)."""

    step_ns: float
    passes: int


@dataclass(frozen=True, eq=False)
class Loop:
    """All that a run reads."""

    graph: Graph
    lists: GraphLists
    plan: Plan
    order: Order


@dataclass(frozen=True)
class WhatIf:
    """What a change is worth per step, ns: ``saved_ns`` is what the replay says, but no more than the bound."""

    now_ns: float
    saved_ns: float
    replayed_ns: float
    bound_ns: float
    freed_host_ns: float  # CPU time, waits included, that the change frees

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
    """

    def __init__(self, view: View, figures: Figures, graph: Graph) -> None:
        self.graph = graph
        self.view = view
        self.changes = Changes(view, graph)
        counted = [i for i, row in enumerate(graph.step_rows) if figures.step_figures.counted[row]]
        self.counted = tuple(counted or range(len(graph.step_rows)))
        self.repeated = len(self.counted) >= MIN_STEPS
        self.blocks = self._chosen_blocks()
        self._lists = graph_lists(graph)
        self._order = make_order(graph, self.blocks, self.repeated)
        self._lead_ns = self._lead()
        calls_per_step = max(1, round(graph.waits.loader_calls / max(1, len(graph.step_rows))))
        calls = calls_per_step * self.unit_count if self.repeated else 0
        self._chains = loader_chains(graph.waits, self._included(self.blocks), calls)
        self._kinds = _kinds(figures, graph)
        self.bounds = Bounds(view, graph, self._windows(), self.repeated, self._kinds)
        self.now = self.run(self.changes.nothing())
        self.error_pct = self._error()

    @property
    def unit_count(self) -> int:
        """Steps per pass; 1 for a window."""
        return max(1, len(self.counted)) if self.repeated else 1

    def what_if(self, effects: Iterable[Effect]) -> WhatIf:
        """Replay with the effects of some fixes."""
        change = self.changes.of(effects)
        saved = self.now.step_ns - self.run(change).step_ns
        most = self.bounds.most_ns(change) / self.unit_count
        freed = self.bounds.freed_ns(change) / self.unit_count
        return WhatIf(self.now.step_ns, max(0.0, min(saved, most, self.now.step_ns)), saved, most, freed)

    def host_step_ns(self, effects: Iterable[Effect]) -> float | None:
        """What ``ProfilerStep`` would say of as many steps as were recorded, ns: mean of the counted steps.

        None without steps.
        """
        graph = self.graph
        if not graph.step_rows:
            return None
        plan = compile_plan(graph, self.changes.of(effects), self._chains)
        state = fresh_state(graph)
        run_pass(self._lists, plan, self._order, state)
        began = np.array(state.began)
        steps = np.flatnonzero(graph.block_step[self.blocks] >= 0)
        last: dict[int, float] = {}
        for block in self.blocks[steps].tolist():
            if graph.block_lane[block] == 0:
                last[int(graph.block_step[block])] = began[block] + plan.length[block]
        lengths = [last[i] - began[graph.step_begin[i]] for i in self.counted if i in last]
        return float(np.mean(lengths)) if lengths else None

    def run(self, change: Change) -> Outcome:
        """Replay with a change."""
        if not len(self.blocks):
            return Outcome(0.0, 0)
        graph, lists, order = self.graph, self._lists, self._order
        if change.moved.any():
            graph = overlapped(graph, change.moved, self._kinds)
            lists, order = graph_lists(graph), make_order(graph, self.blocks, self.repeated)
        plan = compile_plan(graph, change, self._chains)
        loop = Loop(graph, lists, plan, order)
        return self._settle(loop) if self.repeated else self._once(loop)

    # -- parts ----------------------------------------------------------------------------------------------------

    def _chosen_blocks(self) -> I32:
        graph = self.graph
        if not graph.step_rows:
            return np.arange(graph.block_count, dtype=np.int32)
        return np.flatnonzero(np.isin(graph.block_step, self.counted)).astype(np.int32)

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
            if self.repeated:
                return spans
            first, last = int(spans.start[0]), int(spans.end[-1])
        else:
            first, last = int(graph.block_ns.min()), int(graph.lane_end_ns.max())
        inside = (graph.work.launch_ns >= first) & (graph.work.launch_ns < last)
        return span(first, max([last, *graph.work.end_ns[inside].tolist()]))

    def _included(self, blocks: I32) -> np.ndarray:
        rows = np.zeros(len(self.graph.waits), dtype=bool)
        waits = self.graph.block_wait[blocks]
        rows[waits[waits >= 0]] = True
        return rows

    def _pieces_in_order(self) -> np.ndarray:
        chosen = np.zeros(self.graph.block_count, dtype=bool)
        chosen[self.blocks] = True
        group_block = np.repeat(np.arange(self.graph.block_count), np.diff(self.graph.first_group))
        inside: np.ndarray = chosen[group_block][self.graph.group_of] if len(self.graph.work) else chosen[:0]
        return inside

    def _once(self, loop: Loop) -> Outcome:
        state = fresh_state(loop.graph)
        run_pass(loop.lists, loop.plan, loop.order, state)
        return Outcome(max([state.lanes[0], *state.streams]) - self._lead_ns, 1)

    def _settle(self, loop: Loop) -> Outcome:
        """Repeat the steps until the pace of the slowest part no longer changes."""
        state = fresh_state(loop.graph)
        groups = len(loop.graph.group_stream)
        per_pass = max(1, self._launches_per_pass())
        fill = min(_MAX_PASSES - 4, QUEUE_LIMIT // per_pass + 1)  # passes until a queue can be full
        marks: list[np.ndarray] = []
        for number in range(_MAX_PASSES):
            run_pass(loop.lists, loop.plan, loop.order, state)
            state.history.append(state.slots[:groups])
            marks.append(np.array([state.lanes[0], *state.streams]))
            if number < 2:
                continue
            last, before = marks[-1] - marks[-2], marks[-2] - marks[-3]
            pace = float(last.max())
            steady = bool((np.abs(last - before) <= _SETTLED * max(pace, 1.0)).all())
            level = float(last[0]) >= (1 - 10 * _SETTLED) * pace
            if steady and (level or number >= fill + 3):
                break
        tail = max(1, min(4, (len(marks) - 1) // 2))
        rise = (marks[-1] - marks[-1 - tail]) / tail
        return Outcome(float(rise.max()) / self.unit_count, len(marks))

    def _launches_per_pass(self) -> int:
        inside = self._pieces_in_order()
        if not len(inside):
            return 0
        return int(np.bincount(self.graph.work.stream[inside]).max(initial=0))

    def _error(self) -> float:
        """Replay the whole recording once, unchanged, and compare it with itself."""
        graph = self.graph
        everything = np.arange(graph.block_count, dtype=np.int32)
        chains = loader_chains(graph.waits, np.ones(len(graph.waits), dtype=bool), 0)
        plan = compile_plan(graph, self.changes.nothing(), chains)
        first = [int(graph.block_ns[np.argmax(graph.block_lane == k)]) for k in range(graph.lanes.count)]
        state = fresh_state(graph, [float(t) for t in first])
        for row, (before, _) in chains.items():
            if chains[row][1] == float("-inf"):
                slot = len(graph.group_stream) + before
                block = int(np.flatnonzero(graph.block_wait == row)[0])
                plan.deps[block] = ([(slot, float(graph.waits.end_ns[row]))], len(graph.group_stream) + row)
                state.slots[slot] = 0.0
        run_pass(self._lists, plan, make_order(graph, everything, repeated=False), state)
        begin, end = np.array(state.began)[graph.step_begin], np.array(state.began)[graph.step_end]
        counted = list(self.counted)
        if not counted:
            origin = min(first)
            measured = max(int(graph.lane_end_ns[0]), int(graph.work.end_ns.max(initial=0))) - origin
            replayed = max([state.lanes[0], *state.streams]) - origin
            return float(100.0 * abs(replayed - measured) / max(measured, 1))
        rows = list(graph.step_rows)
        measured_steps = (graph.steps.end_ns - graph.steps.start_ns)[rows][counted]
        off = np.abs((end - begin)[counted] - measured_steps)
        host = float(off.mean() / max(float(measured_steps.mean()), 1.0))
        return 100.0 * max(host, self._device_error(np.array(state.slots), float(measured_steps.sum())))

    def _device_error(self, slots: np.ndarray, total_ns: float) -> float:
        """How far the last work of the counted steps is off, as a share of those steps."""
        graph = self.graph
        inside = np.flatnonzero(self._pieces_in_order())
        if not len(inside):
            return 0.0
        last = inside[np.argmax(graph.work.end_ns[inside])]
        return abs(float(slots[graph.group_of[last]]) - float(graph.work.end_ns[last])) / max(total_ns, 1.0)


def _kinds(figures: Figures, graph: Graph) -> np.ndarray:
    """SyncKind of each wait, -1 for waits that are no sync points."""
    row = graph.waits.sync_id
    kinds: np.ndarray = np.full(len(row), -1, dtype=np.int16)
    kinds[row >= 0] = figures.syncs.kind[row[row >= 0]]
    return kinds


class Replay:
    """Replay of a trace: of each process that runs steps, or, without steps, of the busiest one.

    Where several processes (ranks of one run) are in the trace, the slowest one sets the pace.
    """

    def __init__(self, trace: Trace, figures: Figures) -> None:
        view = View(trace)
        self.parts: list[ProcessReplay] = []
        for thread in _main_threads(view, figures):
            graph = build_graph(view, figures, thread)
            if graph is not None and graph.block_count:
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
        return max(p.error_pct for p in self.parts)

    @property
    def step_ns(self) -> float:
        """Sustained step time of the recording, ns."""
        return max(p.now.step_ns for p in self.parts)

    def what_if(self, effects: Iterable[Effect]) -> WhatIf:
        """Replay with the effects of fixes; the process that is then the slowest sets the pace."""
        effects = tuple(effects)
        slowest = max((p.what_if(effects) for p in self.parts), key=lambda w: w.step_ns)
        saved = max(0.0, self.step_ns - slowest.step_ns)
        return WhatIf(self.step_ns, saved, slowest.replayed_ns, slowest.bound_ns, slowest.freed_host_ns)

    def host_step_ns(self, effects: Iterable[Effect]) -> float | None:
        """What ``ProfilerStep`` would say with the effects of fixes, ns; None without steps."""
        effects = tuple(effects)
        found = [p.host_step_ns(effects) for p in self.parts]
        known = [step for step in found if step is not None]
        return max(known) if known else None

    def with_effects(self, effects: Iterable[Effect]) -> float:
        """Sustained step time with the effects of fixes, ns."""
        return self.what_if(effects).step_ns


def _main_threads(view: View, figures: Figures) -> list[int]:
    """One thread per process: that of its steps; without steps the one that launches most, else the busiest."""
    if len(figures.steps):
        threads, counts = np.unique(figures.steps.thread_id, return_counts=True)
        process = view.trace.threads.process_id[threads]
        return [int(threads[process == p][np.argmax(counts[process == p])]) for p in np.unique(process[threads >= 0])]
    owners = view.thread[view.trace.links.launched_by]
    if not len(owners):
        owners = view.thread[view.host_calls]
    if not len(owners):
        owners = view.thread[view.by_kind(SliceKind.CPU_OP)]
    owners = owners[owners >= 0]
    return [int(np.bincount(owners).argmax())] if len(owners) else []
