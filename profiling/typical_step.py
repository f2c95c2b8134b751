"""What a step of a loop takes, from some in turn: one odd step does not decide it, and a rhythm does not hide it.

A loader whose workers do not keep up hands out its batches in bursts: with two of them a short step follows a long one.
The median of such steps is the short or the long one by chance; what the loop takes is their mean.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

SLOW_STEP = 1.5  # times the median: a step that took longer had a hiccup
MOST_ODD = 8  # of so many steps one may be odd, and of fewer: more of them are how this loop goes
LEAST_FOR_ERROR = 3  # steps or periods: fewer say nothing about how far they scatter
LONGEST_PERIOD = 16
RHYTHM = 0.3  # the error of the periods' mean, of the error of the steps' mean: above, there is no such period
# Student's 95 % for so many periods less one, over the 2.5 that a standard error is taken by elsewhere.
FEW = {3: 1.72, 4: 1.27, 5: 1.11}


def is_even(steps: Sequence[float]) -> bool:
    """Whether all steps but one in eight lie near their median."""
    usual = statistics.median(steps)
    odd = sum(step > SLOW_STEP * usual or usual > SLOW_STEP * step for step in steps)
    return len(steps) < LEAST_FOR_ERROR or odd <= max(1, len(steps) // MOST_ODD)


def hiccups(steps: Sequence[float]) -> float:
    """What odd slow steps took longer than they should, in all: of uneven steps only one far beyond all others."""
    if is_even(steps):
        usual = statistics.median(steps)
        return sum(step - usual for step in steps if step > SLOW_STEP * usual)
    *_, second, longest = sorted(steps)
    return longest - second if longest > SLOW_STEP * second else 0.0


def typical_step(steps: Sequence[float]) -> tuple[float | None, float | None]:
    """Time of a step and its standard error.

    Parameters
    ----------
    steps
        Times of steps that followed one another.

    Returns
    -------
    tuple
        Their median where all but one in eight lie near it; else their mean, over whole periods where they have one,
        one hiccup left out. In the unit of the steps; None where there are none. The error is in per cent of it, None
        of fewer than three steps.
    """
    if not steps:
        return None, None
    if is_even(steps):
        usual = statistics.median(steps)
        return usual, _error_of_median(steps, usual)
    longest, excess = max(steps), hiccups(steps)
    calm = [step - excess if step == longest else step for step in steps]
    mean, error = statistics.mean(calm), statistics.stdev(calm) / len(calm) ** 0.5
    mean, error = min(_of_periods(calm, RHYTHM * error), (mean, error), key=lambda found: found[1])
    return mean, 100.0 * error / mean if mean else None


def _of_periods(steps: Sequence[float], largest: float) -> tuple[float, float]:
    """Mean over whole periods with its error, of the period that suits best; infinitely unsure where none does."""
    best = (0.0, float("inf"))
    for period in range(2, min(len(steps) // LEAST_FOR_ERROR, LONGEST_PERIOD) + 1):
        count = len(steps) // period
        newest = steps[len(steps) - count * period :]
        means = [statistics.mean(newest[at : at + period]) for at in range(0, len(newest), period)]
        error = statistics.stdev(means) / count**0.5 * FEW.get(count, 1.0)
        if error <= largest and error < best[1]:
            best = (statistics.mean(means), error)
    return best


def _error_of_median(steps: Sequence[float], usual: float) -> float | None:
    """Standard error of a median in per cent of it, from the quartiles: one slow step does not make it large."""
    if len(steps) < LEAST_FOR_ERROR:
        return None
    low, _, high = statistics.quantiles(steps, n=4)
    return 100.0 * 1.25 * (high - low) / 1.35 / len(steps) ** 0.5 / usual if usual else None
