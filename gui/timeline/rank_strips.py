"""Steps of a few ranks in one row: they overlap in time, so that each rank has a strip of the row's height."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.tables import StepTable
from core.trace import Trace
from gui.ranks import ranks_of

MOST_STRIPS = 4  # more would be too thin


def strips_of(trace: Trace, steps: StepTable) -> tuple[NDArray[np.intp], int]:
    """Strip of each step, intp[n_steps], and how many strips there are: one where ranks are none, or too many."""
    if len(trace.sources) > 1:
        ranks = ranks_of(trace, steps)
        if ranks.several and len(ranks.names) <= MOST_STRIPS:
            return ranks.of_step, len(ranks.names)
    return np.zeros(len(steps), np.intp), 1


def step_at(trace: Trace, steps: StepTable, time_ns: float, share: float) -> int:
    """Step at a time and a place in the row's height (0 its top, 1 its bottom); -1 where there is none."""
    strip, count = strips_of(trace, steps)
    own = np.flatnonzero(strip == min(max(int(share * count), 0), count - 1))
    at = int(np.searchsorted(steps.start_ns[own], time_ns, "right")) - 1
    return int(own[at]) if at >= 0 and time_ns < steps.end_ns[own[at]] else -1
