"""How long one thing takes in each step: whether a mean stands for all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.figures.lookup import view_of
from core.figures.model import Figures
from core.figures.stats import outermost_of_name
from core.tables import FLAG_NO_DURATION, FLAG_UNFINISHED, I32, I64, Bool, Table
from core.trace import Trace


@dataclass(frozen=True, eq=False)
class PerStep(Table):
    """One row per step. Device work belongs to the step that launched it, everything else to the one it starts in."""

    time_ns: I64
    calls: I64
    longest: I32  # longest slice of the step, -1 where there is none
    counted: Bool  # the step is one of those that means are taken over


def per_step(trace: Trace, figures: Figures, slice_id: int) -> PerStep:
    """Time of all slices of a slice's name and kind by step; on a CPU thread, what is inside itself counts once."""
    slices, steps = trace.slices, len(figures.steps)
    ids = (slices.name_id == slices.name_id[slice_id]).nonzero()[0].astype(np.int32)
    odd = (slices.flags[ids] & (FLAG_NO_DURATION | FLAG_UNFINISHED)) != 0
    ids = ids[(slices.kind[ids] == slices.kind[slice_id]) & (figures.step_of[ids] >= 0) & ~odd]
    time = slices.dur_ns[ids]
    if not trace.device_work_mask[slice_id]:
        _, time = outermost_of_name(view_of(trace), ids)
    step = figures.step_of[ids]
    longest = np.full(steps, -1, np.int32)
    by_length = slices.dur_ns[ids].argsort(kind="stable")
    longest[step[by_length]] = ids[by_length]
    return PerStep(
        np.bincount(step, weights=time, minlength=steps).astype(np.int64),
        np.bincount(step, minlength=steps).astype(np.int64),
        longest,
        np.asarray(figures.step_figures.counted, bool),
    )
