"""The numbers on which a program is run (`core.replay.running`), with a change.

Everything that a group of device work does is folded beforehand into two numbers: the work's total time, and the
earliest end that its launches allow. Host time is known beforehand, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core import sets
from core.intervals import Spans, covered_before, meet, subtract, union, union_all
from core.replay.change import Change
from core.replay.graph import Graph
from core.replay.hosttime import host_time
from core.replay.program import Program
from core.replay.room import Event
from core.tables import F64, I64, Bool, Whole

_NEVER = float("-inf")
_KEPT = 1 << 20  # blocks and pieces of effects' stretches kept at a time, in a large graph more
_PARTS = 1 << 8  # of a nanosecond, of which float64 holds all up to ten hours


@dataclass(frozen=True, eq=False)
class Plan:
    """Numbers of one program with one change; the lists are what the engine's loop reads."""

    begin: F64  # per block: host time of its lane from the start of the pass to the block, ns
    length: F64  # per block: host time in it, ns
    advance: list[float]  # per lane: host time of a pass, ns
    offset: list[float]  # per segment: ``begin`` of its first block
    events: list[Event | None]
    total: list[float]  # per item: time its work takes back to back, ns
    ready: list[float]  # per item: end of its work when the stream is free and no wait delays the lane, ns
    exact: bool  # no sum of these is ever rounded


@dataclass(frozen=True, eq=False)
class Stretch:
    """Where host time is saved by one effect on one lane: ns."""

    spans: Spans  # as the effect has them, kept so that their id stays their own
    without: tuple[Spans, ...]  # what others hold already, likewise
    rest: Spans  # those outside of the lane's waits, and of what others hold
    block: Whole  # blocks with any of it ...
    in_block: Whole  # ... and how much
    piece: Whole  # pieces with any of it between the beginning of their block and their launch ...
    before_piece: Whole  # ... and how much


class Folder:
    """Numbers of one graph with a change, whatever part of it runs; what no change alters is kept."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        waits = graph.waits
        depends = waits.depends
        self._waiting: list[Spans] = []
        for lane in range(graph.lanes.count):
            rows = (depends & (waits.lane == lane)).nonzero()[0]
            self._waiting.append(union(waits.start_ns[rows], waits.end_ns[rows]))
        following = graph.block_next
        next_ns = np.where(following >= 0, graph.block_ns[following], graph.lane_end_ns[graph.block_lane])
        self._next_ns = np.maximum(next_ns, graph.block_ns)
        self._in_a_row = bool((self._next_ns[:-1] == graph.block_ns[1:]).all()) and graph.lanes.count == 1
        pieces, work = graph.pieces, graph.work
        block = graph.block_of_group[graph.group_of[pieces]] if len(pieces) else pieces
        self._piece_block = block.astype(np.int32)
        # On a single stream the pieces are in the order of the work: its columns serve as they are.
        self._in_order = slice(None) if bool((pieces[1:] > pieces[:-1]).all()) and len(pieces) == len(work) else pieces
        self._count = len(pieces)
        # Only what is asked for with every change is held in this order.
        self._gap_ns, self._latency_ns, self._dur_ns = (
            sets.narrow(column[self._in_order]) for column in (work.gap_ns, work.latency_ns, work.dur_ns)
        )
        self.heads = graph.first_piece[:-1]
        self.head_block = block[self.heads]
        self._sizes = np.diff(graph.first_piece)
        every = range(graph.lanes.count)
        one = graph.lanes.count == 1
        self.own_blocks = [slice(None) if one else (graph.block_lane == lane).nonzero()[0] for lane in every]
        piece_lane = graph.block_lane[block]
        self._own_pieces = [slice(None) if one else (piece_lane == lane).nonzero()[0] for lane in every]
        self._stretches: dict[tuple[int, ...], Stretch] = {}
        self._held = 0  # blocks and pieces of these
        self._meets: dict[tuple[int, int], tuple[Stretch, Stretch, bool]] = {}  # with both, so that ids stay theirs
        self._base = np.zeros(graph.block_count), np.zeros(self._count)
        for lane in every:
            self._host(lane, *self._base)
        self._folded = self._fold(self._dur_ns.astype(np.float64), None)
        self._ready = self._latest_ready(self._base[1], self._folded[1])

    def _changed_host(self, change: Change) -> tuple[F64, F64]:
        """Host time in each block, and from its beginning to each of its launches, with a change."""
        lanes = [lane for lane, speeds in enumerate(change.speeds) if speeds]
        if not lanes:
            return self._base
        length, piece_host = self._base[0].copy(), self._base[1].copy()
        for lane in lanes:
            for stretch, speed in self._apart(lane, change.speeds[lane]):
                length[stretch.block] -= stretch.in_block * (1.0 - speed)
                piece_host[stretch.piece] -= stretch.before_piece * (1.0 - speed)
        return np.maximum(length, 0.0, out=length), piece_host

    def _apart(self, lane: int, speeds: list[tuple[Spans, float]]) -> list[tuple[Stretch, float]]:
        """Stretches of a lane that do not meet each other, with their speeds: where several hold, the slowest counts.

        Two fixes that both take the same work away do not take it twice.
        """
        done: dict[int, Stretch] = {}  # of those that are no faster, whole
        found: list[tuple[Stretch, float]] = []
        for spans, speed in sorted(speeds, key=lambda pair: pair[1]):
            if id(spans) in done:
                continue
            whole = self._stretch(lane, spans)
            met = [other for other in done.values() if self._meet(whole, other)]
            done[id(spans)] = whole
            found.append((self._stretch(lane, spans, met) if met else whole, speed))
        return found

    def _stretch(self, lane: int, spans: Spans, without: Sequence[Stretch] = ()) -> Stretch:
        """Stretch of an effect, less what others hold already."""
        key = (lane, id(spans), *(id(other.spans) for other in without))
        stretch = self._stretches.get(key)
        if stretch is not None:
            return stretch
        own, pieces = self.own_blocks[lane], self._own_pieces[lane]
        if without:
            rest = subtract(self._stretch(lane, spans).rest, union_all(other.rest for other in without))
        else:
            rest = subtract(spans, self._waiting[lane])
        at_block = np.zeros(self._graph.block_count, dtype=np.int64)
        at_block[own] = covered_before(rest, self._graph.block_ns[own])
        in_block = np.zeros_like(at_block)
        if self._in_a_row:
            np.subtract(at_block[1:], at_block[:-1], out=in_block[:-1])
            in_block[-1:] = covered_before(rest, self._next_ns[-1:]) - at_block[-1:]
        else:
            in_block[own] = covered_before(rest, self._next_ns[own]) - at_block[own]
        before = np.zeros(self._count, dtype=np.int64)
        before[pieces] = covered_before(rest, self._launch_ns(pieces)) - at_block[self._piece_block[pieces]]
        block, piece = in_block.nonzero()[0], before.nonzero()[0]
        self._held += len(block) + len(piece)
        if self._held > max(_KEPT, 8 * (len(at_block) + self._count)):
            self._stretches.clear()
            self._meets.clear()
            self._held = len(block) + len(piece)
        held = map(sets.narrow, (block, in_block[block], piece, before[piece]))  # a great part of what pricing needs
        stretch = Stretch(spans, tuple(other.spans for other in without), rest, *held)
        self._stretches[key] = stretch
        return stretch

    def _meet(self, a: Stretch, b: Stretch) -> bool:
        key = (id(a), id(b))
        found = self._meets.get(key)
        if found is None:
            found = self._meets[key] = a, b, meet(a.rest, b.rest)
        return found[2]

    def fold(self, change: Change) -> tuple[F64, F64, F64]:
        """Fold a change.

        Returns
        -------
        tuple
            Host time in each block; total time of each group's work; and from the beginning of its block to the end of
            that work, if neither the stream nor a wait delays it: all ns.
        """
        length, piece_host = self._changed_host(change)
        if not change.alters:
            if piece_host is self._base[1]:
                return length, self._folded[0], self._ready
            return length, self._folded[0], self._latest_ready(piece_host, self._folded[1])
        gone = change.gone[self._in_order]
        dur = self._dur_ns.astype(np.float64)
        if change.resizes:
            dur *= change.scale[self._in_order]
            dur += change.fused_ns[self._in_order]
        dur[gone] = 0.0
        total, after = self._fold(dur, gone)
        return length, total, self._latest_ready(piece_host, after)

    def _latest_ready(self, piece_host: F64, after: F64) -> F64:
        if not len(self.heads):
            return np.zeros(0)
        latest: F64 = np.maximum.reduceat(piece_host + after, self.heads)
        return latest

    def _host(self, lane: int, length: F64, piece_host: F64) -> None:
        """Fill in the host time of a lane, as it is, in each block and from its beginning to each of its launches."""
        graph, own, pieces = self._graph, self.own_blocks[lane], self._own_pieces[lane]
        time = host_time([(self._waiting[lane], 0.0)])
        at_block = np.zeros(graph.block_count)
        at_block[own] = time(graph.block_ns[own])
        length[own] = np.maximum(time(self._next_ns[own]) - at_block[own], 0.0)
        piece_host[pieces] = time(self._launch_ns(pieces)) - at_block[self._piece_block[pieces]]

    def _launch_ns(self, pieces: Any) -> I64:
        """When some pieces (places in this order, or all) were launched, ns."""
        launch_ns: I64 = self._graph.work.launch_ns[self._in_order][pieces]
        return launch_ns

    def _fold(self, dur: F64, gone: Bool | None) -> tuple[F64, F64]:
        """Total time of each group's work, and from each launch to the end of its group if nothing delays it."""
        if not len(dur):
            return np.zeros(0), np.zeros(0)
        done = dur + self._gap_ns
        np.maximum(done, 0.0, out=done)
        if gone is not None:
            done[gone] = 0.0
        done.cumsum(out=done)
        before = np.where(self.heads > 0, done[self.heads - 1], 0.0)
        ends = done[self.heads + self._sizes - 1]
        rest = ends.repeat(self._sizes)
        rest -= done
        np.add(self._latency_ns, dur, out=done)
        done += rest
        after = done
        if gone is not None:
            after[gone] = _NEVER
        return ends - before, after


def _is_exact(times_ns: F64) -> bool:
    """Whether sums of such numbers need no rounding: they are whole, or have a few binary places."""
    parts = times_ns * _PARTS
    return bool((parts == np.rint(parts)).all())


class Compiler:
    """Turns a program with a change into the numbers that the engine runs on."""

    def __init__(self, program: Program, folder: Folder) -> None:
        self._program = program
        self._folder = folder
        graph = program.graph
        one = graph.lanes.count == 1
        lane = graph.block_lane[program.blocks]
        self._own = [program.blocks if one else program.blocks[lane == k] for k in range(graph.lanes.count)]
        of = program.item_group
        self._only_waits = (of < 0).nonzero()[0]
        self._of = np.maximum(of, 0)
        self._all_in_turn = len(of) == len(program.graph.group_stream) and not len(self._only_waits)
        self._total: tuple[F64, list[float]] | None = None  # as no change alters it, by item
        self._waited_rows = (program.wait_segment >= 0).nonzero()[0]

    def compile(self, change: Change) -> Plan:
        """Return the numbers with a change."""
        program, folder = self._program, self._folder
        length, total, ready = folder.fold(change)
        offset = np.zeros(program.graph.block_count)
        advance = []
        for own in self._own:
            lasting = length[own]
            done = lasting.cumsum()
            offset[own] = done - lasting
            advance.append(float(done[-1]) if len(done) else 0.0)
        if self._total is None or self._total[0] is not total:
            by_item = self._by_item(total, 0.0)
            if not change.alters:
                self._total = total, by_item
        else:
            by_item = self._total[1]
        if len(self._of):
            ready = ready + offset[folder.head_block]
        events, starts = self._events(change), offset[program.head]
        lags = np.array([lag for event in events if event is not None for _, lag in event[0]])
        return Plan(
            begin=offset,
            length=length,
            advance=advance,
            offset=starts.tolist(),
            events=events,
            total=by_item,
            ready=self._by_item(ready, _NEVER),
            exact=all(map(_is_exact, (lags, starts, np.array(advance), total, ready))),
        )

    def _by_item(self, values: F64, nothing: float) -> list[float]:
        """Numbers of groups, by item; ``nothing`` for one that only waits."""
        if not self._all_in_turn and len(self._of):
            values = values[self._of]
            values[self._only_waits] = nothing
        return values.tolist() if len(self._of) else []

    def _events(self, change: Change) -> list[Event | None]:
        program = self._program
        events = program.events
        rows = self._waited_rows
        rows = rows[change.dropped[rows] | (change.pace[rows] != 1.0)]
        if not len(rows):
            return events
        events = events.copy()
        groups = len(program.graph.group_stream)
        pace = change.pace
        for row, segment, dropped in zip(
            rows.tolist(), program.wait_segment[rows].tolist(), change.dropped[rows].tolist(), strict=True
        ):
            event = events[segment]
            if event is None:
                continue
            waits, keep, room = event
            if dropped:
                events[segment] = ([], keep, room) if keep >= 0 or room else None
                continue
            chain = program.chains.get(row)
            if chain is not None:
                slot = groups + chain[0]
                waits = [(s, chain[1] * float(pace[row])) if s == slot else (s, lag) for s, lag in waits]
                events[segment] = (waits, keep, room)
        return events
