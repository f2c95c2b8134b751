"""The step windows of torch-tb-profiler, to show beside ours and to compare with it."""

from __future__ import annotations

import numpy as np

from core.figures.breakdown import breakdown
from core.figures.lookup import View
from core.figures.model import Figures
from core.tables import I32, I64, StepTable
from core.trace import Trace


def plugin_breakdown(trace: Trace, figures: Figures) -> I64:
    """Breakdown of the steps over that tool's windows: int64[n_steps, 8] in `BREAKDOWN_PARTS` order, ns."""
    view = View(trace)
    return breakdown(view, figures.steps, *plugin_windows(view, figures.steps, figures.step_of))


def plugin_windows(view: View, steps: StepTable, step_of: I32) -> tuple[I64, I64]:
    """Windows in which that tool shares a step out: int64[n_steps] starts and ends, ns.

    It ends a step with the last device work launched in it when that outlasts the host step, and starts the next one
    there. Where it does not know the trace's category names for runtime calls (all but those of torch 1.8 and 1.9) it
    finds no launches and takes the host step.
    """
    start, end = steps.start_ns.copy(), steps.end_ns.copy()
    links, slices = view.trace.links, view.trace.slices
    if not len(steps) or not len(links.launched):
        return start, end
    by = links.launched_by
    inside = step_of[by] >= 0
    inside[inside] = view.trace.end_ns[by[inside]] <= steps.end_ns[step_of[by[inside]]]
    last = np.full(len(steps), -1, dtype=np.int64)
    np.maximum.at(last, step_of[by[inside]], view.trace.end_ns[links.launched[inside]])
    first = np.full(len(steps), np.iinfo(np.int64).max, dtype=np.int64)
    np.minimum.at(first, step_of[by[inside]], slices.start_ns[links.launched[inside]])
    previous = int(start[0])
    if last[0] >= 0:
        others = np.ones(len(slices), dtype=bool)
        others[links.launched[inside]] = False
        before = view.trace.end_ns[view.work[others[view.work]]]
        before = before[before < first[0]]
        previous = max(previous, int(before.max()) if len(before) else previous)
    for i in range(len(steps)):
        start[i] = max(previous, int(start[i]))
        end[i] = max(int(end[i]), int(last[i]), int(start[i]))
        previous = int(end[i])
    return start, end
