"""The JSON object of ``analyze --json`` (docs/headless.md): every key always present, unknown is null."""

from __future__ import annotations

from typing import Any

import orjson

from core.analysis import Analysis
from core.figures.busy_parts import busy_parts
from core.figures.model import BREAKDOWN_PARTS, Figures, Summary
from core.figures.shares import device_shares, launch_costs, step_threads, steps_covered_ns
from core.kinds import CopyDirection, GapCause, SyncKind
from core.recorded import has_python_stacks, has_shapes
from core.run_folder import finder_for
from core.source import SourceFinder
from core.suggestions import SourceRef, Suggestion
from core.trace import Trace

FORMAT = "steplens.analysis/1"
DIRECTIONS = {CopyDirection.HTOD: "HtoD", CopyDirection.DTOH: "DtoH", CopyDirection.DTOD: "DtoD"}


def us(time_ns: float | None) -> float | None:
    """Nanoseconds to microseconds; None stays unknown."""
    return None if time_ns is None else float(time_ns) / 1000.0


def us_or_null(time_ns: int) -> float | None:
    """Nanoseconds of a column to microseconds; a negative duration means unknown."""
    return None if time_ns < 0 else int(time_ns) / 1000.0


def document(trace: Trace, analysis: Analysis, finder: SourceFinder | None = None) -> dict[str, Any]:
    """Return everything found in a trace as plain values.

    Parameters
    ----------
    trace, analysis
        The trace and what was computed from it.
    finder
        Names the lines behind sync points; a new one is made when absent.
    """
    figures = analysis.figures
    return {
        "format": FORMAT,
        "trace": trace_values(trace),
        "import": {
            "read": trace.report.events_read,
            "kept": trace.report.events_kept,
            "dropped": trace.report.dropped,
            "repaired": trace.report.repaired,
        },
        "steps": step_values(trace, figures),
        "summary": summary_values(figures.summary),
        "sync_points": sync_values(trace, figures, finder or finder_for(trace)),
        "suggestions": [suggestion_values(s) for s in analysis.suggestions],
        "plan": [{"rules": list(p.rules), "predicted_step_us": us(p.predicted_step_ns)} for p in analysis.plan],
        "rules": [
            {"rule": r.rule.id, "outcome": r.outcome.value, "reason": r.reason or None}
            for r in sorted(analysis.rules, key=lambda r: r.rule.id)
        ],
        "further": further_values(trace, figures) | failed_values(analysis),
    }


def failed_values(analysis: Analysis) -> dict[str, Any]:
    """Return which part of the analysis failed, and its error; nothing where none did."""
    return {"failed": {"replay": analysis.notes["replay"]}} if "replay" in analysis.notes else {}


def to_bytes(values: Any) -> bytes:
    """Serialise with two spaces of indentation and a line feed at the end; bytes that are no text are replaced."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
    try:
        return orjson.dumps(values, option=options, default=str)
    except (TypeError, orjson.JSONEncodeError):  # lone surrogates of a damaged trace
        return orjson.dumps(clean(values), option=options, default=str)


def clean(value: Any) -> Any:
    """Return the same values with every text made valid UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {clean(k): clean(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [clean(v) for v in value]
    return value


def trace_values(trace: Trace) -> dict[str, Any]:
    """Return what the trace is and what it holds."""
    start_ns, end_ns = trace.span_ns
    meta = trace.meta
    return {
        "path": str(trace.path),
        "events": trace.report.events_read,
        "span_us": us(end_ns - start_ns),
        "devices": [{"index": d.index, "name": d.name} for d in meta.devices],
        "torch": meta.torch_version,
        "rank": meta.rank,
        "world_size": meta.world_size,
        "has_gpu": trace.has_device_work,
        "has_stacks": has_python_stacks(trace),
        "has_shapes": has_shapes(trace),
        "has_memory": bool(len(trace.memory)),
    }


def step_values(trace: Trace, figures: Figures) -> list[dict[str, Any]]:
    """Return one object per step, in time order."""
    steps, rows = figures.steps, figures.step_figures
    values = []
    for i in range(len(steps)):
        breakdown = rows.breakdown_ns[i]
        values.append(
            {
                "name": trace.strings[int(steps.name_id[i])],
                "inferred": bool(steps.inferred[i]),
                "start_us": us(int(steps.start_ns[i])),
                "dur_us": us(int(steps.end_ns[i] - steps.start_ns[i])),
                "gpu_busy_us": us_or_null(rows.gpu_busy_ns[i]),
                "sync_wait_us": us_or_null(rows.sync_wait_ns[i]),
                "gpu_lag_us": us(int(rows.gpu_lag_ns[i])) if rows.has_lag[i] else None,
                "breakdown_us": {part: us_or_null(breakdown[j]) for j, part in enumerate(BREAKDOWN_PARTS)},
            }
        )
    return values


def summary_values(summary: Summary) -> dict[str, Any]:
    """Return the headline figures."""
    return {
        "verdict": summary.verdict,
        "steps": summary.steps,
        "step_us": us(summary.step_ns),
        "step_us_median": us(summary.step_median_ns),
        "device_step_us": us(summary.device_step_ns),
        "period_us": us(summary.period_ns),
        "sustained_step_us": us(summary.sustained_step_ns),
        "replay_error_pct": summary.replay_error_pct,
        "gpu_busy_pct": summary.gpu_busy_pct,
        "sync_points_per_step": summary.sync_points_per_step,
        "sync_wait_us_per_step": us(summary.sync_wait_ns_per_step),
        "kernels_per_step": summary.kernels_per_step,
        "peak_memory_bytes": summary.peak_memory_bytes,
    }


def further_values(trace: Trace, figures: Figures) -> dict[str, Any]:
    """Return what the summary adds up, per device, stream and thread that runs steps."""
    devices = [
        {
            "device": share.device,
            "busy_pct": share.busy_pct,
            "own_start_us": us(share.own_start_ns),
            "own_span_us": us(share.own_span_ns),
            "own_busy_pct": share.own_busy_pct,
            "streams": [{"stream": s.stream if s.stream >= 0 else None, "busy_pct": s.busy_pct} for s in share.streams],
        }
        for share in device_shares(trace, figures)
    ]
    threads = [
        {"thread": one.thread, "steps": one.steps, "step_us": us(one.step_ns)} for one in step_threads(trace, figures)
    ]
    return {
        "devices": devices,
        "step_threads": threads,
        "steps_covered_us": us(steps_covered_ns(figures)),
        "held_out_error_pct": figures.summary.held_out_error_pct,
        "budget": budget_values(figures),
        "launches": launch_values(figures),
    }


def budget_values(figures: Figures) -> dict[str, Any] | None:
    """Return where one step's time goes, seen from the device; None where that is unknown."""
    budget = figures.budget
    if not budget.period_ns or budget.busy_ns is None:
        return None
    return {
        "basis": budget.basis,
        "steps": budget.steps,
        "time_us": us(budget.period_ns),
        "busy_us": {part: us(time_ns) for part, time_ns in busy_parts(figures).items()},
        "idle_us": {
            GapCause(cause).name.lower(): us(time_ns) for cause, time_ns in sorted(budget.idle_by_cause_ns.items())
        },
    }


def launch_values(figures: Figures) -> dict[str, Any] | None:
    """Return what launching costs; None where no launch is linked to its work."""
    costs = launch_costs(figures)
    if costs is None:
        return None
    return {
        "calls": costs.calls,
        "call_us_median": us(costs.call_ns),
        "delay_us_median": us(costs.delay_ns),
        "queue_depth_max": costs.queue_depth_max,
    }


def sync_values(trace: Trace, figures: Figures, finder: SourceFinder) -> list[dict[str, Any]]:
    """Return one object per sync point, in time order; ``id`` is the slice of the blocking call."""
    syncs, slices = figures.syncs, trace.slices
    values = []
    for i in range(len(syncs)):
        slice_id = int(syncs.slice_id[i])
        op, step, thread, around = (
            int(column[i]) for column in (syncs.op_id, syncs.step_id, syncs.thread_id, syncs.range_id)
        )
        values.append(
            {
                "id": slice_id,
                "call": trace.name(slice_id),
                "kind": SyncKind(int(syncs.kind[i])).name.lower(),
                "start_us": us(int(slices.start_ns[slice_id])),
                "dur_us": us(int(slices.dur_ns[slice_id])),
                "wait_us": us_or_null(int(syncs.wait_ns[i])),
                "step": step if step >= 0 else None,
                "thread": trace.threads.tid[thread] if thread >= 0 else None,
                "op": trace.name(op) if op >= 0 else None,
                "direction": DIRECTIONS.get(CopyDirection(int(syncs.direction[i]))),
                "range": trace.name(around) if around >= 0 else None,
                "source": source_values(finder.of_slice(slice_id)),
            }
        )
    return values


def source_values(source: SourceRef | None) -> dict[str, Any] | None:
    """Return a place in the user's code."""
    if source is None:
        return None
    return {"file": source.file, "line": source.line, "function": source.function}


def suggestion_values(suggestion: Suggestion) -> dict[str, Any]:
    """Return one suggestion."""
    saving = suggestion.saving
    return {
        "rule": suggestion.rule_id,
        "title": suggestion.headline,
        "severity": suggestion.severity,
        "occurrences": suggestion.occurrences,
        "saving_us": us(saving.ns),
        "saving_pct": saving.pct,
        "basis": saving.basis,
        "steps": list(suggestion.steps),
        "source": source_values(suggestion.source),
        "evidence": [
            {"label": e.label, "value": e.value, "unit": e.unit, "slices": list(e.slices)} for e in suggestion.evidence
        ],
        "fix": {
            "summary": suggestion.fix.summary,
            "before": suggestion.fix.before,
            "after": suggestion.fix.after,
            "url": suggestion.fix.url,
        },
    }
