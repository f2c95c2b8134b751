"""What to know about a trace before trusting its figures."""

from __future__ import annotations

import re

import numpy as np

from core.figures.lookup import View
from core.figures.model import DoctorNote, StepFigures
from core.kinds import SliceKind
from core.tables import FLAG_CROSSING, FLAG_NO_DURATION, FLAG_UNFINISHED, StepTable

_EXAMPLES = 20  # slices shown with a note: enough to look at, few enough to jump through
_SKEW_NS = 1_000  # device work that starts this much before its launch shows clocks that disagree
_OVERHEAD_SHARE = 0.05
_NESTED_PROFILER = re.compile(r"torch/profiler/profiler\.py\(\d+\): (?:__enter__|start)$")

# Repairs of the importer that are one thing to a reader of the figures.
_IMPORT_CODES = {
    "crossing": "crossing-slices",
    "backslashes-repaired": "invalid-json",
    "control-characters-repaired": "invalid-json",
    "invalid-utf8-repaired": "invalid-json",
    "bare-words-repaired": "invalid-json",
    "commas-repaired": "invalid-json",
    "quotes-repaired": "invalid-json",
    "event-unreadable": "invalid-json",
    "brackets-missing": "invalid-json",
    "truncated": "invalid-json",
}
_IMPORT_FLAGS = {
    "crossing": (FLAG_CROSSING, "Time that two of them share is counted once."),
    "no-duration": (FLAG_NO_DURATION, "They are counted in no sum."),
    "unfinished": (FLAG_UNFINISHED, "They are counted in no sum."),
}


def _note(
    code: str, severity: str, title: str, consequence: str, cure: str, slices: object = (), **values: int | float | str
) -> DoctorNote:
    ids = tuple(int(i) for i in list(slices)[:_EXAMPLES])  # type: ignore[call-overload]
    texts = (title, consequence, cure)
    filled = [text.format_map(values) for text in texts]
    return DoctorNote(code, severity, filled[0], filled[1], filled[2], ids, texts, values)


def examine(view: View, steps: StepTable, figures: StepFigures, enqueue: bool | None) -> tuple[DoctorNote, ...]:
    """Return all notes, worst first."""
    notes = [
        *_from_import(view),
        *_steps(steps, figures),
        *_device(view),
        *_recorded(view),
        *_profiler(view, steps),
    ]
    if enqueue:
        notes.append(
            _note(
                "enqueue-time",
                "warning",
                "The step markers measure how long it takes to queue a step, not how long a step takes.",
                "The CPU runs ahead of the device; the marked step time says nothing about throughput.",
                "Judge by the period or the sustained step time, or measure the loop by the wall clock.",
                steps.slice_id[steps.slice_id >= 0],
            )
        )
    rank = {"error": 0, "warning": 1, "info": 2}
    return tuple(sorted(notes, key=lambda note: rank.get(note.severity, 3)))


def _from_import(view: View) -> list[DoctorNote]:
    """What the importer lost or repaired, as far as it may matter to a figure."""
    notes = []
    flags = view.trace.slices.flags
    for note in view.trace.report.notes:
        code = _IMPORT_CODES.get(note.code, note.code)
        if note.severity == "info" and code == note.code:
            continue
        consequence = "The figures use what was repaired."
        if note.dropped:
            consequence = "{count} events are missing from every figure."
        elif note.code in _IMPORT_FLAGS:
            consequence = _IMPORT_FLAGS[note.code][1]
        flag = _IMPORT_FLAGS.get(note.code, (0, ""))[0]
        title = note.title.replace("{count}", str(note.count)).replace("{", "{{").replace("}", "}}")
        cure = note.advice.replace("{", "{{").replace("}", "}}")
        slices = np.flatnonzero(flags & flag) if flag else ()
        notes.append(_note(code, note.severity, title, consequence, cure, slices, count=note.count))
    return notes


def _steps(steps: StepTable, figures: StepFigures) -> list[DoctorNote]:
    notes = []
    if not len(steps) or steps.inferred.any():
        consequence = (
            "{count} iterations were worked out from annotations, loader or optimizer marks; they are called inferred."
            if len(steps)
            else "Step times, and all figures per step, are unknown."
        )
        notes.append(
            _note(
                "no-steps-marked",
                "warning",
                "The trace has no step markers.",
                consequence,
                "Give the profiler a schedule and call prof.step() at the end of every iteration.",
                count=len(steps),
            )
        )
    kinds = (
        ("warm-up", "warmup-captured", "Warm-up is in the recording.", "Give the schedule wait and warmup steps."),
        ("truncated", "steps-truncated", "Steps at the border of the recording are cut off.", "Record more steps."),
        ("outlier", "outlier-step", "A step takes far longer than the others.", "Look at what it does besides."),
    )
    for start, code, title, cure in kinds:
        rows = np.array([i for i, why in enumerate(figures.why_not) if why.startswith(start)], dtype=np.int64)
        if len(rows):
            names = figures.counted[rows]
            consequence = (
                "{count} of {steps} steps are left out of the means."
                if not names.all()
                else "No step is left without a fault, so that the means are taken over all."
            )
            slices = steps.slice_id[rows]
            notes.append(
                _note(code, "info", title, consequence, cure, slices[slices >= 0], count=len(rows), steps=len(steps))
            )
    return notes


def _device(view: View) -> list[DoctorNote]:
    trace = view.trace
    launches = view.named(view.host_calls, view.names.launch)
    if not len(view.work):
        if len(launches):
            return [
                _note(
                    "gpu-events-missing",
                    "error",
                    "{count} kernels were launched, but no device work was recorded.",
                    "How busy the device was is unknown; it is not 0 %.",
                    "Record ProfilerActivity.CUDA; allow the counters to users (NVreg_RestrictProfilingToAdminUsers=0, "
                    "or run as administrator); let no second profiler run; on WSL update the driver.",
                    launches,
                    count=len(launches),
                )
            ]
        if trace.meta.devices or len(view.host_calls):
            return [
                _note(
                    "gpu-events-missing",
                    "warning",
                    "The trace knows of a GPU but holds no device work.",
                    "How busy the device was is unknown; it is not 0 %.",
                    "Record ProfilerActivity.CUDA, and see whether the model and its inputs are on the device.",
                )
            ]
        return []
    notes = []
    orphans = view.work[trace.links.launch_of[view.work] < 0]
    idle_launches = launches[~np.isin(launches, trace.links.launched_by)]
    if len(orphans) or len(idle_launches):
        notes.append(
            _note(
                "orphan-kernels",
                "info",
                "{orphans} pieces of device work have no launch in the trace, {launches} launches no device work.",
                "They are counted as work, but in no step and under no operator.",
                "Usually they lie at the border of the recording; record more steps, or larger profiler buffers.",
                np.concatenate((orphans[:10], idle_launches[:10])),
                orphans=len(orphans),
                launches=len(idle_launches),
            )
        )
    links = trace.links
    early = trace.slices.start_ns[links.launched] < trace.slices.start_ns[links.launched_by] - _SKEW_NS
    if early.any():
        notes.append(
            _note(
                "clock-skew",
                "warning",
                "{count} pieces of device work start before they are launched.",
                "The clocks of host and device disagree; launch delays and waits are off by as much.",
                "Update the driver and PyTorch; record again.",
                links.launched[early],
                count=int(early.sum()),
            )
        )
    return notes


def _recorded(view: View) -> list[DoctorNote]:
    meta = view.trace.meta
    notes = []
    has_python = bool((view.trace.slices.kind == SliceKind.PYTHON).any())
    if meta.with_stack and not has_python:
        notes.append(
            _note(
                "stacks-missing",
                "warning",
                "Python stacks were asked for, but the trace holds none.",
                "No finding can name the line of code behind it.",
                "Some versions lose them (Python 3.11 and 3.12, torch before 2.3): update PyTorch, record again.",
            )
        )
    missing = []
    if not has_python and not meta.with_stack:
        missing.append("Python stacks (with_stack=True)")
    if meta.record_shapes is False:
        missing.append("shapes (record_shapes=True)")
    if not len(view.trace.memory):
        missing.append("memory (profile_memory=True)")
    if missing:
        notes.append(
            _note(
                "data-not-recorded",
                "info",
                "Not recorded: {missing}.",
                "Rules that need it are not checked; what was not recorded is unknown, not 0.",
                "Record again with what you need.",
                missing=", ".join(missing),
            )
        )
    return notes


def _profiler(view: View, steps: StepTable) -> list[DoctorNote]:
    notes = []
    overhead = view.by_kind(SliceKind.OVERHEAD)
    first, last = view.trace.span_ns
    spent = int(view.trace.slices.dur_ns[overhead].sum())
    if last > first and spent > _OVERHEAD_SHARE * (last - first):
        notes.append(
            _note(
                "profiler-overhead",
                "warning",
                "The profiler's own work takes {share:.0f} % of the recording.",
                "Host times are longer than they are without it.",
                "Record without stacks, shapes and memory, and compare.",
                overhead,
                share=100.0 * spent / (last - first),
            )
        )
    frames = view.by_kind(SliceKind.PYTHON)
    values = view.trace.strings.values
    nested = np.fromiter((bool(_NESTED_PROFILER.search(v)) for v in values), dtype=bool, count=len(values))
    inside = view.named(frames, nested)
    start = view.trace.slices.start_ns[inside]
    if len(inside) and len(steps):
        inside = inside[(start > steps.start_ns.min()) & (start < steps.end_ns.max())]
        if len(inside):
            notes.append(
                _note(
                    "two-profilers",
                    "warning",
                    "The script starts a profiler of its own inside the recording.",
                    "The inner one takes over the session: device work after it may be missing.",
                    "Switch the script's own profiler off while recording.",
                    inside,
                )
            )
    return notes
