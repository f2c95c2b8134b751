"""The most that a change can be worth, whatever the replay says: no saving exceeds the idle time that it can use up.

Letting a wait go, or taking host time away, moves what the CPU does afterwards forward by at most its length. The
device gains only where it had nothing to compute, and only until the CPU waits for it again. So each piece of removed
time is a credit from its start on, each idle nanosecond uses credit up, and a remaining wait for the device takes what
is left. A copy is no computation: what the CPU waited for is mostly the copy itself. On top comes device work that
the change takes away.
"""

from __future__ import annotations

import numpy as np

from core import sets
from core.figures.lookup import View
from core.intervals import EMPTY, Spans, covered_before, intersect, meet, subtract, union, union_all
from core.kinds import SliceKind, SyncKind
from core.replay.change import Change
from core.replay.graph import Graph
from core.replay.waits import wait_spans
from core.tables import I64

_KEPT = 512  # stretches of effects kept at a time


class Bounds:
    """Upper bounds for one graph.

    Parameters
    ----------
    windows
        The time that is replayed.
    repeated
        Whether the windows follow each other again: then credit is carried over from their end to their start.
    kinds
        `SyncKind` of each wait of the graph, -1 for others.
    """

    def __init__(self, view: View, graph: Graph, windows: Spans, repeated: bool, kinds: np.ndarray) -> None:
        self._graph = graph
        self._windows = windows
        self._repeated = repeated
        self._kinds = kinds
        slices, work = view.trace.slices, graph.work
        self._idle: list[Spans] = []  # per device: no kernel runs
        is_kernel = slices.kind[work.slice_id] == int(SliceKind.KERNEL) if len(work) else np.zeros(0, dtype=bool)
        for device in sets.distinct(work.stream_device):
            own = is_kernel & (work.stream_device[work.stream] == device)
            self._idle.append(subtract(windows, union(work.start_ns[own], work.end_ns[own])))
        # Steps that take no time leave nothing to replay.
        self._first_ns, self._last_ns = (int(windows.start[0]), int(windows.end[-1])) if len(windows) else (0, 0)
        self._in_windows = (work.launch_ns >= self._first_ns) & (work.launch_ns < self._last_ns)
        waits = graph.waits
        # Waits that take up what lead the CPU has, and those for a copy of their own with it.
        full = np.zeros(len(waits), dtype=bool)
        full[waits.dep_of] = True
        self._full = (full & (kinds >= 0) & (kinds != int(SyncKind.EVENT))).nonzero()[0]
        own = work.launch_id[waits.dep_piece] == waits.slice_id[waits.dep_of]
        self._copy_of, self._copy = waits.dep_of[own], waits.dep_piece[own]
        self._waiting = [  # per lane: its waits for something recorded
            wait_spans(waits, (waits.depends & (waits.lane == lane)).nonzero()[0]) for lane in range(graph.lanes.count)
        ]
        # Of effects' stretches, kept so that their ids stay their own: the part that counts, and whether two meet.
        self._rests: dict[tuple[int, int], tuple[Spans, Spans]] = {}
        self._meets: dict[tuple[int, int], tuple[Spans, Spans, bool]] = {}
        self._idle_besides: dict[bytes, list[Spans]] = {}  # by the waits for copies that are dropped

    def of(self, change: Change) -> tuple[float, float, float, float]:
        """What a change can be worth over all the windows, ns.

        Returns
        -------
        tuple
            Its largest saving; the host time (waits included) that it frees; that time with the device work that it
            takes away; and the most that it can add to any other changes: the same, but without end for a change that
            lets waits go, since any of these takes over what the others leave.
        """
        at, credit = self._credits(change)
        resets = self._resets(change)
        idle_sets = self._idle_beside_copies(change) or [self._windows]
        used = max(self._spend(at, credit, resets, idle) for idle in idle_sets)
        removed, freed = self._removed_work(change), float(credit.sum())
        promise = freed + max(0.0, removed)
        takes_over = bool((self._graph.waits.depends & (change.dropped | (change.pace != 1.0))).any())
        return float(used + removed), freed, promise, float("inf") if takes_over else promise

    def _credits(self, change: Change) -> tuple[I64, np.ndarray]:
        """When host time is removed, and how much, ns."""
        waits = self._graph.waits
        parts: list[tuple[Spans, float]] = []
        if np.count_nonzero(change.dropped):
            gone = wait_spans(waits, (change.dropped & (change.pace > 0)).nonzero()[0])
            parts.append((intersect(gone, self._windows), 1.0))
        faster = ((change.pace < 1.0) & ~change.dropped).nonzero()[0]
        if len(faster):  # a faster loader may take away the whole of a wait for it
            parts.append((intersect(wait_spans(waits, faster), self._windows), 1.0))
        for lane, speeds in enumerate(change.speeds):
            if not speeds:
                continue
            more = (change.dropped & ~waits.depends & (waits.lane == lane)).nonzero()[0]
            taken, done = wait_spans(waits, more) if len(more) else EMPTY, dict[int, Spans]()
            for spans, speed in sorted(speeds, key=lambda pair: pair[1]):
                if speed < 1.0 and id(spans) not in done:
                    rest = subtract(self._outside(lane, spans), taken)
                    met = [other for other in done.values() if self._meet(spans, other)]
                    rest = subtract(rest, union_all(met)) if met else rest
                    parts.append((rest, 1.0 - speed))
                    done[id(spans)] = spans
        if not parts:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        at = np.concatenate([spans.start for spans, _ in parts])
        amount = np.concatenate([spans.dur_ns * share for spans, share in parts])
        return at, amount

    def _outside(self, lane: int, spans: Spans) -> Spans:
        """The part of an effect's stretches that lies in the windows and in none of the lane's waits."""
        found = self._rests.get((lane, id(spans)))
        if found is None:
            if len(self._rests) >= _KEPT:
                self._rests.clear()
            rest = intersect(subtract(spans, self._waiting[lane]), self._windows)
            found = self._rests[lane, id(spans)] = spans, rest
        return found[1]

    def _meet(self, a: Spans, b: Spans) -> bool:
        """Whether two effects' stretches have time in common."""
        found = self._meets.get((id(a), id(b)))
        if found is None:
            if len(self._meets) >= 16 * _KEPT:
                self._meets.clear()
            found = self._meets[id(a), id(b)] = a, b, meet(a, b)
        return found[2]

    def _resets(self, change: Change) -> I64:
        """Ends of the waits that remain and that take up what lead the CPU has."""
        ends: I64 = self._graph.waits.end_ns[self._full[~change.dropped[self._full]]]
        return ends

    def _idle_beside_copies(self, change: Change) -> list[Spans]:
        """Idle time per device, without copies of the calls that still block: meanwhile the CPU cannot be ahead."""
        dropped = change.dropped[self._copy_of]
        key = np.packbits(dropped).tobytes()
        found = self._idle_besides.get(key)
        if found is None:
            work, own = self._graph.work, self._copy[~dropped]
            copies = union(work.start_ns[own], work.end_ns[own])
            found = self._idle_besides[key] = [subtract(idle, copies) for idle in self._idle]
        return found

    def _removed_work(self, change: Change) -> float:
        work = self._graph.work
        if not (change.alters or change.moves):
            return 0.0
        left = np.where(change.gone | change.moved, 0.0, work.dur_ns * change.scale + change.fused_ns)
        inside = self._in_windows
        fewer = np.count_nonzero((change.gone | change.moved) & inside) * 2_000.0  # the queue's gap goes with its work
        return float((work.dur_ns - left)[inside].sum()) + fewer

    def _spend(self, at: I64, credit: np.ndarray, resets: I64, idle: Spans) -> float:
        """Let idle time use up credit, in order of time.

        Between two resets the credit that is left is a queue: it is the sum of what came and went, less the lowest
        level that this sum reached (which would have been below nothing).
        """
        count = len(at) + len(resets)
        time = np.concatenate((at, resets))
        amount = np.full(count + 1, -1, dtype=np.int64)
        amount[: len(at)] = np.rint(credit)
        order = np.lexsort((amount[:-1] > 0, time))  # a wait that ends where a credit begins takes nothing of it
        amount[:-1], amount[-1] = amount[order], 0
        edges = np.empty(count + 2, dtype=np.int64)
        edges[0], edges[1:-1], edges[-1] = self._first_ns, time[order], self._last_ns
        covered = covered_before(idle, edges)
        # Row i: the stretch before event i; the last one is ended by no event. A second round takes over what is left.
        stretch = np.maximum(covered[1:] - covered[:-1], 0)
        if self._repeated:
            stretch, amount = np.concatenate((stretch, stretch)), np.concatenate((amount, amount))
        reset, came = amount < 0, np.maximum(amount, 0)
        level = -stretch
        level[1:] += came[:-1]
        level.cumsum(out=level)
        part = np.zeros(len(level), dtype=np.int64)  # stretches between two resets
        reset[:-1].cumsum(out=part[1:])
        base = np.zeros(int(part[-1]) + 1, dtype=np.int64)
        base[1:] = level[reset[:-1].nonzero()[0]]
        level -= base[part]
        drop = max(int(level.max()), 0) - min(int(level.min()), 0) + 1  # lifts each part below all before it
        lift = part * drop
        lowest = np.minimum.accumulate(np.minimum(level, 0) - lift) + lift
        left = level - lowest  # credit after the stretch
        had = np.zeros(len(left), dtype=np.int64)
        had[1:] = (left + came)[:-1]
        had[1:][reset[:-1]] = 0
        used = had - left
        return float(used[len(used) - count - 1 :].sum())
