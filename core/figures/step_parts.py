"""What one step's time went into, step by step, and what bound it: as the budget and the verdict say it of the mean."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from core import sets
from core.figures.device import DeviceTimes
from core.figures.lookup import View, distinct
from core.figures.model import BREAKDOWN_PARTS, Figures, StepFigures, StepParts
from core.figures.units import step_units
from core.figures.verdict import CAUSE_SHARE, DEVICE_BOUND_SHARE, GROUPS, LOADER_SHARE, MOSTLY_DEVICE_SHARE, TEMPLATES
from core.intervals import Spans, coverage, subtract
from core.kinds import GapCause
from core.tables import I64, U8, Bool, StepTable

# What can bound a step: a cause of idling (`core.kinds.GapCause`) under its own number, else one of these.
DEVICE, EXCHANGE, OPERATORS, LOADING, REST, LEFT_OUT, NOT_KNOWN = range(len(GapCause), len(GapCause) + 7)


def step_parts(
    view: View,
    steps: StepTable,
    figures: StepFigures,
    anchor_ns: I64,
    times: DeviceTimes,
    causes: Mapping[int, Mapping[int, Spans]],
) -> StepParts | None:
    """Share out the device's time of each step; None without device work or steps (docs/figures.md, "Steps").

    ``causes`` as of `core.figures.gaps.spans_by_cause`.
    """
    if not view.devices or not len(steps):
        return None
    count = len(steps)
    paced = (anchor_ns >= 0) & (figures.period_ns > 0)
    start = np.where(paced, anchor_ns, _free_from(steps, figures, anchor_ns))
    end = np.where(paced, anchor_ns + figures.period_ns, np.maximum(steps.end_ns, figures.device_end_ns))
    busy, exchange = np.full(count, -1.0), np.zeros(count)
    idle = np.zeros((count, len(GapCause)))
    unit, devices_of = step_units(view, steps)
    for one in distinct(unit):
        rows, devices = (unit == one).nonzero()[0], devices_of[one]
        if not devices:
            continue
        busy[rows] = 0.0
        for device in devices:
            share = 1.0 / len(devices)
            busy[rows] += share * coverage(times.busy[device], start[rows], end[rows])
            alone = subtract(times.communication[device], times.compute[device])
            exchange[rows] += share * coverage(alone, start[rows], end[rows])
            for cause, spans in causes[device].items():
                idle[rows, cause] += share * coverage(spans, start[rows], end[rows])
    for made in (busy, exchange, idle):
        made.setflags(write=False)
    return StepParts((end - start).astype(np.float64), busy, exchange, idle)


def _free_from(steps: StepTable, figures: StepFigures, anchor_ns: I64) -> I64:
    """Start of each step; where the device still works at the step before then, the end of that: int64[n_steps]."""
    order = np.lexsort((steps.start_ns, steps.thread_id))
    before, here = order[:-1], order[1:]
    result = steps.start_ns.copy()
    late = (steps.thread_id[before] == steps.thread_id[here]) & (anchor_ns[here] >= 0)
    before, here = before[late], here[late]
    result[here] = np.maximum(result[here], np.minimum(figures.device_end_ns[before], anchor_ns[here]))
    return result


def shown_length_ns(figures: Figures) -> I64:
    """How long each step is said to take: its period, else as long as the host or its own device work takes."""
    f, parts = figures.step_figures, figures.step_parts
    own = f.dur_ns if parts is None else np.maximum(f.dur_ns, parts.length_ns.astype(np.int64))
    return np.where(f.period_ns > 0, f.period_ns, own)


def bounds_of_steps(figures: Figures) -> U8:
    """What bound each step: uint8[n_steps], a `GapCause` or one of the numbers above.

    Goes by the thresholds of `core.figures.verdict.judge`: the device where it works nearly all the time or nothing
    else is large, else the largest cause of the largest group. Where the verdict, which knows what a fix would win
    back, calls the trace device-bound, so is a step that is mostly the device's; where it says that waits are the
    cause of slow launching, they are that of a step with waits, too.
    """
    f, parts = figures.step_figures, figures.step_parts
    if parts is None or not figures.devices:
        return np.where(f.counted, _of_cpu(f), LEFT_OUT).astype(np.uint8)
    length = np.maximum(parts.length_ns, 1.0)
    groups = {code: parts.idle_ns[:, list(causes)].sum(axis=1) / length for code, causes in GROUPS.items()}
    exchange = parts.communication_ns / length
    groups["communication_bound"] = groups["communication_bound"] + exchange
    codes, shares = tuple(groups), np.array(tuple(groups.values()))
    top, alone = shares.argmax(axis=0), parts.busy_ns / length - exchange
    bound = np.full(len(length), NOT_KNOWN, np.int64)
    for place, code in enumerate(codes):
        causes = np.array(GROUPS[code])
        largest = causes[parts.idle_ns[:, causes].argmax(axis=1)]
        bound[top == place] = largest[top == place]
    bound[top == codes.index("communication_bound")] = EXCHANGE
    verdict = figures.summary.verdict
    if figures.summary.verdict_template == TEMPLATES["sync_refill"]:
        launching = sets.among(bound, GROUPS["host_bound"])
        bound[launching & (f.sync_wait_ns > 0)] = GapCause.SYNC
    limit = MOSTLY_DEVICE_SHARE if verdict in ("device_bound", "healthy") else DEVICE_BOUND_SHARE
    mostly = (alone >= limit) & (bound != EXCHANGE) | (alone >= DEVICE_BOUND_SHARE)
    bound[mostly | (shares.max(axis=0) < CAUSE_SHARE)] = DEVICE
    unknown: Bool = (parts.busy_ns < 0) | (figures.summary.gpu_busy_pct is None)
    bound[unknown] = NOT_KNOWN
    return np.where(f.counted, bound, LEFT_OUT).astype(np.uint8)


def _of_cpu(figures: StepFigures) -> I64:
    """The largest part of each step of a CPU; its data, where that takes so much."""
    names = {"cpu_exec": OPERATORS, "dataloader": LOADING, "communication": EXCHANGE, "other": REST}
    parts = figures.breakdown_ns[:, [BREAKDOWN_PARTS.index(name) for name in names]]
    largest = np.array(tuple(names.values()))[parts.argmax(axis=1)]
    return np.where(parts[:, 1] >= LOADER_SHARE * np.maximum(figures.dur_ns, 1), LOADING, largest)
