"""Runs the blocks of a graph: once over the recording, or over its steps again and again.

The state is one clock per lane and the end of the queued work per stream. Everything that a block does to it has
been folded beforehand (`compile_plan`) into its length and, per stream, two numbers: the work's total time, and the
earliest end that its launches allow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.intervals import union
from core.replay.change import Change
from core.replay.graph import Graph
from core.replay.hosttime import host_time
from core.replay.waits import QUEUE_LIMIT
from core.tables import F64, I32

_NEVER = float("-inf")
_LONG_AGO = -1e18  # end of work that never ran; finite, so that differences of it are


# Slots to wait for, with lags; and the slot that keeps when the block began, -1 for none.
BlockWait = tuple[list[tuple[int, float]], int]


@dataclass(frozen=True, eq=False)
class Plan:
    """Numbers of every block and group, as Python lists: the engine's loop reads them one by one."""

    length: list[float]  # host time of each block, ns
    total: list[float]  # per group: time its work takes back to back, ns
    earliest: list[float]  # per group: end of its work when the stream is free, from the block's start, ns
    deps: list[BlockWait | None]  # per block: what it waits for before it begins
    floors: list[list[int] | None]  # per group: slots its start waits for


def compile_plan(graph: Graph, change: Change, chains: dict[int, tuple[int, float]]) -> Plan:
    """Fold a graph with a change into the numbers that the engine runs on.

    Parameters
    ----------
    chains
        Waits for the loader: row of the wait -> row of the wait before it and the time between their ends, ns.
    """
    waits = graph.waits
    counted = waits.depends
    host_at_block = np.empty(graph.block_count)
    host_at_next = np.empty(graph.block_count)
    piece_host = np.zeros(len(graph.work))
    group_block = np.repeat(np.arange(graph.block_count), np.diff(graph.first_group))
    block_of_piece = group_block[graph.group_of] if len(graph.work) else graph.group_of
    for lane in range(graph.lanes.count):
        rows = np.flatnonzero(counted & (waits.lane == lane))
        base = union(waits.start_ns[rows], waits.end_ns[rows])
        time = host_time([(base, 0.0), *change.speeds[lane]])
        own = np.flatnonzero(graph.block_lane == lane)
        host_at_block[own] = time(graph.block_ns[own])
        following = graph.block_next[own]
        next_ns = np.where(following >= 0, graph.block_ns[following], graph.lane_end_ns[lane])
        host_at_next[own] = time(np.maximum(next_ns, graph.block_ns[own]))
        pieces = np.flatnonzero(graph.block_lane[block_of_piece] == lane) if len(graph.work) else own[:0]
        piece_host[pieces] = time(graph.work.launch_ns[pieces]) - host_at_block[block_of_piece[pieces]]
    total, earliest = _fold_groups(graph, change, piece_host)
    deps = _block_deps(graph, change, chains)
    floors: list[list[int] | None] = [None] * len(graph.group_stream)
    for group, dep in zip(graph.floor_group.tolist(), graph.floor_dep.tolist(), strict=True):
        floors[group] = [*(floors[group] or ()), dep]
    length = np.maximum(host_at_next - host_at_block, 0.0).tolist()
    return Plan(length, total.tolist(), earliest.tolist(), deps, floors)


def _fold_groups(graph: Graph, change: Change, piece_host: F64) -> tuple[F64, F64]:
    """Total time and earliest end of each group's work."""
    if not len(graph.pieces):
        return np.zeros(0), np.zeros(0)
    work, pieces = graph.work, graph.pieces
    dur = (work.dur_ns * change.scale + change.fused_ns)[pieces]
    gone = change.gone[pieces]
    dur[gone] = 0.0
    step = np.maximum(dur + work.gap_ns[pieces], 0.0)
    step[gone] = 0.0
    ready = piece_host[pieces] + work.latency_ns[pieces] + dur
    ready[gone] = _NEVER
    done = np.cumsum(step)
    heads = graph.first_piece[:-1]
    before = np.concatenate(([0.0], done))[heads]
    ends = done[graph.first_piece[1:] - 1]
    sizes = np.diff(graph.first_piece)
    earliest = np.maximum.reduceat(ready + (np.repeat(ends, sizes) - done), heads)
    return ends - before, earliest


def _block_deps(graph: Graph, change: Change, chains: dict[int, tuple[int, float]]) -> list[BlockWait | None]:
    """What each block waits for before it begins, and where it leaves its own time for others."""
    waits, groups = graph.waits, len(graph.group_stream)
    of_wait: dict[int, list[tuple[int, float]]] = {}
    slots = graph.group_of[waits.dep_piece].tolist()
    for row, slot, lag in zip(waits.dep_of.tolist(), slots, waits.dep_lag_ns.tolist(), strict=True):
        if not change.dropped[row] and slot >= 0:
            of_wait.setdefault(row, []).append((slot, lag))
    for row, (before, lag) in chains.items():
        if not change.dropped[row]:
            of_wait.setdefault(row, []).append((groups + before, lag * change.pace[row]))
    marks = groups + len(waits)
    for row in np.flatnonzero((waits.mark >= 0) & ~change.dropped).tolist():
        of_wait.setdefault(row, []).append((marks + int(waits.mark[row]), float(waits.mark_lag_ns[row])))
    deps: list[BlockWait | None] = []
    for row, mark in zip(graph.block_wait.tolist(), graph.block_mark.tolist(), strict=True):
        found = of_wait.get(row) if row >= 0 else None
        keep = groups + row if row in chains else marks + mark if mark >= 0 else -1
        deps.append((found or [], keep) if found or keep >= 0 else None)
    return deps


@dataclass(frozen=True, eq=False)
class Order:
    """Blocks to run in one pass, and how far back in its queue each group looks for room."""

    blocks: list[int]
    room: list[tuple[int, int] | None]  # per group: passes back and group whose end makes room, None never


def make_order(graph: Graph, blocks: I32, repeated: bool) -> Order:
    """Prepare a pass over some blocks.

    Parameters
    ----------
    blocks
        Blocks in running order.
    repeated
        Whether passes follow each other, so that the queue of the pass before is still there.
    """
    n_groups = len(graph.group_stream)
    room: list[tuple[int, int] | None] = [None] * n_groups
    chosen = np.zeros(graph.block_count, dtype=bool)
    chosen[blocks] = True
    group_block = np.repeat(np.arange(graph.block_count), np.diff(graph.first_group))
    sizes = np.diff(graph.first_piece)
    for stream in np.unique(graph.group_stream):
        own = np.flatnonzero((graph.group_stream == stream) & chosen[group_block])
        if not len(own):
            continue
        upto = np.cumsum(sizes[own])
        count = int(upto[-1])
        wanted = upto - sizes[own] + 1 - QUEUE_LIMIT  # this many must have ended before the group's first launch
        back = np.where(wanted <= 0, (-wanted) // count + 1, 0)
        # The end of single pieces is not kept; that of the group that ends nearest stands for it.
        half = sizes[own] // 2
        targets = own[np.minimum(np.searchsorted(upto + half, wanted + back * count), len(own) - 1)]
        if not repeated:
            own, back, targets = own[back == 0], back[back == 0], targets[back == 0]
        for group, passes, target in zip(own.tolist(), back.tolist(), targets.tolist(), strict=True):
            room[group] = (passes, target)
    return Order(blocks.tolist(), room)


@dataclass(frozen=True, eq=False)
class GraphLists:
    """Columns of a graph as Python lists."""

    rows: list[tuple[int, int, int]]  # per block: lane, first group, one past the last group
    stream: list[int]  # per group


@dataclass(eq=False)
class State:
    """Clocks of a running replay; ``history`` keeps the ends of the groups of the last passes."""

    lanes: list[float]
    streams: list[float]
    slots: list[float]
    began: list[float]
    history: list[list[float]]


def fresh_state(graph: Graph, start: list[float] | None = None) -> State:
    """Return the state before the first block."""
    n_slots = len(graph.group_stream) + len(graph.waits) + len(graph.waits.mark_ns)
    return State(
        lanes=start or [0.0] * graph.lanes.count,
        streams=[_LONG_AGO] * len(graph.work.stream_track),
        slots=[_LONG_AGO] * n_slots,
        began=[0.0] * graph.block_count,
        history=[],
    )


def run_pass(graph_lists: GraphLists, plan: Plan, order: Order, state: State) -> None:
    """Run all blocks of an order once, moving the state on."""
    lanes, streams, slots, began = state.lanes, state.streams, state.slots, state.began
    stream_of, rows = graph_lists.stream, graph_lists.rows
    length, total, earliest, deps, floors = plan.length, plan.total, plan.earliest, plan.deps, plan.floors
    room, history = order.room, state.history
    passes = len(history)
    for block in order.blocks:
        lane, first, last = rows[block]
        now = lanes[lane]
        waiting = deps[block]
        if waiting is not None:
            for slot, lag in waiting[0]:
                until = slots[slot] + lag
                if until > now:
                    now = until
            if waiting[1] >= 0:
                slots[waiting[1]] = now
        for group in range(first, last):
            queue = room[group]
            if queue is not None and queue[0] <= passes:
                until = history[-queue[0]][queue[1]] if queue[0] else slots[queue[1]]
                if until > now:
                    now = until
            stream = stream_of[group]
            end = streams[stream]
            floor = floors[group]
            if floor is not None:
                for slot in floor:
                    if slots[slot] > end:
                        end = slots[slot]
            end += total[group]
            free = now + earliest[group]
            if free > end:
                end = free
            streams[stream] = slots[group] = end
        began[block] = now
        lanes[lane] = now + length[block]


def graph_lists(graph: Graph) -> GraphLists:
    """Return the columns that the engine's loop reads."""
    first = graph.first_group.tolist()
    rows = list(zip(graph.block_lane.tolist(), first[:-1], first[1:], strict=True))
    return GraphLists(rows, graph.group_stream.tolist())
