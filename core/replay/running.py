"""Runs a program: once over the recording, or over its steps again and again.

The state is one clock per lane and the end of the queued work per stream. A lane's clock is host time, known
beforehand (`core.replay.engine`), plus the delay that its waits have added so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

from core.replay.engine import Plan
from core.replay.graph import Graph
from core.replay.program import Program
from core.replay.room import Event
from core.replay.trail import Trail

_LONG_AGO = -1e18  # end of work that never ran; finite, so that differences of it are


@dataclass(eq=False)
class State:
    """Clocks of a running replay; ``history`` keeps the ends of the groups of the last passes."""

    lanes: list[float]
    streams: list[float]
    slots: list[float]
    history: list[list[float]]


def fresh_state(program: Program, start: list[float] | None = None) -> State:
    """Return the state before the first segment."""
    graph: Graph = program.graph
    return State(
        lanes=start or [0.0] * graph.lanes.count,
        streams=[_LONG_AGO] * len(graph.work.stream_track),
        slots=[_LONG_AGO] * program.n_slots,
        history=[],
    )


def run_pass(
    program: Program, plan: Plan, state: State, before: Trail | None = None, trail: Trail | None = None
) -> list[float]:
    """Run a program once, moving the state on.

    Parameters
    ----------
    before
        What the pass before came by: this one ends where it would only do the same later.
    trail
        Filled in with what this pass comes by.

    Returns
    -------
    list of float
        Per segment: the delay of its lane, so that a block of it began at this plus ``plan.begin``, ns.
    """
    shifts, delays = state.lanes.copy(), list[float]()
    items = zip(plan.total, plan.ready, program.stream, program.floor, program.slot, strict=True)
    segments = zip(program.lane, program.size, plan.events, program.look, plan.offset, strict=True)
    for stretch, (first, end) in enumerate(pairwise([*program.stretches, len(program.size)])):
        if trail is not None:
            trail.pass_by(shifts, state.streams)
        lag = before.ahead(program, stretch, shifts, state.streams, state.slots) if before is not None else None
        if before is not None and lag is not None:
            left, state.lanes, state.streams = before.follow(program, stretch, lag, state.slots)
            return delays + left
        _run(islice(segments, end - first), items, program.n_slots, state, shifts, delays)
    state.lanes = [shift + advance for shift, advance in zip(shifts, plan.advance, strict=True)]
    if trail is not None:
        trail.end(delays, state.lanes, state.streams, state.slots)
    return delays


def _run(
    segments: Iterable[tuple[int, int, Event | None, int, float]],
    items: Iterator[tuple[float, float, int, int, int]],
    n_slots: int,
    state: State,
    shifts: list[float],
    delays: list[float],
) -> None:
    """Run some segments: lane, number of items, what it begins with, ``Program.look``, ``Plan.offset`` of each."""
    streams, slots, history = state.streams, state.slots, state.history
    for lane, size, event, look, offset in segments:
        shift = shifts[lane]
        if event is not None:
            waiting, keep, room = event
            now = shift + offset
            for slot, lag in waiting:
                until = slots[slot] + lag
                if until > now:
                    now = until
                    shift = now - offset
            if keep >= 0:
                slots[keep] = now
            for back, slot in room:
                until = _ended(history, back, slot) if back else slots[slot]
                if until > now:
                    now = until
                    shift = now - offset
            shifts[lane] = shift
        elif look >= 0:
            until = slots[look] if look < n_slots else _ended(history, *divmod(look, n_slots))
            if until > shift + offset:
                shifts[lane] = shift = until - offset
        delays.append(shift)
        if not size:
            continue
        for total, ready, stream, floor, slot in islice(items, size):
            end = streams[stream]
            if floor >= 0:
                until = slots[floor]
                if until > end:
                    end = until
            end += total
            ready += shift
            if ready > end:
                end = ready
            streams[stream] = slots[slot] = end


def _ended(history: list[list[float]], back: int, slot: int) -> float:
    """What a slot held so many passes before, ns; long ago where there was no such pass."""
    return history[-back][slot] if back <= len(history) else _LONG_AGO
