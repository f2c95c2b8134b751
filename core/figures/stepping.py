"""The figures of each step: its three times, its busy time, its waits, its breakdown."""

from __future__ import annotations

import numpy as np

from core import sets
from core.figures.breakdown import breakdown
from core.figures.device import DeviceTimes, launched_extent, lost_per_step, work_per_step
from core.figures.lookup import View, distinct
from core.figures.model import StepFigures, SyncTable
from core.figures.rounds import rounds, with_like_lengths
from core.figures.steps import (
    BESIDE_OUTLIER,
    LOST,
    OUTLIER_RATIO,
    UNWRITTEN,
    choose_counted,
    cut_short,
    far,
)
from core.figures.units import step_units
from core.intervals import coverage
from core.recorded import is_of_first_steps
from core.tables import F64, I32, I64, Bool, StepTable

# How much longer the device may take per step than the host before the host step is called enqueue time, and how
# much of a single step's length may still be queued when it ends. Below, it is ordinary overlap at a step's border.
_AHEAD_RATIO = 1.1
_GROWTH_SHARE = 0.05
_FASTER_SHARE, _LAGS_SHARE = 0.02, 0.5  # of the period; of what the host step is shorter
_SINGLE_LAG_SHARE = 0.25


def step_figures(
    view: View, steps: StepTable, step_of: I32, times: DeviceTimes, syncs: SyncTable, anchor_ns: I64
) -> StepFigures:
    """Compute all per-step figures (docs/figures.md, "Steps"); ``anchor_ns`` as of `core.figures.device.anchors`."""
    count = len(steps)
    duration = steps.end_ns - steps.start_ns
    first, last, kernels = launched_extent(view, steps, step_of)
    work = work_per_step(steps, view, step_of)
    has_lag = last >= 0
    in_step = syncs.step_id >= 0
    waits = np.bincount(syncs.step_id[in_step], weights=syncs.wait_ns[in_step], minlength=count).astype(np.int64)
    period = periods(steps, anchor_ns)
    paced, round_steps = rounds(view, steps, step_of, period, last, waits)
    early = is_of_first_steps(view.trace)
    lacking, lost = cut_short(view, steps), lost_per_step(steps, view, step_of)
    counted, why = choose_counted(steps, work, bool(len(view.work)), lacking, paced, lost, of_first_steps=early)
    counted, why = beside_outliers(steps, counted, why, period)
    round_steps = with_like_lengths(steps, counted, period, round_steps)
    counted, why = whole_rounds(counted, why, round_steps)
    return StepFigures(
        dur_ns=duration,
        device_start_ns=first,
        device_end_ns=last,
        period_ns=period,
        gpu_busy_ns=_busy(view, steps, times),
        sync_wait_ns=waits if view.saw_calls else np.full(count, -1, dtype=np.int64),
        gpu_lag_ns=np.where(has_lag, last - steps.end_ns, 0),
        has_lag=has_lag,
        kernels=kernels,
        breakdown_ns=breakdown(view, steps, steps.start_ns, steps.end_ns),
        counted=counted,
        why_not=why,
        round_steps=round_steps,
    )


def beside_outliers(steps: StepTable, counted: Bool, why: tuple[str, ...], period: I64) -> tuple[Bool, tuple[str, ...]]:
    """Leave out steps before an outlier whose period holds what that did before its device work: a late batch."""
    order = np.lexsort((steps.start_ns, steps.thread_id))
    here, after = order[:-1], order[1:]
    late = np.array([text.startswith("outlier") for text in why], dtype=bool) & ~counted
    long = far(np.where(counted, period, -1), OUTLIER_RATIO)
    rest = here[late[after] & long[here] & (steps.thread_id[here] == steps.thread_id[after])]
    if not len(rest) or np.count_nonzero(counted) <= len(rest):
        return counted, why
    counted = counted.copy()
    counted[rest] = False
    return counted, tuple(BESIDE_OUTLIER if i in rest else text for i, text in enumerate(why))


def whole_rounds(counted: Bool, why: tuple[str, ...], steps: int) -> tuple[Bool, tuple[str, ...]]:
    """Leave out the last steps that count where they make no whole round of so many: its longest is not their share."""
    rows = counted.nonzero()[0]
    rest = rows[len(rows) - len(rows) % steps :]
    if len(rest) == len(rows):
        return counted, why
    counted = counted.copy()
    counted[rest] = False
    why = tuple("incomplete: the last round of the loop is cut off" if i in rest else t for i, t in enumerate(why))
    return counted, why


def periods(steps: StepTable, anchor: I64) -> I64:
    """Distance from each step's anchor to that of the next step of the same thread, -1 where either is missing.

    Steps whose numbers do not follow each other (another profiling window) are no neighbours.
    """
    result = np.full(len(steps), -1, dtype=np.int64)
    for thread in sets.distinct(steps.thread_id):
        rows = (steps.thread_id == thread).nonzero()[0]
        rows = rows[steps.start_ns[rows].argsort(kind="stable")]
        here, after = rows[:-1], rows[1:]
        near = steps.start_ns[after] - steps.end_ns[here] <= np.maximum(steps.end_ns[here] - steps.start_ns[here], 0)
        numbered = (steps.number[here] >= 0) & (steps.number[after] >= 0)
        near &= ~numbered | (steps.number[after] == steps.number[here] + 1)
        good = near & (anchor[here] >= 0) & (anchor[after] > anchor[here])
        result[here[good]] = (anchor[after] - anchor[here])[good]
    return result


def _busy(view: View, steps: StepTable, times: DeviceTimes) -> I64:
    """Busy time inside each host step, mean over the devices of its unit; -1 without device work."""
    result = np.full(len(steps), -1, dtype=np.int64)
    unit, devices_of = step_units(view, steps)
    for one in distinct(unit):
        devices = devices_of[one]
        rows = unit == one
        if devices:
            parts = [coverage(times.busy[dev], steps.start_ns[rows], steps.end_ns[rows]) for dev in devices]
            result[rows] = np.rint(np.mean(parts, axis=0)).astype(np.int64)
    return result


def odd_steps(figures: StepFigures) -> Bool:
    """Steps that no figure is taken from, since they are warm-up or outliers or their device work was not written.

    Returns
    -------
    bool[n]; none where no other step counts.
    """
    starts = ("warm-up", "outlier", "beside", UNWRITTEN, LOST)
    odd = np.array([why.startswith(starts) for why in figures.why_not], dtype=bool)
    return odd & ~figures.counted


def mean(values: I64 | F64, mask: Bool) -> float | None:
    """Mean of the values under a mask; None when there are none."""
    return float(values[mask].mean()) if mask.any() else None


def runs_ahead(figures: StepFigures) -> bool | None:
    """Tell whether the host steps only measure how long it takes to queue a step (None: nothing to judge by).

    Either the device needs clearly longer per step than the host while its lag behind the host grows from step to
    step; or, in a trace of one step, a good part of that step's work is still to do when the host step ends.
    """
    rows = (figures.counted & figures.has_lag).nonzero()[0]
    if not len(rows):
        return None
    lag, dur = figures.gpu_lag_ns[rows], figures.dur_ns[rows]
    if len(rows) == 1:
        return bool(lag[0] > _SINGLE_LAG_SHARE * dur[0])
    known = figures.period_ns[rows] > 0
    if not known.any():
        return bool(lag[-1] - lag[0] > _GROWTH_SHARE * float(dur.mean()) * (len(rows) - 1))
    period, host = float(figures.period_ns[rows][known].mean()), float(dur[known].mean())
    near = np.diff(rows) == 1  # an outlier step between two others lets the device catch up
    growth = float(np.diff(lag)[near].mean()) if near.any() else float(lag[-1] - lag[0]) / (len(rows) - 1)
    return period > _AHEAD_RATIO * host and growth > _GROWTH_SHARE * period


def queue_grows(figures: StepFigures) -> bool:
    """Tell whether the CPU queues steps faster than the device works them off: its launches then are never late.

    The period is longer than the host step, and by most of the difference each step lags further behind.
    """
    rows = (figures.counted & figures.has_lag & (figures.period_ns > 0)).nonzero()[0]
    near = np.diff(rows) == 1
    if not near.any():
        return False
    period, host = float(figures.period_ns[rows].mean()), float(figures.dur_ns[rows].mean())
    growth = float(np.diff(figures.gpu_lag_ns[rows])[near].mean())
    return period - host > _FASTER_SHARE * period and growth > _LAGS_SHARE * (period - host)
