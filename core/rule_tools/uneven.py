"""Waits that are mostly one step's: a mean over the steps then says little about any of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core import sets
from core.rule_tools.facts import Facts
from core.rule_tools.sync_classes import Occurrence, host_time_ns
from core.suggestions import Evidence

LEAST_STEPS = 3  # of fewer, none can be told from the others
MOST_SHARE = 0.5  # of all time in the step that waits longest: from here on it is mostly that step's
TIMES_TYPICAL = 3.0  # ... and so many times what a typical step has
SENTENCE = (
    "Most of it is in one step: {worst_ms:time} in step {worst_step}, and {typical_ms:time} in a typical one. What it "
    "saves per step is the mean of all recorded steps, which few of them show: record more steps to see what lasts."
)


def uneven(facts: Facts, occurrences: Sequence[Occurrence]) -> tuple[dict[str, Any], tuple[Evidence, ...]]:
    """Values for `SENTENCE` and evidence where the time is mostly one step's; nothing where it is not.

    Parameters
    ----------
    facts
        The steps that count.
    occurrences
        The blocking operations of one suggestion.
    """
    rows = facts.use_steps.nonzero()[0]
    if len(rows) < LEAST_STEPS:
        return {}, ()
    took = dict.fromkeys(rows.tolist(), 0)
    calls: dict[int, list[int]] = {}
    for one in occurrences:
        row = int(facts.figures.step_of[one.calls[0]])
        if row in took:
            took[row] += host_time_ns(facts, one)
            calls.setdefault(row, []).extend(one.calls)
    every = np.asarray(list(took.values()), dtype=np.float64)
    worst = max(took, key=lambda row: took[row])
    typical = sets.median(every)
    if took[worst] <= MOST_SHARE * every.sum() or took[worst] <= TIMES_TYPICAL * typical:
        return {}, ()
    number = int(facts.figures.steps.number[worst])
    values = {
        "worst_step": number if number >= 0 else worst + 1,
        "worst_ms": took[worst] / 1e6,
        "typical_ms": typical / 1e6,
    }
    others = [c for row, mine in calls.items() if row != worst for c in mine]
    found = [Evidence("In the step with the longest wait", round(took[worst] / 1e6, 6), "ms", tuple(calls[worst]))]
    if others:
        found.append(Evidence("In a typical step (median)", round(typical / 1e6, 6), "ms", tuple(others)))
    return values, tuple(found)
