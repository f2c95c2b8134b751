"""All figures of a trace, in one pass over its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from core import memory, sets
from core.figures import device as dev
from core.figures.bounds import wait_bounds
from core.figures.budget import Windows, budget_windows, per_window, share_out
from core.figures.cpu_time import cpu_time
from core.figures.device import DeviceTimes
from core.figures.doctor import examine
from core.figures.gaps import find_gaps, held_up_lead, spans_by_cause
from core.figures.lookup import View, view_of
from core.figures.model import BREAKDOWN_PARTS, Figures, GapTable, StepFigures, Summary, SyncTable
from core.figures.shares import is_foreign
from core.figures.stats import device_stats, operator_stats, self_time, thread_stats
from core.figures.step_parts import step_parts
from core.figures.stepping import mean, odd_steps, queue_grows, runs_ahead, step_figures
from core.figures.steps import assign, find_steps
from core.figures.syncs import find_syncs
from core.figures.units import step_units
from core.figures.verdict import (
    LOST_LAUNCHES_SHARE,
    MIN_WORK,
    Verdict,
    judge,
    judge_captured,
    judge_cut_off,
    judge_in_turn,
    judge_lost,
    judge_too_little,
    judge_uneven,
    judge_without_device,
)
from core.importing.aside import Alongside
from core.intervals import Spans, subtract, union, union_all
from core.kinds import SliceKind, SyncKind, TrackKind
from core.tables import F64, I32, StepTable
from core.trace import Trace

Progress = Callable[[float, str], None]


def _silent(fraction: float, what: str) -> None:
    del fraction, what


def compute_figures(trace: Trace, progress: Progress | None = None) -> Figures:
    """Work out every figure but those of the replay.

    Parameters
    ----------
    trace
        Any trace: with or without steps, device work, launches.
    progress
        Called with the fraction done and what is being done; may raise `core.errors.Cancelled` to stop.

    Returns the figures; the replay fills ``summary.sustained_step_ns`` in, `final_verdict` then judges anew.
    """
    tell, view = progress or _silent, view_of(trace)
    by_name = Alongside(partial(_totals, view), worthwhile=len(trace.slices) >= memory.MANY)
    tell(0.0, "steps")
    steps = find_steps(view)
    step_of = assign(view, steps)
    tell(0.15, "device")
    times = dev.device_times(view)
    tell(0.25, "sync points")
    syncs = find_syncs(view, steps, step_of)
    anchor_ns = dev.anchors(view, steps, step_of)
    per_step = step_figures(view, steps, step_of, times, syncs, anchor_ns)
    every, loop = dev.busy_window(view, steps), dev.busy_windows(view, steps, odd_steps(per_step))
    tell(0.45, "idle time")
    windows = budget_windows(view, steps, per_step, anchor_ns)
    gaps = find_gaps(view, times, _hull(union_all((windows.covered, every))), steps, syncs)
    tell(0.6, "operators and kernels")
    totals = by_name.result()
    totals["cpu_time"] = cpu_time(view, totals.pop("self_ns"), step_of, per_step)
    memory.give_back_between(len(trace.slices))
    tell(0.9, "summary")
    summary = _summary(view, steps, per_step, syncs, times, loop, peaks := memory_peaks(trace))
    causes = spans_by_cause(gaps, view.devices)
    budget, parts = share_out(times, causes, windows), step_parts(view, steps, per_step, anchor_ns, times, causes)
    del causes  # as long as the gaps themselves
    queue_time, depth = dev.queue_depth(view)
    extra = _further(view, steps, times, syncs, windows, depth, gaps)
    figures = Figures(
        steps=steps,
        step_figures=per_step,
        step_of=_frozen(step_of),
        syncs=syncs,
        gaps=gaps,
        **totals,
        budget=budget,
        summary=summary,
        doctor=examine(view, steps, per_step, budget, summary.enqueue_bound, _single(extra, "held_up_lead_ns") or 0.0),
        devices=view.devices,
        busy_by_device_pct={d: dev.share_of(loop[d], times.busy[d]) or 0.0 for d in view.devices},
        busy_by_stream_pct=dev.busy_by_stream(view, loop),
        queue_time_ns=_frozen(queue_time),
        queue_depth=_frozen(depth),
        launch_delay_ns=_frozen(dev.launch_delay(view)),
        extra=extra,
        peak_memory_by_device=peaks,
        step_parts=parts,
    )
    tell(1.0, "summary")
    return replace(figures, summary=with_verdict(summary, final_verdict(trace, figures)))


def with_verdict(summary: Summary, verdict: Verdict) -> Summary:
    """Return the summary with a (new) verdict: its code, sentence, and the sentence as template and values."""
    return replace(
        summary,
        verdict=verdict.code,
        verdict_text=verdict.text,
        verdict_template=verdict.template,
        verdict_values=verdict.values,
    )


def _mean_pace(figures: Figures, sustained_ns: float | None) -> float | None:
    """What the budget's period is compared with, ns: programs beside the slowest one need not keep its pace."""
    own, threads = figures.step_figures, figures.steps.thread_id
    times = [own.period_ns[own.paced & (threads == one)].mean() for one in sets.distinct(threads[own.paced])]
    if sustained_ns is None or len(times) < 2 or not figures.budget.period_ns:
        return sustained_ns
    return sustained_ns * min(1.0, figures.budget.period_ns / float(max(times)))


def final_verdict(
    trace: Trace,
    figures: Figures,
    sustained_ns: float | None = None,
    best_saving_pct: float | None = None,
    waits_saving_pct: float | None = None,
    quicker_device_pct: float | None = None,
) -> Verdict:
    """Judge a trace, better where the replay's sustained step time and the best priced saving are known.

    With a sustained step time the suggestions are priced: no best saving then means that none has a known one.
    """
    if trace.report.is_cut_off:
        return judge_cut_off()
    if sustained_ns is not None and best_saving_pct is None:
        best_saving_pct = 0.0
    lost_pct = _single(figures.extra, "launches_lost_pct")
    if lost_pct is not None and lost_pct > 100.0 * LOST_LAUNCHES_SHARE:
        return judge_lost(lost_pct)
    captured_pct = _single(figures.extra, "launches_captured_pct")
    if captured_pct is not None and captured_pct > 100.0 * LOST_LAUNCHES_SHARE:
        return judge_captured(captured_pct)
    view = view_of(trace)
    if not len(figures.steps) and 0 < len(view.work) < MIN_WORK:
        return judge_too_little(len(view.work))
    verdict = judge(
        figures.budget,
        _single(figures.extra, "exposed_communication_ns"),
        _mean_pace(figures, sustained_ns),
        best_saving_pct,
        waits_saving_pct,
        _single(figures.extra, "held_up_lead_ns") or 0.0,
        bool(len(view.by_kind(SliceKind.PYTHON))),
        _single(figures.extra, "exposed_host_copy_ns") or 0.0,
        queue_grows(figures.step_figures),
        quicker_device_pct,
    )
    if verdict is not None:
        if len(trace.sources) > 1 or len(step_units(view, figures.steps)[1]) > 1:
            return verdict
        together_ns = _single(figures.extra, "any_device_busy_ns")
        in_turn = judge_in_turn(verdict, figures.budget, together_ns, len(view.devices), waits_saving_pct)
        return judge_uneven(in_turn, figures.busy_by_device_pct)
    launches = bool(len(view.launches))
    names_device = bool(trace.meta.devices) or launches
    names = view.names
    moving = names.launch | names.async_copy | names.copy_with_stream | (names.sync == int(SyncKind.MEMCPY))
    left_alone = bool(len(view.host_calls)) and not len(view.named(view.host_calls, moving))
    left_alone &= bool(len(view.by_kind(SliceKind.CPU_OP)))
    loader_share = _loader_share(figures.step_figures)
    return judge_without_device(names_device, loader_share, bool(len(trace.slices)), left_alone, is_foreign(trace))


def _single(extra: Mapping[str, F64], key: str) -> float | None:
    """One of the further figures that is a single value; None where it is unknown."""
    values = extra.get(key)
    return float(values[0]) if values is not None and len(values) else None


def _loader_share(figures: StepFigures) -> float | None:
    """Share of the loader in the counted steps; None where nothing is computed that could wait for its batches."""
    rows = figures.counted
    total = int(figures.dur_ns[rows].sum())
    part = dict(zip(BREAKDOWN_PARTS, figures.breakdown_ns[rows].sum(axis=0).tolist(), strict=True))
    if not total or not part["cpu_exec"]:
        return None
    return float(part["dataloader"]) / total


_Array = TypeVar("_Array", bound=np.ndarray[Any, Any])


def _frozen(values: _Array) -> _Array:
    values.setflags(write=False)
    return values


def _hull(window: Spans) -> Spans:
    if not len(window):
        return window
    return union(window.start[:1], window.end[-1:])


def _totals(view: View) -> dict[str, Any]:
    """The figures of `Figures` that are totals by name; and ``self_ns``, the self time of each slice, ns: int64[n]."""
    own = self_time(view)
    modules, python = thread_stats(
        view, own, SliceKind.PYTHON, TrackKind.CPU_PYTHON, view.names.module, ~view.names.module
    )
    return {
        "operators": operator_stats(view, own),
        "kernels": device_stats(view),
        "ranges": thread_stats(view, own, SliceKind.RANGE, TrackKind.CPU_RANGES)[0],
        "modules": modules,
        "python": python,
        "self_ns": own,
    }


def memory_peaks(trace: Trace) -> dict[int, int]:
    """Highest total of allocated bytes per device (-1 the CPU); devices without recorded totals are left out."""
    memory = trace.memory
    peaks = {}
    for device in sets.distinct(memory.device):
        totals = memory.allocated_bytes[memory.device == device]
        if len(totals) and int(totals.max()) >= 0:
            peaks[int(device)] = int(totals.max())
    return peaks


def _summary(
    view: View,
    steps: StepTable,
    figures: StepFigures,
    syncs: SyncTable,
    times: DeviceTimes,
    windows: Mapping[int, Spans],
    peaks: dict[int, int],
) -> Summary:
    rows = figures.counted
    on_device = rows & figures.has_lag
    count = int(rows.sum())
    lost = _single(dev.missing_launches_pct(view), "launches_lost_pct")
    seen = view.devices if lost is None or lost <= 100.0 * LOST_LAUNCHES_SHARE else ()
    busy = [dev.share_of(windows[d], times.busy[d]) for d in seen]
    kernels = [dev.share_of(windows[d], times.kernel[d]) for d in seen]
    in_counted = (syncs.step_id >= 0) & rows[syncs.step_id] if count else np.zeros(len(syncs), dtype=bool)
    of_devices = [peak for device, peak in peaks.items() if device >= 0]
    inferred = bool(len(steps)) and bool(steps.inferred.any())
    return Summary(
        steps=len(steps),
        inferred=inferred,
        step_ns=mean(figures.dur_ns, rows),
        step_median_ns=sets.median(figures.dur_ns[rows]) if count else None,
        device_step_ns=mean(figures.device_end_ns - figures.device_start_ns, on_device),
        period_ns=mean(figures.period_ns, figures.paced),
        gpu_busy_pct=_mean_of(busy),
        kernel_busy_pct=_mean_of(kernels),
        sync_points_per_step=float(in_counted.sum()) / count if count and view.saw_calls else None,
        sync_wait_ns_per_step=float(syncs.wait_ns[in_counted].sum()) / count if count and view.saw_calls else None,
        kernels_per_step=float(figures.kernels[rows].mean()) if count and view.devices else None,
        peak_memory_bytes=max(of_devices) if of_devices else peaks.get(-1),
        enqueue_bound=runs_ahead(figures),
    )


def _mean_of(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _further(
    view: View,
    steps: StepTable,
    times: DeviceTimes,
    syncs: SyncTable,
    windows: Windows,
    queue_depth: I32,
    gaps: GapTable,
) -> dict[str, F64]:
    """Figures that have no column of their own (docs/figures.md, "Further figures")."""
    if not view.devices:
        return {}
    extra = dev.launch_summary(view, queue_depth)
    alone = {d: subtract(times.communication[d], times.compute[d]) for d in view.devices}
    extra["held_up_lead_ns"] = np.array([per_window(windows, held_up_lead(view, times, gaps)) or 0.0])
    extra |= dev.missing_launches_pct(view)
    extra["exposed_communication_ns"] = np.array([per_window(windows, alone) or 0.0])
    host = {d: subtract(times.host_copy[d], times.kernel[d]) for d in view.devices}
    extra["exposed_host_copy_ns"] = np.array([per_window(windows, host) or 0.0])
    if len(view.devices) > 1 and len(view.trace.sources) < 2:
        together = union_all(times.busy[d] for d in view.devices)
        extra["any_device_busy_ns"] = np.array([per_window(windows, dict.fromkeys(view.devices, together)) or 0.0])
    extra["exposed_copy_ns"] = np.array([per_window(windows, times.busy, without=times.kernel) or 0.0])
    busiest = max(view.devices, key=lambda d: times.kernel[d].total_ns)
    span = _hull(dev.busy_window(view, steps))
    bounds, all_waits = wait_bounds(syncs, times.kernel[busiest], span)
    extra["wait_bound_alone_ns"] = bounds.astype(np.float64)
    extra["wait_bound_together_ns"] = np.array([float(all_waits)])
    extra["wait_bound_window_ns"] = np.array([float(span.total_ns)])
    return extra
