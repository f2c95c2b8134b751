"""Operators that something else held up: other programs on their core, or the system behind a page of memory."""

from __future__ import annotations

import numpy as np

from core import sets
from core.kinds import SliceKind
from core.tables import I64
from core.trace import Trace

LEAST_STEPS = 3  # with an operator of that name: fewer do not tell what is usual
TIMES = 5.0  # the usual time: what took longer was held up ...
RARELY = 0.1  # ... unless that comes again: in more steps than this share (and than one) it is the script's own doing


def usual_dur_ns(trace: Trace, step_start_ns: I64, step_end_ns: I64, ids: I64) -> I64:
    """What slices take, ns; an operator that was held up takes what is usual for its name.

    A fix that removes operators removes the time that they need. What held one of them up falls on whatever runs then,
    so it is no saving. What is usual is the median, over the steps, of the longest operator of that name in a step: one
    that is long in every step is not held up.

    Parameters
    ----------
    trace
        The trace.
    step_start_ns, step_end_ns
        Steps of the process that the slices belong to, int64[n_steps], ns, in time order.
    ids
        Slices that a fix touches.
    """
    dur: I64 = trace.slices.dur_ns[ids].copy()
    mine = (trace.slices.kind[ids] == int(SliceKind.CPU_OP)).nonzero()[0]
    if len(step_start_ns) < LEAST_STEPS or len(mine) < LEAST_STEPS:
        return dur
    start = trace.slices.start_ns[ids[mine]]
    step = step_start_ns.searchsorted(start, side="right") - 1
    inside = (step >= 0) & (start < step_end_ns[np.maximum(step, 0)])
    mine, step = mine[inside], step[inside]
    names, _, name = sets.grouped(trace.slices.name_id[ids[mine]])
    longest = np.zeros((len(names), len(step_start_ns)), dtype=np.int64)
    np.maximum.at(longest, (name, step), dur[mine])
    usual = np.full(len(names), np.iinfo(np.int64).max)
    for row, of_steps in enumerate(longest):
        seen = of_steps[of_steps > 0]
        if len(seen) < LEAST_STEPS:
            continue
        middle = int(sets.median(seen))
        if np.count_nonzero(seen / TIMES > middle) <= max(1, RARELY * len(seen)):
            usual[row] = middle
    held = dur[mine] / TIMES > usual[name]
    dur[mine[held]] = usual[name[held]]
    return dur
