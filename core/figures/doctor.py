"""What to know about a trace before trusting its figures."""

from __future__ import annotations

import re

import numpy as np

from core import sets
from core.call_stacks import has_call_stacks
from core.engine_steps import engine_steps
from core.figures.device import idle_launches
from core.figures.lookup import View
from core.figures.model import Budget, DoctorNote, StepFigures
from core.figures.notes import TEXTS, NoteText
from core.figures.steps import infer_steps
from core.kinds import GapCause, SliceKind
from core.own_run import failed_words, lacking, no_steps_cure, no_steps_reason, own_run
from core.recorded import has_shapes, is_of_first_steps, left_out
from core.tables import FLAG_CROSSING, FLAG_NO_DURATION, FLAG_UNFINISHED, StepTable
from core.trace import CUT_CODES
from core.words import fill

_EXAMPLES = 20  # slices shown with a note: enough to look at, few enough to jump through
_SKEW_NS = 1_000  # device work that starts this much before its launch shows clocks that disagree
_OVERHEAD_SHARE = 0.05
_START_UP_SHARE = 0.2
_HELD_UP_SHARE = 0.1  # of the budget; as for causes, less deserves no words
_GIANT_ITERATIONS = 2  # a step with two iterations inside it is no step
_UNEVEN_STEPS = 4  # of fewer, nothing can be said of how they differ
_UNEVEN_SHARE, _UNEVEN_RANGE = 0.25, 1.5  # middle half against the median, longest against shortest
_LOST_SHARE = 0.2  # of all launches: more than the few at a recording's border
# Recording a Python call costs about a microsecond; so many in a millisecond are a tenth of the time.
_FRAMES_PER_MS = 100.0
_PROFILER_FILE = "torch/profiler/profiler.py("  # looked for first: it takes a tenth of the pattern's time
_NESTED_PROFILER = re.compile(r"torch/profiler/profiler\.py\(\d+\): (?:__enter__|start)$")
# What the reason why a step does not count begins with, and the note that says so.
_STEP_NOTES = {
    "warm-up": "warmup-captured",
    "truncated": "steps-truncated",
    "lost": "steps-truncated/lost",
    "outlier": "outlier-step",
}
_RANK = {"error": 0, "warning": 1, "info": 2}

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
_NAMED = ("copy-left-out", "rank-twice")  # the files are what is to be known
_IMPORT_FLAGS = {
    "crossing": (FLAG_CROSSING, "Time that two of them share is counted once."),
    "no-duration": (FLAG_NO_DURATION, "{count|It is|They are} counted in no sum."),
    "unfinished": (FLAG_UNFINISHED, "{count|It is|They are} counted in no sum."),
    "unnumbered-step": (0, "{count|Its|Their} time is in no step."),
    "second-trace": (0, "They are in no figure."),
    "counter-left-out": (0, "No figure uses {count|it|them}."),
    "file-left-out": (0, "What {count|it holds|they hold} is in no figure."),
    "copy-left-out": (0, "{count|It was|Each was} opened once."),
    "rank-twice": (0, "What is said of communication and of waits between ranks is not to be trusted."),
    "clocks-not-comparable": (0, "Nothing can be said about what one rank waits for in another."),
    "no-events": (0, "There is nothing to judge."),
    "no-usable-events": (0, "There is nothing to judge."),
}


def examine(
    view: View,
    steps: StepTable,
    figures: StepFigures,
    budget: Budget,
    enqueue: bool | None,
    held_lead_ns: float = 0.0,
) -> tuple[DoctorNote, ...]:
    """Return all notes, worst first; ``held_lead_ns``: see `core.figures.gaps.held_up_lead`."""
    notes = [
        *_from_import(view),
        *_steps(view, steps, figures),
        *_start_up(budget),
        *_held_up(budget, held_lead_ns),
        *_device(view),
        *_recorded(view),
        *_profiler(view, steps),
    ]
    if enqueue:
        notes.append(_note("enqueue-time", steps.slice_id[steps.slice_id >= 0]))
    return tuple(sorted(notes, key=lambda note: _RANK.get(note.severity, 3)))


def _note(key: str, slices: object = (), **values: int | float | str) -> DoctorNote:
    return _filled(key.split("/")[0], TEXTS[key], slices, values)


def _filled(code: str, text: NoteText, slices: object, values: dict[str, int | float | str]) -> DoctorNote:
    ids = tuple(int(i) for i in list(slices)[:_EXAMPLES])  # type: ignore[call-overload]
    title, consequence, cure = (fill(template, values) for template in text[1:])
    return DoctorNote(code, text.severity, title, consequence, cure, ids, text[1:], values)


def _from_import(view: View) -> list[DoctorNote]:
    """What the importer lost or repaired, as far as it may matter to a figure."""
    notes = []
    flags = view.trace.slices.flags
    for note in view.trace.report.notes:
        code = _IMPORT_CODES.get(note.code, note.code)
        if note.severity == "info" and code == note.code:
            continue
        flag, consequence = _IMPORT_FLAGS.get(note.code, (0, "The figures use what was repaired."))
        if note.code in CUT_CODES:
            consequence = "Every figure is of what is left: none of them is the run's, and the device's may be unknown."
        if note.dropped:
            consequence = "{count} {count|event is|events are} missing from every figure."
        title = note.title  # a template of the count, as the consequence is
        named = f" ({note.example}.)" if note.code in _NAMED else ""
        cure = (note.advice + named).replace("{", "{{").replace("}", "}}")
        slices = (flags & flag).nonzero()[0] if flag else ()
        text = NoteText(note.severity, title, consequence, cure)
        notes.append(_filled(code, text, slices, {"count": note.count}))
    return notes


def _steps(view: View, steps: StepTable, figures: StepFigures) -> list[DoctorNote]:
    notes = []
    if not len(steps):
        engine = engine_steps(view.trace)
        reason = no_steps_reason(view.trace)
        if len(engine):
            notes.append(_note("no-steps-marked/engine", engine))
        elif reason:
            notes.append(_note("no-steps-marked/own", reason=reason, cure=no_steps_cure(view.trace)))
        else:
            notes.append(_note("no-steps-marked"))
    elif steps.inferred.any() and not len(engine_steps(view.trace)):
        notes.append(_note("no-steps-marked/inferred", count=len(steps)))
    elif len(steps) == 1:
        inside = infer_steps(view)
        # n marks give n - 1 steps, but ranges of the user's own are steps themselves: "about" covers the one.
        if len(inside) >= _GIANT_ITERATIONS:
            notes.append(_note("no-steps-marked/giant", steps.slice_id[steps.slice_id >= 0], count=len(inside)))
    for start, key in _STEP_NOTES.items():
        rows = np.array([i for i, why in enumerate(figures.why_not) if why.startswith(start)], dtype=np.int64)
        if not len(rows):
            continue
        if figures.counted[rows].any():
            key = "steps-truncated/all"
        slices = steps.slice_id[rows]
        notes.append(_note(key, slices[slices >= 0], count=len(rows), steps=len(steps)))
    return [*notes, *_uneven(steps, figures)]


def _uneven(steps: StepTable, figures: StepFigures) -> list[DoctorNote]:
    """Say that the counted steps differ much, by the pace where that is known (the CPU may only run ahead unevenly).

    Where several threads run steps, those of the one with the most: a loop of its own takes its own time.
    """
    paced = figures.paced
    rows, times = (paced, figures.period_ns) if paced.any() else (figures.counted, figures.dur_ns)
    if rows.any():
        threads, counts = np.unique(steps.thread_id[rows], return_counts=True)
        rows = rows & (steps.thread_id == threads[counts.argmax()])
    known = times[rows]
    if len(known) < _UNEVEN_STEPS:
        return []
    low, middle, high = (sets.percentile(known, pct) for pct in (25, 50, 75))
    if not middle or high - low < _UNEVEN_SHARE * middle or known.max() < _UNEVEN_RANGE * known.min():
        return []
    slices = steps.slice_id[rows]
    share = 100.0 * float(high - low) / float(middle)
    return [
        _note("uneven-steps", slices[slices >= 0], low_ms=known.min() / 1e6, high_ms=known.max() / 1e6, share=share)
    ]


def _start_up(budget: Budget) -> list[DoctorNote]:
    loading = budget.idle_by_cause_ns.get(int(GapCause.COMPILE), 0)
    if not budget.period_ns or loading < _START_UP_SHARE * budget.period_ns:
        return []
    return [_note("warmup-captured/start-up", share=100.0 * loading / budget.period_ns)]


def _held_up(budget: Budget, lead_ns: float) -> list[DoctorNote]:
    held = budget.idle_by_cause_ns.get(int(GapCause.QUEUED), 0)
    if not budget.period_ns or held < _HELD_UP_SHARE * budget.period_ns:
        return []
    key = "held-up-work/lead" if lead_ns > held / 2 else "held-up-work"
    return [_note(key, share=100.0 * held / budget.period_ns)]


def _device(view: View) -> list[DoctorNote]:
    trace, links = view.trace, view.trace.links
    launches = view.launches
    if not len(view.work) and trace.report.is_cut_off:
        return []  # the note about the cut says why
    if not len(view.work):
        if len(launches):
            return [_note("gpu-events-missing/launched", launches, count=len(launches))]
        if trace.meta.devices or len(view.host_calls):
            return [_note("gpu-events-missing/none")]
        return []
    notes = []
    every = trace.device_ids  # pieces, also those without a valid duration: the rule counts them so
    orphans = every[links.launch_of[every] < 0]
    captured, lost = idle_launches(view)
    if len(captured):
        notes.append(_note("graph-captured", captured, launches=len(captured), all=len(launches)))
    if len(lost) > _LOST_SHARE * len(launches):
        notes.append(_note("orphan-kernels/many", lost, launches=len(lost), all=len(launches), orphans=len(orphans)))
    elif len(orphans) and not len(view.host_calls):
        notes.append(_note("orphan-kernels/no-launches", orphans, orphans=len(orphans)))
    elif len(orphans) or len(lost):
        examples = np.concatenate((orphans[: _EXAMPLES // 2], lost[: _EXAMPLES // 2]))
        key = (
            "orphan-kernels"
            if len(orphans) and len(lost)
            else f"orphan-kernels/{'work' if len(orphans) else 'launches'}"
        )
        if len(orphans) > _LOST_SHARE * len(every):
            key = "orphan-kernels/most"
        notes.append(_note(key, examples, orphans=len(orphans), launches=len(lost)))
    early = trace.slices.start_ns[links.launched] < trace.slices.start_ns[links.launched_by] - _SKEW_NS
    if early.any():
        notes.append(_note("clock-skew", links.launched[early], count=int(early.sum())))
    return notes


def _recorded(view: View) -> list[DoctorNote]:
    meta = view.trace.meta
    notes = []
    has_python = bool((view.trace.slices.kind == int(SliceKind.PYTHON)).any()) or has_call_stacks(view.trace)
    if meta.with_stack and not has_python:
        notes.append(_note("stacks-missing"))
    if is_of_first_steps(view.trace):
        notes.append(_note("data-not-recorded/early", left_out=", ".join(left_out(view.trace)) or "–"))
    run, lacks = own_run(view.trace), lacking(view.trace)
    how = failed_words(run) if run is not None else ""
    if how:
        notes.append(_note("data-not-recorded/failed", how=how))
    missing = []
    if not has_python and not meta.with_stack:
        missing.append("Python stacks (with_stack=True)")
    if not has_shapes(view.trace) and "shapes" not in lacks:
        missing.append("shapes (record_shapes=True)")
    if not len(view.trace.memory) and "memory" not in lacks:
        missing.append("memory (profile_memory=True)")
    if missing:
        notes.append(_note("data-not-recorded", missing=", ".join(missing)))
    if lacks and not is_of_first_steps(view.trace):
        notes.append(_note("data-not-recorded/lacking", missing=", ".join(lacks)))
    return notes


def _profiler(view: View, steps: StepTable) -> list[DoctorNote]:
    notes = []
    slices = view.trace.slices
    overhead = view.by_kind(SliceKind.OVERHEAD)
    first, last = view.trace.span_ns
    spent = int(slices.dur_ns[overhead].sum())
    if last > first and spent > _OVERHEAD_SHARE * (last - first):
        notes.append(_note("profiler-overhead", overhead, share=100.0 * spent / (last - first)))
    frames = view.by_kind(SliceKind.PYTHON)
    rate = len(frames) / max((last - first) / 1e6, 1e-9)
    if len(frames) and rate > _FRAMES_PER_MS:
        notes.append(_note("profiler-overhead/stacks", count=len(frames), rate=rate))
    if not len(frames) or not len(steps):
        return notes
    values = view.trace.strings.values
    nested = np.zeros(len(values), dtype=bool)
    nested[[i for i, v in enumerate(values) if _PROFILER_FILE in v and _NESTED_PROFILER.search(v)]] = True
    inside = view.named(frames, nested)
    start = slices.start_ns[inside]
    inside = inside[(start > steps.start_ns.min()) & (start < steps.end_ns.max())]
    if len(inside):
        notes.append(_note("two-profilers", inside))
    return notes
