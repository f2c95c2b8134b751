"""The dependency graph of a recording, folded into blocks.

A block is a stretch of one lane between two places where the lane meets something else: it waits, a step begins, or
device work starts that others wait for. Inside a block only two things happen: host time passes, and device work is
queued. Both are sums and running maxima, so that a block of any length costs the replay a handful of operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from core import memory, sets
from core.figures.lookup import View
from core.figures.model import Figures
from core.kinds import SliceKind
from core.replay.lanes import Lanes, find_lanes
from core.replay.releases import held_by_branches, held_by_collectives
from core.replay.waits import Waits, call_cost, find_waits, stream_waits
from core.replay.work import Work, collect_work, explain, freed, narrowed
from core.tables import I32, I64, Bool, StepTable

BLOCK_LAUNCHES = 32  # longest run of launches in one block: the queue's limit is checked once per block
ROUNDING_NS = 2_000  # times of older traces are whole microseconds
_BOUNDARY, _MARK, _WAIT, _FLOOR, _LAUNCH = 0, 1, 2, 3, 4


@dataclass(frozen=True, eq=False)
class Graph:
    """Blocks in the order in which they are run, and groups: the work of one stream in one block.

    ``groups`` of block ``b`` are ``[first_group[b], first_group[b + 1])``; ``pieces`` of group ``g`` are
    ``pieces[first_piece[g] : first_piece[g + 1]]`` in order of start.
    """

    steps: StepTable
    step_rows: tuple[int, ...]  # rows of the step table that belong to this process, in time order
    lanes: Lanes
    work: Work
    waits: Waits
    call_ns: int  # what a launch call costs that does not wait
    block_lane: I32
    block_ns: I64  # when the block began
    block_next: I32  # next block of the same lane, -1 for the last
    block_step: I32  # position in step_rows, -1 outside of steps
    block_wait: I32  # row of waits with which the block begins, -1
    block_mark: I32  # mark with which the block begins, -1
    step_begin: I32  # block with which each step begins
    step_end: I32  # block with which the time after each step begins, -1 when nothing follows
    lane_end_ns: I64
    first_group: I32
    group_stream: I32
    first_piece: I32
    pieces: I32
    group_of: I32  # int32[n_pieces]: group of a piece
    floor_piece: I32  # piece whose start waits for another stream ...
    floor_on: I32  # ... for the end of this piece; and both as groups:
    floor_group: I32  # group whose start waits for another stream ...
    floor_dep: I32  # ... for the end of this group

    @property
    def block_count(self) -> int:
        """Number of blocks."""
        return len(self.block_ns)

    @cached_property
    def block_of_group(self) -> I64:
        """Block of each group."""
        return np.arange(self.block_count).repeat(np.diff(self.first_group))

    @cached_property
    def waited_for(self) -> tuple[list[tuple[int, float]], list[int]]:
        """Groups that waits wait for, with the lags after their ends (ns), by wait; and the first of each wait's.

        The second list has one more entry, at the end.
        """
        group = self.group_of[self.waits.dep_piece]
        known = group >= 0
        held = list(zip(group[known].tolist(), self.waits.dep_lag_ns[known].tolist(), strict=True))
        first = self.waits.dep_of[known].searchsorted(np.arange(len(self.waits) + 1))
        return held, first.tolist()


def build_graph(view: View, figures: Figures, main_thread: int) -> Graph | None:
    """Build the graph of the process that a thread belongs to.

    Parameters
    ----------
    view
        The trace.
    figures
        Its figures (steps and sync points are used).
    main_thread
        The thread that runs the steps.

    Returns
    -------
    Graph or None
        None where the process has nothing to replay: no call, no step, no operator.
    """
    trace = view.trace
    process = int(trace.threads.process_id[main_thread])
    active = _active_threads(view, figures, process)
    calls = view.host_calls[sets.among(view.thread[view.host_calls], active)]
    lasting = figures.steps.end_ns > figures.steps.start_ns
    rows = tuple(int(r) for r in ((figures.steps.thread_id == main_thread) & lasting).nonzero()[0])
    window = _window(view, figures, rows, calls, main_thread)
    if window is None:
        return None
    lanes = find_lanes(trace, active, main_thread)
    memory.give_back_between(len(trace.slices))
    replayed = np.append(lanes.of_thread >= 0, False)
    work = collect_work(view, replayed, window)
    call_ns = call_cost(view, work)
    edges, around = stream_waits(view, work, lanes)
    edges = _joined(edges, held_by_collectives(view, work, *edges))
    edges = _joined(edges, held_by_branches(view, work, lanes, *edges))
    work = explain(work, *edges)
    if len(rows) > 1:
        edges, work = _joined(edges, around), freed(view, work)
    work = narrowed(work)
    waits = find_waits(view, figures, work, lanes, call_ns)
    starts = figures.steps.start_ns[list(rows)]
    ends = _without_rounding(starts, figures.steps.end_ns[list(rows)])
    bounds = sets.distinct(np.concatenate((starts, ends, [window[0], window[1]])))
    points = _points(lanes, work, waits, edges, bounds)
    observed = np.zeros(len(work), dtype=bool)
    observed[waits.dep_piece] = True
    observed[edges[1]] = True
    return _fold(figures, rows, lanes, work, waits, call_ns, edges, points, observed, (starts, ends))


def _without_rounding(starts: I64, ends: I64) -> I64:
    """Ends of steps, none of which reaches into the next one by as little as rounding its duration makes."""
    ends = ends.copy()
    over = ends[:-1] - starts[1:]
    ends[:-1] -= np.where((over > 0) & (over <= ROUNDING_NS), over, 0)
    return ends


def _joined(one: tuple[I32, I32], other: tuple[I32, I32]) -> tuple[I32, I32]:
    return np.concatenate((one[0], other[0])), np.concatenate((one[1], other[1]))


def _active_threads(view: View, figures: Figures, process: int) -> I32:
    """Threads of a process that launch, wait or mark steps."""
    owners = view.trace.links.launched_by
    threads = np.concatenate((view.thread[owners], figures.syncs.thread_id, figures.steps.thread_id))
    threads = sets.distinct(threads[threads >= 0])
    own: I32 = threads[view.trace.threads.process_id[threads] == process].astype(np.int32)
    return own


def _window(
    view: View, figures: Figures, rows: tuple[int, ...], calls: I32, main_thread: int
) -> tuple[int, int] | None:
    """Replayed time: first to last host call or step.

    A window without steps ends before the profiler's own synchronisation.
    """
    start, end = view.trace.slices.start_ns, view.trace.end_ns
    if not rows:
        launches = calls[sets.among(calls, view.trace.links.launched_by)]
        if len(launches):
            syncs = figures.syncs.slice_id[start[figures.syncs.slice_id] >= start[launches].min()]
            calls = np.union1d(launches, syncs[sets.among(view.thread[syncs], view.thread[launches])])
    if not rows and not len(calls):
        ops = view.by_kind(SliceKind.CPU_OP)
        calls = ops[view.thread[ops] == main_thread]
        if not len(calls):
            return None
    low = [int(start[calls].min())] if len(calls) else []
    high = [int(end[calls].max())] if len(calls) else []
    if rows:
        low.append(int(figures.steps.start_ns[list(rows)].min()))
        high.append(int(figures.steps.end_ns[list(rows)].max()))
    return min(low), max(high)


def _points(lanes: Lanes, work: Work, waits: Waits, edges: tuple[I32, I32], bounds: I64) -> tuple[I64, I32, I32, I32]:
    """All places of the graph in (lane, time) order: time, lane, kind, row of the table of that kind."""
    lane_of_work = _lane_of_work(work, lanes)
    floors = edges[0]
    begins = waits.begin_blocks
    time = np.concatenate((bounds, waits.mark_ns, waits.at_ns[begins], work.launch_ns[floors], work.launch_ns))
    at_bounds = np.zeros(len(bounds))
    lane = np.concatenate((at_bounds, waits.mark_lane, waits.lane[begins], lane_of_work[floors], lane_of_work))
    rows = (at_bounds, np.arange(len(waits.mark_ns)), begins, floors, np.arange(len(work)))
    kind = np.repeat((_BOUNDARY, _MARK, _WAIT, _FLOOR, _LAUNCH), [len(part) for part in rows]).astype(np.int32)
    lanes_of: I32 = lane.astype(np.int32)
    row: I32 = np.concatenate(rows).astype(np.int32)
    order = np.lexsort((kind, time, lanes_of))
    return time[order], lanes_of[order], kind[order], row[order]


def _lane_of_work(work: Work, lanes: Lanes) -> I32:
    """Lane that launched each piece; the main one for work without a launch."""
    lane: I32 = np.where(work.thread >= 0, lanes.of_thread[np.maximum(work.thread, 0)], 0).astype(np.int32)
    return lane


def _changes_lane(work: Work, lanes: Lanes) -> Bool:
    """Pieces before which another lane put work on the stream: blocks of both keep the order of the stream."""
    changes = np.zeros(len(work), dtype=bool)
    lane = _lane_of_work(work, lanes)
    changes[1:] = (np.diff(work.stream) == 0) & (np.diff(lane) != 0)
    return changes


def _cuts(points: tuple[I64, I32, I32, I32], work: Work, lanes: Lanes, observed: Bool) -> Bool:
    """Points with which a new block begins."""
    time, lane, kind, row = points
    launch = kind == _LAUNCH
    new: Bool = ~launch
    new[np.diff(lane).nonzero()[0] + 1] = True
    new[:1] = True
    ends_block = launch.copy()
    ends_block[launch] = observed[row[launch]]
    # Work of one call stays together: a piece that others wait for closes the block behind the last of its call.
    new[1:] |= ends_block[:-1] & (time[1:] != time[:-1])
    new[launch] |= _changes_lane(work, lanes)[row[launch]]
    counter = launch.cumsum() // BLOCK_LAUNCHES
    new[1:] |= (np.diff(counter) > 0) & (time[1:] != time[:-1])
    return new


def _fold(
    figures: Figures,
    rows: tuple[int, ...],
    lanes: Lanes,
    work: Work,
    waits: Waits,
    call_ns: int,
    edges: tuple[I32, I32],
    points: tuple[I64, I32, I32, I32],
    observed: np.ndarray,
    steps: tuple[I64, I64],
) -> Graph:
    """Cut the points into blocks, put the blocks into running order, and gather the work of each."""
    time, lane, kind, row = points
    launch = kind == _LAUNCH
    new = _cuts(points, work, lanes, observed)
    heads = new.nonzero()[0]
    raw = new.cumsum() - 1
    run_order = np.lexsort((heads, time[heads]))
    rank = np.empty(len(heads), dtype=np.int32)
    rank[run_order] = np.arange(len(heads))
    heads_in_order = heads[run_order]
    block_ns, block_lane = time[heads_in_order], lane[heads_in_order]
    block_wait = np.where(kind[heads_in_order] == _WAIT, row[heads_in_order], -1).astype(np.int32)
    block_mark = np.where(kind[heads_in_order] == _MARK, row[heads_in_order], -1).astype(np.int32)
    following = np.full(len(heads), -1, dtype=np.int32)
    same = lane[heads[1:]] == lane[heads[:-1]]
    following[rank[:-1][same]] = rank[1:][same]
    bounds = {int(block_ns[b]): b for b in (kind[heads_in_order] == _BOUNDARY).nonzero()[0].tolist()}
    groups = group_pieces(work, rank[raw[launch]], row[launch], len(heads))
    lane_end = np.array([int(time[lane == k].max(initial=0)) for k in range(lanes.count)], dtype=np.int64)
    floor_group = groups[4][edges[0]]
    return Graph(
        steps=figures.steps,
        step_rows=rows,
        lanes=lanes,
        work=work,
        waits=waits,
        call_ns=call_ns,
        block_lane=block_lane,
        block_ns=block_ns,
        block_next=following,
        block_step=_step_of(block_ns, *steps),
        block_wait=block_wait,
        block_mark=block_mark,
        step_begin=np.array([bounds[int(t)] for t in steps[0]], dtype=np.int32),
        step_end=np.array([bounds[int(t)] for t in steps[1]], dtype=np.int32),
        lane_end_ns=lane_end,
        first_group=groups[0],
        group_stream=groups[1],
        first_piece=groups[2],
        pieces=groups[3],
        group_of=groups[4],
        floor_piece=edges[0],
        floor_on=edges[1],
        floor_group=floor_group,
        floor_dep=groups[4][edges[1]],
    )


def _step_of(time: I64, start: I64, end: I64) -> I32:
    """Position of the step around each instant, -1 outside."""
    if not len(start):
        return np.full(len(time), -1, dtype=np.int32)
    at = start.searchsorted(time, side="right") - 1
    inside = (at >= 0) & (time < end[np.maximum(at, 0)])
    return np.where(inside, at, -1).astype(np.int32)


def group_pieces(work: Work, block: np.ndarray, piece: np.ndarray, n_blocks: int) -> tuple[I32, I32, I32, I32, I32]:
    """Gather the pieces of each block by stream.

    Returns
    -------
    tuple
        First group of each block (one more entry at the end), stream of each group, first piece of each group (one
        more entry), the pieces, and the group of each piece.
    """
    order = np.lexsort((work.start_ns[piece], work.stream[piece], block))
    block, piece = block[order], piece[order].astype(np.int32)
    stream = work.stream[piece]
    new = np.ones(len(piece), dtype=bool)
    new[1:] = (np.diff(block) != 0) | (np.diff(stream) != 0)
    heads = new.nonzero()[0]
    group_of = np.full(len(work), -1, dtype=np.int32)
    group_of[piece] = new.cumsum() - 1
    first_group = block[heads].searchsorted(np.arange(n_blocks + 1)).astype(np.int32)
    return first_group, stream[heads].astype(np.int32), np.append(heads, len(piece)).astype(np.int32), piece, group_of
