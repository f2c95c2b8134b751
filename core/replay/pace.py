"""How fast a program runs: once, or again and again until its pace has settled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.replay.engine import Plan
from core.replay.program import Program, queue_was_full
from core.replay.queues import QUEUE_LIMIT
from core.replay.running import fresh_state, run_pass
from core.replay.trail import Trail
from core.tables import F64

_MAX_PASSES = 40
_SETTLED = 5e-4  # change of the pace between two passes below which it has settled
_ROUNDING_NS = 1e-3
_RAN = -1e17  # clocks and slots below this have not been set yet


@dataclass(frozen=True, eq=False)
class Pace:
    """Result of running a program: time per pass (of the one pass), passes run, and the delays of the first one."""

    pass_ns: float
    passes: int
    delays: list[float]


def once(program: Program, plan: Plan) -> Pace | None:
    """Run a program once; None when it does not look for room in the queues and should."""
    state = fresh_state(program)
    delays = run_pass(program, plan, state)
    if not program.looks and queue_was_full(program, delays, plan.begin, [program.watched(state.slots)]):
        return None
    return Pace(max([state.lanes[0], *state.streams]), 1, delays)


def settle(program: Program, plan: Plan, launches_per_pass: int, rough: bool = False) -> Pace | None:
    """Repeat a program until the pace of its slowest part no longer changes; None as in `once`.

    The first two passes settle it where the second one did what the first did, everything later by the same time: then
    so does the third.

    Parameters
    ----------
    launches_per_pass
        Largest number of launches on one stream.
    rough
        What rounding of sums makes (far below a nanosecond) does not matter.
    """
    state = fresh_state(program)
    fill = min(_MAX_PASSES - 4, QUEUE_LIMIT // launches_per_pass + 1)  # passes until a queue can be full
    marks: list[list[float]] = []
    slots: list[F64] = []
    first: list[float] = []
    within_ns = _ROUNDING_NS if rough else 0.0
    compares = (rough or plan.exact) and len(program.stretches) > 1
    trail: Trail | None = None
    for number in range(_MAX_PASSES):
        before, trail = trail, Trail(within_ns) if compares else None
        delays = run_pass(program, plan, state, before if before and before.ended else None, trail)
        if program.looks:
            state.history.append(trail.slots if trail and trail.ended else state.slots.copy())
        else:
            slots.append(program.watched(state.slots))
            if queue_was_full(program, delays, plan.begin, slots):
                return None
        marks.append([*state.lanes, *state.streams])
        if number == 0:
            first = delays
            continue
        if number == 1:
            lag = _lag(marks)
            if lag is None:
                continue
            if _goes_on(program, marks, state.history, lag, within_ns):
                return Pace(lag, 2, first)
            if _same_later(program, plan, delays, slots, state.history, lag):
                return Pace(lag, 2, first)
            continue
        if _is_steady(marks, program.graph.lanes.count, number >= fill + 3):
            break
    tail = max(1, min(4, (len(marks) - 1) // 2))
    shown = [0, *range(program.graph.lanes.count, len(marks[-1]))]
    rise = max((marks[-1][i] - marks[-1 - tail][i]) / tail for i in shown)
    return Pace(rise, len(marks), first)


def _is_steady(marks: list[list[float]], lanes: int, filled: bool) -> bool:
    """Whether the main lane and the streams advance as in the pass before, the main lane as fast as any."""
    shown = [0, *range(lanes, len(marks[-1]))]
    last = [marks[-1][i] - marks[-2][i] for i in shown]
    before = [marks[-2][i] - marks[-3][i] for i in shown]
    pace = max(last)
    if any(abs(a - b) > _SETTLED * max(pace, 1.0) for a, b in zip(last, before, strict=True)):
        return False
    return filled or last[0] >= (1 - 10 * _SETTLED) * pace


def _lag(marks: list[list[float]]) -> float | None:
    """By how much all clocks moved on in the second pass; None where they moved on unlike each other."""
    lag = marks[1][0] - marks[0][0]
    low, high = lag - _ROUNDING_NS, lag + _ROUNDING_NS
    return lag if all(low <= b - a <= high for a, b in zip(marks[0], marks[1], strict=True) if b > _RAN) else None


def _goes_on(
    program: Program, marks: list[list[float]], history: list[list[float]], lag: float, within_ns: float
) -> bool:
    """Whether all that a third pass reads of the two before it moved on by the same time.

    Then it does what the second one did, room found or not. Only for launches that look for room no further back than
    in the pass before.
    """
    if not program.looks or program.reads is None:
        return False
    before, now = history
    clocks = [*zip(*marks, strict=True), *((before[slot], now[slot]) for slot in program.reads)]
    return all(abs(b - a - lag) <= within_ns for a, b in clocks if b > _RAN)


def _same_later(
    program: Program, plan: Plan, delays: list[float], slots: list[F64], history: list[list[float]], lag: float
) -> bool:
    """Whether a third pass does what the second did: what it takes over from it moved on as well, and it finds room.

    Slots that a pass sets before they are read do not matter, unless launches look for the room that their work took.
    """
    if program.looks:
        before, now = map(np.array, history)
    else:
        before, now = (held[program.carried_at] for held in slots)
    moved = (now - before)[now > _RAN]
    if len(moved) and (moved.min() < lag - _ROUNDING_NS or moved.max() > lag + _ROUNDING_NS):
        return False
    if all(part.back not in (1, 2) for part in program.room):
        return True
    slots = slots or list(map(program.watched, history))
    return not queue_was_full(program, [delay + lag for delay in delays], plan.begin, [*slots, slots[1] + lag])
