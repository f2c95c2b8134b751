"""One step's time, shared out between the device at work and the causes of its idling, so that it adds up."""

from __future__ import annotations

import numpy as np

from core.figures.device import DeviceTimes
from core.figures.lookup import View
from core.figures.model import Budget, GapTable, StepFigures
from core.intervals import Spans, coverage, union
from core.kinds import GapCause
from core.tables import I64, StepTable


def budget_window(view: View, steps: StepTable, figures: StepFigures, anchor_ns: I64) -> tuple[Spans, int, str]:
    """Window that the budget shares out, the number of steps in it, and its basis.

    ``period``: from the anchor of each counted step to that of the next. ``step``: without any period, the counted
    steps on the host, each up to the end of the last device work launched in it. ``window``: without steps, the
    whole trace, which counts as one.
    """
    known = np.flatnonzero(figures.counted & (figures.period_ns > 0))
    if len(known):
        start = anchor_ns[known]
        return union(start, start + figures.period_ns[known]), len(known), "period"
    rows = np.flatnonzero(figures.counted)
    if len(rows):
        end = np.maximum(steps.end_ns[rows], figures.device_end_ns[rows])
        return union(steps.start_ns[rows], end), len(rows), "step"
    first, last = view.trace.span_ns
    return union(np.array([first], np.int64), np.array([last], np.int64)), 1, "window"


def share_out(view: View, times: DeviceTimes, gaps: GapTable, window: Spans, steps: int, basis: str) -> Budget:
    """Return the budget per step; unknown (None) where no device work was recorded."""
    devices = len(view.devices)
    if not devices or not window.total_ns:
        return Budget(period_ns=None, busy_ns=None)
    busy = sum(int(coverage(times.busy[d], window.start, window.end).sum()) for d in view.devices)
    inside = coverage(window, gaps.start_ns, gaps.end_ns)
    sums = np.bincount(gaps.cause, weights=inside, minlength=len(GapCause))
    idle = {int(cause): float(sums[cause]) for cause in GapCause}
    period = round(window.total_ns / steps)
    per_step = {cause: round(ns / devices / steps) for cause, ns in idle.items() if ns}
    # Rounding to whole nanoseconds must not cost the sum: busy takes the difference of at most a few of them.
    return Budget(
        period_ns=period,
        busy_ns=period - sum(per_step.values()) if busy else 0,
        idle_by_cause_ns=per_step,
        basis=basis,
        steps=steps,
    )
