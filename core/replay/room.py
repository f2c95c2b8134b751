"""Where launches of a pass may find the queue of their stream full, and whose ends then make room."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from core.figures.lookup import distinct
from core.replay.graph import Graph
from core.replay.queues import QUEUE_LIMIT
from core.tables import I32, I64, Bool

ROOM_LAUNCHES = 8  # launches between two looks at the queue's room
# What a segment begins with: slots to wait for with lags; the slot that keeps when it began, -1 for none; and the ends
# of groups that make room in the queue: passes back, and group.
Event = tuple[list[tuple[int, float]], int, list[tuple[int, int]]]


@dataclass(frozen=True, eq=False)
class Room:
    """Blocks at which the queue of a stream must have room, and the groups, some passes back, whose ends make it."""

    back: int
    block: I64
    target: I64


@dataclass(frozen=True, eq=False)
class Rooms:
    """Where launches may find a queue full: worked out when it is asked for, once for programs over the same blocks."""

    graph: Graph
    blocks: I32
    repeated: bool

    @cached_property
    def parts(self) -> list[Room]:
        """Those of each stream, by how many passes back the ends are."""
        return _room(self.graph, self.blocks, self.repeated)


def looked_at(graph: Graph, events: dict[int, Event], room: list[Room], n_slots: int) -> I64:
    """Have launches wait for room: as `Program.look`, by block; with the events where there is more to wait for."""
    look = np.full(graph.block_count, -1, dtype=np.int64)
    more: list[tuple[int, int]] = []
    for part in room:
        end = part.back * n_slots + part.target
        second = look[part.block] >= 0
        look[part.block[~second]] = end[~second]
        more += zip(part.block[second].tolist(), end[second].tolist(), strict=True)
    both = {block for block, _ in more}.union(block for block in events if look[block] >= 0)
    for block, at in [*more, *((block, int(look[block])) for block in sorted(both))]:
        events.setdefault(block, ([], -1, []))[2].append(divmod(at, n_slots))
    look[list(both)] = -1
    return look


def _room(graph: Graph, blocks: I32, repeated: bool) -> list[Room]:
    """Where launches may find a queue full."""
    chosen = np.zeros(graph.block_count, dtype=bool)
    chosen[blocks] = True
    of_block = graph.block_of_group
    sizes = np.diff(graph.first_piece)
    found: list[Room] = []
    for stream in distinct(graph.group_stream):
        own = ((graph.group_stream == stream) & chosen[of_block]).nonzero()[0]
        if not len(own):
            continue
        upto = sizes[own].cumsum()
        count = int(upto[-1])
        wanted = upto - sizes[own] + 1 - QUEUE_LIMIT  # this many must have ended before the group's first launch
        back = np.where(wanted <= 0, (-wanted) // count + 1, 0)
        # The end of single pieces is not kept; that of the group that ends nearest stands for it.
        half = sizes[own] // 2
        targets = own[np.minimum((upto + half).searchsorted(wanted + back * count), len(own) - 1)]
        asks = _now_and_then(sizes[own])
        for one in distinct(back[asks]):
            here = asks & (back == one)
            if repeated or one == 0:
                found.append(Room(one, of_block[own[here]], targets[here]))
    return found


def _now_and_then(sizes: I32) -> Bool:
    """Groups at which the queue's room is looked at: all but those that follow another one after few launches."""
    asks = np.zeros(len(sizes), dtype=bool)
    since = ROOM_LAUNCHES
    for group, size in enumerate(sizes.tolist()):
        since += size
        if since > ROOM_LAUNCHES:
            asks[group] = True
            since = size
    return asks
