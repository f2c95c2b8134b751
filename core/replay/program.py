"""What a pass over some blocks of a graph has to do, apart from the numbers that a change can alter.

Between two places where a lane meets something else (it waits, another lane runs, the queue may be full) the lane's
clock moves by host time alone, which is known beforehand. So a pass needs no step per block: it runs *segments*, each
beginning with such a place, and inside a segment one *item* per group of device work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from operator import itemgetter

import numpy as np

from core import sets
from core.figures.lookup import distinct
from core.replay.graph import Graph
from core.replay.room import Event, Room, Rooms, looked_at
from core.tables import F64, I32, I64, Bool

_STRETCH = 512  # groups: so often two passes are compared


@dataclass(frozen=True, eq=False)
class Program:
    """One pass. Lists are what the engine's loop reads.

    A slot holds an instant that others wait for: the ends of the groups, then what waits for a loader left (per row of
    the waits), then the marks of lanes; the last one is read by nobody.
    """

    graph: Graph
    blocks: I32  # blocks of the pass, in running order
    chains: dict[int, tuple[int, float]]  # waits for the loader, see `loader_chains`
    lane: list[int]  # per segment ...
    size: list[int]  # ... number of items
    events: list[Event | None]  # ... with nothing changed
    look: list[int]  # ... where all that it begins with is one end that makes room: passes back * n_slots + group, -1
    head: I32  # ... its first block
    stretches: list[int]  # first segments of stretches of about as many groups each
    segment_of: I32  # int32[n_blocks], -1 for blocks that are left out
    wait_segment: I32  # int32[n_waits]: segment that begins with it, -1
    item_group: I32  # group of each item; -1 for one that only waits for a further stream
    floor_of: I32  # ``floor`` as a column
    stream: list[int]  # per item ...
    floor: list[int]  # ... slot whose end its start waits for, -1
    slot: list[int]  # ... slot that keeps its end
    n_slots: int
    looks: bool  # whether launches wait for room in their queue
    rooms: Rooms

    @property
    def room(self) -> list[Room]:
        """Where launches may find a queue full, whether or not the events say so."""
        return self.rooms.parts

    @cached_property
    def carried(self) -> I64:
        """Slots that a pass reads before it has set them: those of the pass before count there."""
        return np.unique(self._reads[0][self._reads[2]])

    @property
    def _segment_of_item(self) -> I32:
        return np.arange(len(self.size), dtype=np.int32).repeat(self.size)

    @property
    def _slot_of_item(self) -> I32:
        return np.where(self.item_group >= 0, self.item_group, self.n_slots - 1).astype(np.int32)

    @cached_property
    def _set_in(self) -> I32:
        """Segment that sets each slot, a high number for never."""
        set_in = np.full(self.n_slots, len(self.slot) + len(self.size), dtype=np.int32)
        set_in[self._slot_of_item] = self._segment_of_item
        keeps = [(event[1], number) for number, event in enumerate(self.events) if event is not None and event[1] >= 0]
        slots, numbers = np.array(keeps, dtype=np.int64).reshape(-1, 2).T
        set_in[slots] = numbers
        return set_in

    @cached_property
    def _reads(self) -> tuple[I32, I32, Bool]:
        """What waits read but for room: slots, the segments that read them, and whether they have not set them yet."""
        events = enumerate(self.events)
        read = [(slot, number) for number, event in events if event is not None for slot, _ in event[0]]
        slot, segment = np.array(read, dtype=np.int32).reshape(-1, 2).T
        items = (self.floor_of >= 0).nonzero()[0]
        floor = self.floor_of[items]
        set_by_item = np.full(self.n_slots, len(self.slot), dtype=np.int32)
        set_by_item[self._slot_of_item] = np.arange(len(self.slot))
        late = np.concatenate((self._set_in[slot] >= segment, set_by_item[floor] >= items))
        return np.concatenate((slot, floor)), np.concatenate((segment, self._segment_of_item[items])), late

    @cached_property
    def _looks(self) -> tuple[I64, I32, Bool]:
        """As `_reads`, what launches that look for room read."""
        if not self.looks:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=bool)
        slot = np.concatenate([part.target for part in self.room] or [np.zeros(0, dtype=np.int64)])
        block = np.concatenate([part.block for part in self.room] or [np.zeros(0, dtype=np.int64)])
        back = np.arange(len(self.room)).repeat([len(part.block) for part in self.room])
        back = np.array([part.back for part in self.room], dtype=np.int64)[back]
        segment = self.segment_of[block]
        return slot, segment, (back > 0) | (self._set_in[slot] >= segment)

    @cached_property
    def reads(self) -> list[int] | None:
        """Slots as passes before left them that a pass reads where launches look for room, all of the last pass.

        None where some look further back.
        """
        if any(part.back > 1 for part in self.room):
            return None
        slot, _, late = self._looks
        slots: list[int] = np.union1d(self.carried, slot[late]).tolist()
        return slots

    @cached_property
    def reads_back(self) -> int:
        """Last segment that reads what a pass before has set, -1 for none."""
        return max(int(segment[late].max(initial=-1)) for _, segment, late in (self._reads, self._looks))

    @cached_property
    def _read_until(self) -> I32:
        """Last segment that reads each slot, -1 for none."""
        until = np.full(self.n_slots, -1, dtype=np.int32)
        for slot, segment, _ in (self._reads, self._looks):
            np.maximum.at(until, slot, segment)
        return until

    def read_later(self, segment: int) -> list[int]:
        """Slots set before a segment that it or a later one reads."""
        slots: list[int] = ((self._set_in < segment) & (self._read_until >= segment)).nonzero()[0].tolist()
        return slots

    @cached_property
    def _asked_for(self) -> I64:
        """Slots that are set, and that a later pass reads, or who looks for room after the pass."""
        if not self.looks:
            slots = self._watched
        else:
            slots = np.arange(self.n_slots) if self.reads is None else np.array(self.reads, dtype=np.int64)
        return slots[self._set_in[slots] < len(self.size)]

    def set_later(self, segment: int) -> list[int]:
        """Slots that this segment and later ones set, as far as anything asks for them after the pass."""
        slots: list[int] = self._asked_for[self._set_in[self._asked_for] >= segment].tolist()
        return slots

    @cached_property
    def _watched(self) -> I64:
        """Slots that `queue_was_full` and `carried` ask for."""
        return np.unique(np.concatenate((self.carried, *(part.target for part in self.room))))

    @cached_property
    def carried_at(self) -> I64:
        """Places of the carried slots among the watched ones."""
        return self._watched.searchsorted(self.carried)

    @cached_property
    def room_at(self) -> list[I64]:
        """Places among the watched slots of the targets, of each part of the room."""
        return [self._watched.searchsorted(part.target) for part in self.room]

    @cached_property
    def _pick(self) -> Callable[[list[float]], Sequence[float]]:
        slots = self._watched.tolist()
        return itemgetter(*slots) if len(slots) > 1 else lambda held: [held[slot] for slot in slots]

    def watched(self, slots: list[float]) -> F64:
        """Instants that the watched slots hold, ns: the others are many, and nobody asks for them."""
        return np.array(self._pick(slots), dtype=np.float64)


def make_program(
    graph: Graph,
    blocks: I32,
    repeated: bool,
    chains: dict[int, tuple[int, float]],
    looks: bool = True,
    like: Program | None = None,
) -> Program:
    """Prepare passes over some blocks.

    Parameters
    ----------
    blocks
        Blocks in running order, ascending.
    repeated
        Whether passes follow each other, so that the queue of the pass before is still there.
    chains
        Waits for the loader: row of the wait -> row of the wait before it and the time between their ends, ns.
    looks
        Whether launches wait for room in their queue. Without, the program is shorter, and `queue_was_full` tells
        afterwards whether that made a difference.
    like
        A program over the same blocks of the graph, with another ``looks``: what both have in common is held once.
    """
    groups = len(graph.group_stream)
    n_slots = groups + len(graph.waits) + len(graph.waits.mark_ns) + 1
    events, rooms = _block_events(graph, blocks, chains), like.rooms if like else Rooms(graph, blocks, repeated)
    look = looked_at(graph, events, rooms.parts if looks else [], n_slots)
    begins_segment = look >= 0
    begins_segment[list(events)] = True
    part = graph.first_group[blocks] // _STRETCH
    new = begins_segment[blocks] | sets.changes(graph.block_lane[blocks]) | sets.changes(part)
    heads = blocks[new]
    segment_of = np.full(graph.block_count, -1, dtype=np.int32)
    segment_of[blocks] = new.cumsum() - 1
    wait_segment = np.full(len(graph.waits), -1, dtype=np.int32)
    begins = new & (graph.block_wait[blocks] >= 0)  # a wait for nothing known begins no segment
    wait_segment[graph.block_wait[blocks][begins]] = segment_of[blocks[begins]]
    item_group, of, floor = _items(graph, segment_of)
    return Program(
        graph=graph,
        blocks=blocks,
        chains=chains,
        lane=graph.block_lane[heads].tolist(),
        size=np.bincount(segment_of[graph.block_of_group[of]], minlength=len(heads)).tolist(),
        events=list(map(events.get, heads.tolist())),
        look=look[heads].tolist(),
        head=heads,
        stretches=sets.changes(graph.first_group[heads] // _STRETCH).nonzero()[0].tolist(),
        segment_of=segment_of,
        wait_segment=wait_segment,
        item_group=item_group,
        floor_of=floor,
        stream=like.stream if like else graph.group_stream[of].tolist(),
        floor=like.floor if like else floor.tolist(),
        slot=like.slot if like else np.where(item_group >= 0, item_group, n_slots - 1).tolist(),
        n_slots=n_slots,
        looks=looks,
        rooms=rooms,
    )


def _items(graph: Graph, segment_of: I32) -> tuple[I32, I64, I32]:
    """Items of a pass: group (-1 for those that only wait), group whose stream they are on, slot to wait for."""
    chosen = segment_of[graph.block_of_group] >= 0
    group, dep = graph.floor_group, graph.floor_dep
    order = group.argsort(kind="stable")
    order = order[chosen[group[order]]]
    floors = np.bincount(group[order], minlength=len(chosen))
    count = np.where(chosen, np.maximum(floors, 1), 0)
    of = np.arange(len(chosen)).repeat(count)
    last = np.append(of[1:] != of[:-1], True)[: len(of)]
    floor = np.full(len(of), -1, dtype=np.int32)
    floor[floors[of] > 0] = _in_the_loop(
        graph, segment_of >= 0, graph.block_of_group[group[order]], dep[order].astype(np.int64)
    )
    return np.where(last, of, -1).astype(np.int32), of, floor


def _in_the_loop(graph: Graph, chosen: Bool, waiting: I64, group: I64) -> I64:
    """Groups to wait for: for one of a step that the loop leaves out, its like in the step that stands there instead.

    ``waiting`` are the blocks that wait. A step that waits for the one before waits for what comes before it in the
    loop, also where that is another one; its like lies on the same stream, as far from the end of its step.
    """
    of_block, found = graph.block_of_group, group.copy()
    outside = (~chosen[of_block[group]]).nonzero()[0] if len(group) else group
    if not len(outside):
        return found
    step_of = graph.block_step[of_block]
    steps, count = [one for one in distinct(graph.block_step[chosen]) if one >= 0], len(graph.step_rows)

    @cache
    def of_step(stream: int, step: int) -> I64:
        groups: I64 = ((graph.group_stream == stream) & (step_of == step)).nonzero()[0]
        return groups

    for row in outside.tolist():
        later, earlier = int(graph.block_step[waiting[row]]), int(step_of[group[row]])
        if later not in steps or earlier < 0:
            continue
        back = (later - earlier) % count  # the first one waits for the last one of the pass before
        instead = steps[(steps.index(later) - back) % len(steps)]
        stream = int(graph.group_stream[group[row]])
        own, like = of_step(stream, earlier), of_step(stream, instead)
        from_end = len(own) - int(own.searchsorted(group[row]))
        if from_end <= len(like):
            found[row] = like[-from_end]
    return found


def _held(graph: Graph, blocks: I32) -> list[tuple[int, float]]:
    """`Graph.waited_for` as it is in a loop of some blocks."""
    held, first = graph.waited_for
    begins = blocks[graph.block_wait[blocks] >= 0]
    block = np.full(len(graph.waits), -1, dtype=np.int64)
    block[graph.block_wait[begins]] = begins
    waiting = block.repeat(np.diff(first))
    group = np.array([one for one, _ in held], dtype=np.int64)
    chosen = np.zeros(graph.block_count, dtype=bool)
    chosen[blocks] = True
    inside = waiting >= 0
    group[inside] = _in_the_loop(graph, chosen, waiting[inside], group[inside])
    return [(one, lag) for one, (_, lag) in zip(group.tolist(), held, strict=True)]


def _block_events(graph: Graph, blocks: I32, chains: dict[int, tuple[int, float]]) -> dict[int, Event]:
    """What blocks begin with, by block."""
    waits, groups = graph.waits, len(graph.group_stream)
    first, marks = graph.waited_for[1], groups + len(waits)
    handed = (waits.mark >= 0).nonzero()[0]
    mark_of = dict(zip(handed.tolist(), waits.mark[handed].tolist(), strict=True))
    events: dict[int, Event] = {}
    held = _held(graph, blocks)
    special = blocks[(graph.block_wait[blocks] >= 0) | (graph.block_mark[blocks] >= 0)]
    rows = zip(special.tolist(), graph.block_wait[special].tolist(), graph.block_mark[special].tolist(), strict=True)
    for block, row, mark in rows:
        found = held[first[row] : first[row + 1]] if row >= 0 else []
        keep = marks + mark if mark >= 0 else -1
        if row in chains:
            before, lag = chains[row]
            found.append((groups + before, lag))
            keep = groups + row
        if row in mark_of:
            found.append((marks + mark_of[row], float(waits.mark_lag_ns[row])))
        if found or keep >= 0:
            events[block] = (found, keep, [])
    return events


def queue_was_full(program: Program, delays: list[float], begin: F64, slots: list[F64]) -> bool:
    """Tell whether a pass would have had to wait for room in a queue.

    Parameters
    ----------
    delays
        Per segment of the pass: the delay of its lane, ns.
    begin
        float64[n_blocks]: host time before each block of the pass, ns.
    slots
        The instants that the watched slots held after each pass up to this one, ns.
    """
    delay = None
    for part, target in zip(program.room, program.room_at, strict=True):
        if part.back >= len(slots):
            continue
        if delay is None:
            delay = np.array(delays)
        if bool((slots[-1 - part.back][target] > delay[program.segment_of[part.block]] + begin[part.block]).any()):
            return True
    return False
