"""One step's time, shared out between the device at work and the causes of its idling, so that it adds up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from core.figures.device import DeviceTimes
from core.figures.lookup import View, distinct
from core.figures.model import Budget, StepFigures
from core.figures.units import step_units
from core.intervals import EMPTY, Spans, coverage, union
from core.sets import among
from core.tables import I32, I64, StepTable


@dataclass(frozen=True, eq=False)
class Windows:
    """What the budget shares out: one window per step (int64, ns; those of several ranks or threads may overlap).

    ``unit`` says whose it is, ``devices`` what devices each unit keeps (`core.figures.units`).

    ``basis`` is ``period``: from the anchor of each counted step to that of the next; ``step``: without any period,
    the counted steps on the host, each up to the end of the last device work launched in it; ``window``: without
    steps, the whole trace, which counts as one.
    """

    start_ns: I64
    end_ns: I64
    unit: I32
    devices: Mapping[int, tuple[int, ...]]
    basis: str

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def covered(self) -> Spans:
        """The windows as one set of instants."""
        return union(self.start_ns, self.end_ns)


def budget_windows(view: View, steps: StepTable, figures: StepFigures, anchor_ns: I64) -> Windows:
    """Choose the windows that the budget shares out."""
    unit, devices = step_units(view, steps)
    known = figures.paced.nonzero()[0]
    if len(known):
        start = anchor_ns[known]
        return Windows(start, start + figures.period_ns[known], unit[known], devices, "period")
    rows = figures.counted.nonzero()[0]
    if len(rows):
        end = np.maximum(steps.end_ns[rows], figures.device_end_ns[rows])
        return Windows(steps.start_ns[rows], end, unit[rows], devices, "step")
    sources = np.arange(len(view.trace.sources), dtype=np.int32)
    first, last = view.trace.span_ns
    whole = np.ones(len(sources), dtype=np.int64)
    devices = {one: view.devices_of_source(one) for one in sources.tolist()}
    return Windows(first * whole, last * whole, sources, devices, "window")


def per_window(windows: Windows, sets: Mapping[int, Spans], without: Mapping[int, Spans] | None = None) -> float | None:
    """Time of a per-device set inside the windows: mean over the devices of each window's unit, per window, ns.

    None where no window's unit has device work. What is ``without``, part of the set, does not count.
    """
    total, count = 0.0, 0
    for unit in distinct(windows.unit):
        devices = windows.devices[unit]
        rows = windows.unit == unit
        if not devices:
            continue
        count += int(rows.sum())
        for device in devices:
            inside = coverage(sets[device], windows.start_ns[rows], windows.end_ns[rows])
            if without is not None:
                inside -= coverage(without[device], windows.start_ns[rows], windows.end_ns[rows])
            total += float(inside.sum()) / len(devices)
    return total / count if count else None


def share_out(times: DeviceTimes, causes: Mapping[int, Mapping[int, Spans]], windows: Windows) -> Budget:
    """Return the budget per step; unknown (None) where no device work was recorded.

    Parameters
    ----------
    causes
        As of `core.figures.gaps.spans_by_cause`.
    """
    busy = per_window(windows, times.busy)
    with_devices = [unit for unit in distinct(windows.unit) if windows.devices[unit]]
    rows = among(windows.unit, with_devices)
    if busy is None or not rows.any():
        return Budget(period_ns=None, busy_ns=None, basis=windows.basis)
    period = round(float((windows.end_ns - windows.start_ns)[rows].mean()))
    idle = {}
    for cause in sorted(set().union(*causes.values())):
        spent = round(per_window(windows, {device: own.get(cause, EMPTY) for device, own in causes.items()}) or 0.0)
        if spent:
            idle[cause] = spent
    # Rounding to whole nanoseconds must not cost the sum: busy takes the difference of a few of them, or, where
    # nothing was busy, the largest cause does.
    left = period - sum(idle.values())
    if idle and (left < 0 or not busy):
        idle[max(idle, key=lambda cause: idle[cause])] += left
        left = 0
    return Budget(
        period_ns=period,
        busy_ns=left if idle or busy else 0,
        idle_by_cause_ns=idle,
        basis=windows.basis,
        steps=int(rows.sum()) if windows.basis != "window" else 0,
    )
