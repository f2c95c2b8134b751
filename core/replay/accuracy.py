"""How far a replay is off: against the recording that it is made of, and against steps that it was not given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from core import sets
from core.replay.batches import loader_chains
from core.replay.change import Change
from core.replay.engine import Compiler, Folder, Plan
from core.replay.graph import Graph
from core.replay.pace import settle
from core.replay.program import Program, make_program
from core.replay.running import State, fresh_state, run_pass
from core.tables import F64, I32, Bool

# Two halves of the steps foretell each other; a half of one step would not tell how steps overlap.
MIN_HELD_OUT_STEPS = 4

_Chains = dict[int, tuple[int, float]]


def included(graph: Graph, blocks: I32) -> Bool:
    """bool[n_waits]: waits with which one of the blocks begins."""
    rows = np.zeros(len(graph.waits), dtype=bool)
    waits = graph.block_wait[blocks]
    rows[waits[waits >= 0]] = True
    return rows


def in_turn(counted: Sequence[int], rounds: int) -> tuple[list[int], list[int]]:
    """Halves of the counted steps: every other one, or every other round where so many steps make one."""
    first = [step for at, step in enumerate(counted) if at // rounds % 2 == 0]
    return first, [step for step in counted if step not in first]


def held_out_error(
    graph: Graph,
    folder: Folder,
    nothing: Change,
    halves: tuple[list[int], list[int]],
    measured_ns: Mapping[int, int],
    loader_calls: int,
) -> float | None:
    """Predict one half of the steps from the other, and the other way round.

    Unlike `own_error` this compares the pace of an endless loop with steps whose durations, delays and gaps it has not
    seen: what is off is what the replay gets wrong and what steps differ by.

    Parameters
    ----------
    nothing
        The change that changes nothing.
    halves
        Positions of the counted steps among the graph's steps, see `in_turn`.
    measured_ns
        Measured length of those whose length is known, by position.
    loader_calls
        Calls of the loader per step.

    Returns
    -------
    float or None
        Mean difference, % of what was measured; None with fewer than four steps, no length to compare with, or a half
        that waits for the loader too seldom to show its pace.
    """
    lengths = [[measured_ns[i] for i in half if i in measured_ns] for half in halves]
    if sum(map(len, halves)) < MIN_HELD_OUT_STEPS or not all(lengths):
        return None
    off = []
    for given, held in zip(halves, reversed(lengths), strict=True):
        blocks = sets.among(graph.block_step, given).nonzero()[0].astype(np.int32)
        batches = np.count_nonzero(graph.waits.loader[included(graph, blocks)])
        if batches < 2 and graph.waits.loader.any():
            return None  # one batch waited for tells no pace of the loader
        chains = loader_chains(graph.waits, included(graph, blocks), loader_calls * len(given))
        program = make_program(graph, blocks, True, chains, True)
        inside = sets.among(graph.block_step, given)[graph.block_of_group]
        launches = np.bincount(graph.group_stream[inside], weights=np.diff(graph.first_piece)[inside], minlength=1)
        pace = settle(program, Compiler(program, folder).compile(nothing), max(1, int(launches.max())))
        if pace is None:
            raise AssertionError("a program that looks for room has an end")
        measured = sum(held) / len(held)
        off.append(abs(pace.pass_ns / len(given) - measured) / max(measured, 1.0))
    return 100.0 * sum(off) / len(off)


def own_error(graph: Graph, folder: Folder, nothing: Change, counted: Sequence[int], inside: Bool) -> float:
    """Replay the whole recording once, unchanged, and compare it with itself.

    Durations, delays and gaps are the recorded ones: the figure is close to 0 by construction, and where it is not, the
    order of things is not understood. It says nothing about how exactly a change is predicted.

    Parameters
    ----------
    counted
        Positions of the counted steps.
    inside
        Pieces, in the graph's order, that the counted steps launch.

    Returns
    -------
    float
        % of the step (mean over the counted steps), of the window without steps.
    """
    everything = np.arange(graph.block_count, dtype=np.int32)
    chains = loader_chains(graph.waits, np.ones(len(graph.waits), dtype=bool), 0)
    first = [float(graph.block_ns[np.argmax(graph.block_lane == k)]) for k in range(graph.lanes.count)]
    # Where launches of the recording found a queue full they wait as they did; none of the others has to look for room.
    program = make_program(graph, everything, False, chains, False)
    state, plan, delays = _run_all(program, folder, nothing, chains, first)
    at = np.array(delays)
    begin = at[program.segment_of[graph.step_begin]] + plan.begin[graph.step_begin]
    end = at[program.segment_of[graph.step_end]] + plan.begin[graph.step_end]
    if not len(counted):
        origin = min(first)
        measured = max(int(graph.lane_end_ns[0]), int(graph.work.end_ns.max(initial=0))) - origin
        replayed = max([state.lanes[0], *state.streams]) - origin
        return float(100.0 * abs(replayed - measured) / max(measured, 1))
    rows, steps = list(graph.step_rows), list(counted)
    measured_steps = (graph.steps.end_ns - graph.steps.start_ns)[rows][steps]
    off = np.abs((end - begin)[steps] - measured_steps)
    host = float(off.mean() / max(float(measured_steps.mean()), 1.0))
    return 100.0 * max(host, _device_error(graph, inside, np.array(state.slots), float(measured_steps.sum())))


def _run_all(
    program: Program, folder: Folder, nothing: Change, chains: _Chains, first: list[float]
) -> tuple[State, Plan, list[float]]:
    """Run the whole recording once, each lane from the time at which it began."""
    graph = program.graph
    state = fresh_state(program, list(first))
    state.streams = np.maximum(state.streams, graph.work.free_ns.astype(np.float64)).tolist()
    for row, (before, lag) in chains.items():
        if lag == float("-inf"):
            segment, slot = int(program.wait_segment[row]), len(graph.group_stream) + before
            _, keep, room = program.events[segment] or ([], -1, [])
            program.events[segment] = ([(slot, float(graph.waits.end_ns[row]))], keep, room)
            state.slots[slot] = 0.0
    plan = Compiler(program, folder).compile(nothing)
    return state, plan, run_pass(program, plan, state)


def _device_error(graph: Graph, inside: Bool, slots: F64, total_ns: float) -> float:
    """How far the last work of the counted steps is off, as a share of those steps."""
    rows = inside.nonzero()[0]
    if not len(rows):
        return 0.0
    last = rows[np.argmax(graph.work.end_ns[rows])]
    return abs(float(slots[graph.group_of[last]]) - float(graph.work.end_ns[last])) / max(total_ns, 1.0)
