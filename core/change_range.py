"""Between which bounds the change of a step lies, once what the machine did meanwhile is allowed for.

A run knows how long other programs kept its threads from a core while steps were timed, how far the steps scattered,
and how long a fixed piece of work took beside them. The true step lies between the measured one and what is left
without the waiting; where the processor itself was slower or faster, the change is looked at with and without that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.project import Figures

CALM_PCT = 10.0  # waited for a core, of the timing: less hardly moves a step
MOST_WAITED = 0.98  # of the timing: waiting is summed over threads, so it may exceed the time itself
MOST_TOLD = 0.5  # of the timing: where more may have been waiting, how short the step is cannot be told
CLEAR = 2.5  # standard errors (Student's 95 % of six steps): a change beyond them is more than one run's own noise
STEADY_PCT = 7.0  # the fixed piece of work differs by so much between runs at one and the same pace

Range = tuple[float, float]


def is_calm(figures: Figures) -> bool:
    """Whether other programs left the machine alone while steps were timed; also where that is not known."""
    return figures.waited_pct is None or figures.waited_pct <= CALM_PCT


def step_range(figures: Figures) -> Range:
    """Shortest and longest that a step without the profiler may be, of the measured one, on a quiet machine."""
    error = CLEAR * (figures.wall_error_pct or 0.0) / 100.0
    waited = min((figures.waited_pct or 0.0) / 100.0, MOST_WAITED)
    return max(1.0 - waited - error, 1.0 - MOST_WAITED), 1.0 + error


def shortest_step(figures: Figures) -> float | None:
    """Shortest that a step without the profiler may be on a quiet machine, in ns; None where that cannot be told.

    Threads wait at the same time, one of them maybe for another: the sum of what they waited bounds what a step lost,
    and says nothing where it comes near the time itself.
    """
    share = step_range(figures)[0]
    return None if not figures.wall_ns or share < 1.0 - MOST_TOLD else share * figures.wall_ns


def is_too_busy(waited_pct: float | None) -> bool:
    """Whether other programs had the cores for so much of a timing that it tells no step."""
    return (waited_pct or 0.0) > 100.0 * MOST_TOLD


def pace_change(before: Sequence[Figures], after: Figures) -> float | None:
    """How much longer a fixed piece of work took, as a factor; None where that is not known, or no more than usual."""
    old = [f.loop_ns for f in before if f.loop_ns]
    if not old or not after.loop_ns:
        return None
    ratio = after.loop_ns * len(old) / sum(old)
    return ratio if abs(math.log(ratio)) > math.log1p(STEADY_PCT / 100.0) else None


def change_range(before: Sequence[Figures], after: Figures) -> Range | None:
    """Smallest and largest change of the step without the profiler, in per cent of before; negative is faster.

    ``before`` are all measurements of one code, whose mean counts. None where one of them has no such step.
    """
    old = [(f.wall_ns, step_range(f)) for f in before if f.wall_ns]
    if not old or not after.wall_ns:
        return None
    shortest, longest = (sum(ns * bounds[side] for ns, bounds in old) / len(old) for side in (0, 1))
    low, high = (after.wall_ns * bound for bound in step_range(after))
    pace = pace_change(before, after) or 1.0
    low, high = low * min(1.0, 1.0 / pace), high * max(1.0, 1.0 / pace)
    return 100.0 * (low / longest - 1.0), 100.0 * (high / shortest - 1.0)
