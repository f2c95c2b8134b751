"""Which line of a function ran a slice: what ran inside one call of it, laid against what its code evaluates.

A frame's slice names its function but not the line. Yet the calls and operators directly below it come in the order
of the statements. The best alignment of the two sequences names the line of each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from core.kinds import SliceKind, TrackKind
from core.source_calls import MODULE_CALL, TESTED, Call, calls_of
from core.source_frames import parse_frame
from core.source_syntax import FunctionNode
from core.tables import F64, I32, I64
from core.trace import Trace

_MOST_EVENTS, _MOST_CALLS = 1200, 600  # the work grows with their product; more is cut around the slice, or left
_BACK = 0.9  # what a step back to the beginning of a loop costs: less than one match
_SKIP = 0.05  # what a call costs that surely ran and was not seen: it tells alignments of equal matches apart
_MOST_SKIPS = 0.5  # much of what a program calls never shows: it must not outweigh what does
_TIE = 0.04  # alignments closer than this are equally good
_WEAK = 0.6  # a match by "something was called here"
_BUILT_IN = re.compile(r"^<built-in (?:method|function) (\w+)")
_READS = frozenset(("is_nonzero", "item", "_local_scalar_dense"))
InnermostAll = Callable[[int, int, I64], I32]


@dataclass(frozen=True)
class Placed:
    """Lines that can have run a slice, and whether they are in a loop that ran once per step inside this call."""

    lines: tuple[int, ...]
    in_loop: bool


class CallOrder:
    """Finds lines by order in the frames of one trace.

    Parameters
    ----------
    trace
        Any trace with Python frames.
    innermost_all
        Innermost slices of a kind of track on a thread at instants (`SourceFinder`).
    """

    def __init__(self, trace: Trace, innermost_all: InnermostAll) -> None:
        self._trace = trace
        self._innermost_all = innermost_all
        self._calls: dict[int, tuple[Call, ...]] = {}
        self._events: dict[tuple[int, int], I64] = {}  # of a frame and the beginning of what is looked at

    def place(self, slice_id: int, frame_id: int, function: FunctionNode) -> Placed:
        """Lines of ``function`` that can have run a slice.

        Parameters
        ----------
        slice_id
            A slice of the CPU, or device work.
        frame_id
            The Python slice of the function around it.
        function
            The function's syntax tree.

        Returns
        -------
        Placed
            Without lines where nothing in the code fits what ran.
        """
        top = self._top(slice_id)
        first, last, in_loop = self._window(top if top >= 0 else slice_id, frame_id)
        calls = self._calls_of(function)
        if in_loop:
            calls = tuple(c for c in calls if c.loops)
        event = self._event_of(top, frame_id) if top >= 0 else -1
        if event < 0 or not calls or len(calls) > _MOST_CALLS:
            return Placed((), in_loop)
        events = self._events_in(frame_id, first, last)
        at = np.flatnonzero(events == event)
        if not len(at):
            return Placed((), in_loop)
        low = max(0, int(at[0]) - _MOST_EVENTS // 2)
        labels = [self._labels(int(one)) for one in events[low : low + _MOST_EVENTS]]
        lines = _align(labels, int(at[0]) - low, calls)
        return Placed(lines, in_loop)

    def _calls_of(self, function: FunctionNode) -> tuple[Call, ...]:
        key = id(function)
        if key not in self._calls:
            self._calls[key] = calls_of(function)
        return self._calls[key]

    def _top(self, slice_id: int) -> int:
        """Outermost operator around a slice (around its launch), or the call itself; -1 when unknown."""
        trace = self._trace
        if trace.device_work_mask[slice_id]:
            slice_id = int(trace.links.launch_of[slice_id])
        if slice_id < 0 or trace.slices.kind[slice_id] == int(SliceKind.PYTHON):
            return slice_id
        op = slice_id if trace.slices.kind[slice_id] == int(SliceKind.CPU_OP) else int(trace.links.op_of[slice_id])
        while op >= 0:
            above = int(trace.slices.parent_id[op])
            while above >= 0 and trace.slices.kind[above] != int(SliceKind.CPU_OP):
                above = int(trace.slices.parent_id[above])
            slice_id = op
            op = above
        return slice_id

    def _window(self, slice_id: int, frame_id: int) -> tuple[int, int, bool]:
        """Start and end of what is looked at, ns, and whether the frame's code went round in it once per step."""
        trace = self._trace
        start, end = int(trace.slices.start_ns[frame_id]), int(trace.end_ns[frame_id])
        when = int(trace.slices.start_ns[slice_id])
        steps = trace.steps
        inside = (steps.start_ns >= start) & (steps.start_ns < end)
        thread = int(trace.tracks.thread_id[trace.slices.track_id[frame_id]])
        mine = np.flatnonzero(inside & ((steps.thread_id == thread) | (steps.thread_id < 0)))
        if len(mine) < 2:
            return start, end, False
        row = int(np.searchsorted(steps.start_ns[mine], when, side="right")) - 1
        if row < 0 or when >= int(steps.end_ns[mine[row]]):
            return start, end, False
        low, high = int(steps.start_ns[mine[row]]), int(steps.end_ns[mine[row]])
        return max(start, low), min(end, high), row > 0 or self._recurs(slice_id, thread, high)

    def _recurs(self, slice_id: int, thread: int, after_ns: int) -> bool:
        """Whether a slice of this name ran again on its track after an instant: then it is no preparation."""
        trace, sl = self._trace, self._trace.slices
        track = int(sl.track_id[slice_id])
        first, end = int(trace.tracks.first_id[track]), int(trace.tracks.end_id[track])
        low = first + int(np.searchsorted(sl.start_ns[first:end], after_ns))
        return bool((sl.name_id[low:end] == sl.name_id[slice_id]).any())

    def _event_of(self, top: int, frame_id: int) -> int:
        """What of the frame's direct children a slice belongs to: a Python slice, or the operator itself."""
        trace = self._trace
        thread = int(trace.tracks.thread_id[trace.slices.track_id[frame_id]])
        if trace.slices.kind[top] == int(SliceKind.PYTHON):
            at = top
        else:
            if int(trace.tracks.thread_id[trace.slices.track_id[top]]) != thread:
                return -1
            at = int(self._innermost_all(thread, TrackKind.CPU_PYTHON, trace.slices.start_ns[top : top + 1])[0])
        if at == frame_id:
            return top if top != frame_id else -1
        while at >= 0 and int(trace.slices.parent_id[at]) != frame_id:
            at = int(trace.slices.parent_id[at])
        return at

    def _events_in(self, frame_id: int, first_ns: int, last_ns: int) -> I64:
        """int64[n]: the frame's direct children that begin between two instants, in order."""
        key = (frame_id, first_ns)
        if key not in self._events:
            trace, sl = self._trace, self._trace.slices
            thread = int(trace.tracks.thread_id[sl.track_id[frame_id]])
            python = self._rows(thread, TrackKind.CPU_PYTHON, first_ns, last_ns)
            python = python[sl.parent_id[python] == frame_id]
            ops = self._rows(thread, TrackKind.CPU_OPS, first_ns, last_ns)
            above = sl.parent_id[ops]
            ops = ops[
                (sl.kind[ops] == int(SliceKind.CPU_OP)) & ~((above >= 0) & (sl.kind[above] == int(SliceKind.CPU_OP)))
            ]
            ops = ops[self._innermost_all(thread, TrackKind.CPU_PYTHON, sl.start_ns[ops]) == frame_id]
            both = np.concatenate((python, ops))
            both = both[np.argsort(sl.start_ns[both], kind="stable")]
            self._events[key] = both
        return self._events[key]

    def _rows(self, thread: int, kind: TrackKind, first_ns: int, last_ns: int) -> I64:
        trace = self._trace
        track = trace.track_of_thread(thread, kind)
        if track < 0:
            return np.zeros(0, dtype=np.int64)
        low, end = int(trace.tracks.first_id[track]), int(trace.tracks.end_id[track])
        starts = trace.slices.start_ns[low:end]
        return np.arange(
            low + np.searchsorted(starts, first_ns), low + np.searchsorted(starts, last_ns), dtype=np.int64
        )

    def _labels(self, event: int) -> frozenset[str]:
        """What an event can be the call of."""
        trace = self._trace
        name = trace.name(event)
        if trace.slices.kind[event] != int(SliceKind.PYTHON):
            plain = name.rsplit("::", 1)[-1]
            plain = plain.rstrip("_") or plain
            return frozenset((plain, TESTED)) if plain in _READS else frozenset((plain,))
        labels: set[str] = set()
        at = event
        for _ in range(4):  # a method's wrapper, what it wraps
            built_in = _BUILT_IN.match(trace.name(at))
            frame = parse_frame(trace.name(at))
            if built_in:
                plain = built_in[1].rstrip("_") or built_in[1]
                labels.update((plain, TESTED) if plain in _READS else (plain,))
            elif frame is not None:
                labels.add(frame.function.rsplit(".", 1)[-1].rstrip("_"))
            else:
                labels.add(MODULE_CALL)
            if at + 1 >= len(trace.slices) or int(trace.slices.parent_id[at + 1]) != at:
                break
            at += 1
        if labels & {"__call__", "_call_impl", "_wrapped_call_impl", "_fn"}:
            labels.add(MODULE_CALL)
        return frozenset(labels)


def _align(events: Sequence[frozenset[str]], target: int, calls: tuple[Call, ...]) -> tuple[int, ...]:
    """Lines to which the best alignments lay the event ``target``; none where they leave it out."""
    fits = {labels: _fits(labels, calls) for labels in set(events)}
    if not len(fits[events[target]][0]):
        return ()
    cost = _costs(calls)  # from call, to call; its last row: from the beginning
    before: F64 = np.full(len(calls) + 1, -np.inf)
    before[-1] = 0.0
    for labels in events[:target]:
        rows, gain = fits[labels]
        if len(rows):
            best = (before[:, None] - cost[:, rows]).max(axis=0) + gain
            before[rows] = np.maximum(before[rows], best)
    after: F64 = np.zeros(len(calls) + 1)
    for labels in reversed(events[target + 1 :]):
        rows, gain = fits[labels]
        if len(rows):
            after = np.maximum(after, (gain + after[rows] - cost[:, rows]).max(axis=1))
    left_out = float((before + after).max())
    rows, gain = fits[events[target]]
    through = (before[:, None] - cost[:, rows]).max(axis=0) + gain + after[rows]
    best_of_all = float(through.max())
    if best_of_all < left_out + _TIE:
        return ()
    order = np.argsort(-through, kind="stable")
    return tuple(dict.fromkeys(calls[int(rows[i])].line for i in order if through[i] > best_of_all - _TIE))


def _fits(labels: frozenset[str], calls: tuple[Call, ...]) -> tuple[I64, F64]:
    """Calls that an event can be, and how sure each is."""
    rows, gains = [], []
    for at, call in enumerate(calls):
        common = labels & call.labels
        if common:
            rows.append(at)
            gains.append(1.0 if common - {MODULE_CALL, TESTED} else _WEAK)
    return np.asarray(rows, dtype=np.int64), np.asarray(gains, dtype=np.float64)


def _costs(calls: tuple[Call, ...]) -> F64:
    """float64[n + 1, n]: cost of the way from one call to another; infinite where no loop leads back."""
    n = len(calls)
    weight = np.asarray([_SKIP if c.sure else 0.0 for c in calls])
    total = np.concatenate(([0.0], np.cumsum(weight)))
    at = np.arange(n)
    cost: F64 = np.full((n + 1, n), np.inf)
    forward = at[None, :] > at[:, None]
    cost[:n][forward] = np.minimum(total[at][None, :] - total[at + 1][:, None], _MOST_SKIPS)[forward]
    for loop in {number for c in calls for number in c.loops}:
        rows = np.flatnonzero([loop in c.loops for c in calls])
        low, high = int(rows[0]), int(rows[-1]) + 1
        skipped = (total[high] - total[rows + 1])[:, None] + (total[rows] - total[low])[None, :]
        back = _BACK + np.minimum(skipped, _MOST_SKIPS)
        block = np.ix_(rows, rows)
        cost[block] = np.minimum(cost[block], np.where(rows[None, :] <= rows[:, None], back, np.inf))
    cost[n] = 0.0  # what came before the first event is not asked for
    return cost
