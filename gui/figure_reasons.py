"""Why a figure on top is unknown in a trace, and what would make it known; each answer follows from the trace."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QCoreApplication

from core.analysis import Analysis
from core.figures.verdict import is_start_up
from core.kinds import HOST_CALLS
from core.own_run import no_steps_cure, no_steps_reason
from core.run_folder import RunRecord
from core.trace import Trace
from core.words import fill

TIMED_STEPS, PREPARED_STEPS = 3, 1  # as `profiling._child_clock` and its recorder: at least so many before a window


def _tr(words: str) -> str:
    return QCoreApplication.translate("reasons", words)


def no_steps(trace: Trace, analysis: Analysis) -> str:
    """Why there is no figure per step; empty where there is a step that counts."""
    figures = analysis.figures
    if not len(figures.steps) and (own := no_steps_reason(trace)):
        return f"{_tr(own)} {_tr(no_steps_cure(trace))}"
    if not len(figures.steps):
        return _tr("Needs marked steps: call prof.step() after each iteration, or let StepLens profile the script.")
    if not figures.step_figures.counted.any():
        return _tr("Every step was left out of the means (warm-up, cut off, or an outlier): record a few steps more.")
    return ""


def host_step(trace: Trace, analysis: Analysis) -> str:
    """Why the time of a step on the CPU is unknown."""
    return no_steps(trace, analysis)


def sustained(trace: Trace, analysis: Analysis) -> str:
    """Why the replay gives no step time."""
    if trace.report.is_cut_off:
        return _tr("The file ends early: what a step takes cannot be told from a part of it. Record it again.")
    why = no_steps(trace, analysis)
    if why:
        return why
    if not trace.has_device_work and _calls(trace):
        return no_device(trace)
    if is_start_up(analysis.figures.budget):
        return _tr(
            "The only step that counts mostly starts up: code is compiled or loaded in it. Record a few steps more, "
            "after some warm-up."
        )
    if "replay" in analysis.notes:
        return _tr("The replay of this trace failed ({error}).").format(error=analysis.notes["replay"])
    return _tr("The recorded steps cannot be replayed: too little of what happened in them was recorded.")


def wall(run: RunRecord | None) -> str:
    """Why the time without the profiler is unknown."""
    if run is None:
        return _tr("Needs a run started from StepLens: it times some steps without the profiler.")
    why = untimed(run)
    return _tr("Not timed: {why}").format(why=why) if why else _tr("This run timed no steps without the profiler.")


def untimed(run: RunRecord) -> str:
    """Why a run timed no steps without the profiler, and what to do about it; empty where that is not known."""
    schedule = run.spec.get("schedule")
    if run.spec.get("measure_wall") is False:
        return _tr("it was not to be timed. Profile the script anew, with that option.")
    if not isinstance(schedule, dict) or run.steps_made is None:
        return ""
    asked = {name: value for name, value in schedule.items() if type(value) is int and value >= 0}
    active = asked.get("active", 1)
    needed = asked.get("skip", 0) + asked.get("warmup", 0) + TIMED_STEPS + PREPARED_STEPS + active
    if run.steps_made >= needed:
        return ""
    words = _tr(
        "the script made {made} {made|step|steps}, and it takes {needed} to time some and record {active} after that. "
        "Let it make more steps, or profile it anew with fewer to skip and to record."
    )
    return fill(words, {"made": run.steps_made, "needed": needed, "active": active})


def no_device(trace: Trace) -> str:
    """Why nothing is known of the device; empty where its work was recorded."""
    if trace.has_device_work:
        return ""
    if trace.meta.devices and _calls(trace):
        return _tr(
            "The CPU launched work, but none of it is in the trace: record with ProfilerActivity.CUDA (or your "
            "accelerator's), and let no other profiler hold the device."
        )
    return _tr("Needs device work in the trace: record with ProfilerActivity.CUDA (or your accelerator's).")


def device_step(trace: Trace, analysis: Analysis) -> str:
    """Why the time from a step's first to its last device work is unknown."""
    why = no_device(trace) or no_steps(trace, analysis)
    if why:
        return why
    return _tr(
        "The device work cannot be told apart by steps: the calls that launched it are not in the trace. Record with "
        "ProfilerActivity.CPU as well."
    )


def period(trace: Trace, analysis: Analysis) -> str:
    """Why the distance between steps on the device is unknown."""
    figures = analysis.figures
    why = no_device(trace) or no_steps(trace, analysis)
    if why:
        return why
    if not figures.step_figures.has_lag.any():
        return device_step(trace, analysis)
    per_thread = np.unique(figures.steps.thread_id, return_counts=True)[1]
    if per_thread.max() < 2:
        if len(per_thread) > 1:
            return _tr("A period runs from one step to the next, and each rank has one step only: record two or more.")
        return _tr("A period runs from one step to the next, and only one step was recorded: record two or more.")
    return _tr("No two steps that count follow each other with the same device work: record a few steps more.")


def busy(trace: Trace, analysis: Analysis) -> str:
    """Why the share of time in which the device works is unknown."""
    return no_device(trace) or _tr("The recorded device work has no length of time that it could be a share of.")


def sync_wait(trace: Trace, analysis: Analysis) -> str:
    """Why it is unknown how long the CPU waits for the device."""
    why = no_device(trace)
    if why:
        return why
    if not _calls(trace):
        return _tr("Needs the calls of the CUDA runtime, which are not in the trace: record with ProfilerActivity.CPU.")
    return no_steps(trace, analysis)


def _calls(trace: Trace) -> bool:
    return bool(np.isin(trace.slices.kind, [int(kind) for kind in HOST_CALLS]).any())
