"""What figures on top are shares and means of: the window of each, and how far single steps lie apart."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PySide6.QtCore import QCoreApplication

from core.analysis import Analysis
from core.figures.model import Figures
from core.figures.shares import launch_costs
from core.tables import F64
from core.trace import Trace
from gui import figure_reasons as reasons
from gui import text
from gui.widgets.glossary import Shown


def _tr(words: str) -> str:
    return QCoreApplication.translate("figures", words)


def sync_wait(trace: Trace, analysis: Analysis) -> Shown:
    """Waits per step; where no step is known, those of the whole recording, and so called."""
    figures, name = analysis.figures, _tr("Sync wait")
    if trace.has_device_work and not len(figures.steps) and len(figures.syncs):
        whole = _tr("{time} in all").format(time=text.duration(int(figures.syncs.wait_ns.sum())))
        meaning = _tr(
            "Time of the whole recording in which the CPU is blocked until the device has finished (sync points: "
            "{count}). Per step it is unknown, since no step is marked."
        ).format(count=text.count(len(figures.syncs)))
        return Shown(name, whole, meaning, "")
    summary = figures.summary
    waits = summary.sync_wait_ns_per_step if trace.has_device_work else None
    meaning = _tr(
        "Time per step in which the CPU is blocked until the device has finished (sync points per step: {count})."
    ).format(count=text.count(summary.sync_points_per_step))
    return Shown(name, text.duration(waits), meaning, reasons.sync_wait(trace, analysis))


def launches(figures: Figures) -> list[Shown]:
    """What launching costs; nothing where no call is linked to its work."""
    costs = launch_costs(figures)
    if costs is None:
        return []
    meaning = _tr(
        "How long a call that launches work takes the CPU (median of {calls}). The work starts {delay} after the "
        "call began (median): soon where the device waits for the CPU, late where the CPU runs ahead. At most {depth} "
        "pieces of work were queued at once; the track of the launch queue shows it over time."
    ).format(
        calls=text.count(costs.calls), delay=text.duration(costs.delay_ns), depth=text.count(costs.queue_depth_max)
    )
    return [Shown(_tr("Launch call"), text.duration(costs.call_ns), meaning)]


def of_the_bar(figures: Figures) -> str:
    """What the bar says of the busy share, where the figure of the host steps reads otherwise; else empty."""
    budget, shown = figures.budget, figures.summary.gpu_busy_pct
    if not budget.period_ns or budget.busy_ns is None or shown is None:
        return ""
    share = text.percent(100.0 * budget.busy_ns / budget.period_ns)
    if share == text.percent(shown):
        return ""
    windows = {
        "period": _tr("{share} of the period, which the bar divides; idle shares are of it, too."),
        "step": _tr(
            "{share} of the step up to the end of its device work, which the bar divides; idle shares are of it, too."
        ),
    }
    whole = _tr("{share} of the recording, which the bar divides; idle shares are of it, too.")
    return "\n" + windows.get(budget.basis, whole).format(share=share)


def busy_of_steps(figures: Figures) -> str:
    """The least and the greatest busy share of the steps that the figure is a mean of; empty for fewer than two."""
    steps = figures.step_figures
    known = steps.counted & (steps.gpu_busy_ns >= 0) & (steps.dur_ns > 0)
    shares = 100.0 * steps.gpu_busy_ns[known] / steps.dur_ns[known]
    return _from_to(shares, text.percent)


def host_steps(figures: Figures) -> str:
    """The shortest and the longest of the host steps that the figure is a mean of; empty for fewer than two."""
    steps = figures.step_figures
    return _from_to(steps.dur_ns[steps.counted].astype(np.float64), text.duration)


def _from_to(values: F64, show: Callable[[float], str]) -> str:
    if len(values) < 2:
        return ""
    low, high = show(float(values.min())), show(float(values.max()))
    return "" if low == high else "\n" + _tr("One by one the steps have {low} to {high}.").format(low=low, high=high)
