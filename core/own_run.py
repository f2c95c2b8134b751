"""What the app's own run says of a trace: how its script ended, and why something is not in it.

Advice on how to record is of no use for a recording that the app made itself.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from core.run_folder import RunRecord, run_of
from core.trace import Trace

_known: WeakKeyDictionary[Trace, RunRecord | None] = WeakKeyDictionary()


def own_run(trace: Trace) -> RunRecord | None:
    """The run whose recording a trace is; None for one from elsewhere, and for one that the script's profiler made."""
    if trace not in _known:
        path = trace.path if trace.sources else None
        run = run_of(path) if path is not None else None
        _known[trace] = run if run is not None and path is not None and path.name in run.recorded else None
    return _known[trace]


def no_steps_reason(trace: Trace) -> str:
    """Why the app's own recording has no steps, "" for one from elsewhere."""
    run = own_run(trace)
    if run is None:
        return ""
    if run.state == "failed":
        return "The script ended with an error before a step was over."
    if run.state in ("stopped", "killed"):
        return "The script was stopped before a step was over."
    return "The run found nothing that marks the end of a step."


def no_steps_cure(trace: Trace) -> str:
    """What to do about that."""
    run = own_run(trace)
    if run is None:
        return ""
    if run.state == "failed":
        return "Cure the error, then run it again."
    if run.state in ("stopped", "killed"):
        return "Run it again, and let it record the chosen steps."
    return "Run it again and choose what ends a step: the optimizer, the loader or a module."


def lacking(trace: Trace) -> tuple[str, ...]:
    """Options that were chosen and are not in the recording, since the script ended first, such as ``shapes``."""
    run = own_run(trace)
    return run.recorded[trace.path.name] if run is not None else ()


def failed_words(run: RunRecord) -> str:
    """How a script failed, in a sentence; "" where it did not."""
    if run.state != "failed":
        return ""
    what = run.failure.kind or "an error"
    where = f" in {run.failure.place}" if run.failure.place else ""
    steps = run.failure.steps
    after = "" if steps is None else f" after {steps} step" + ("" if steps == 1 else "s")
    return f"The script ended with {what}{where}{after}."
