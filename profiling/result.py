"""What came of a run."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from profiling import manifest
from profiling.events import Gathered
from profiling.notices import UNRECORDED, cost_of_marks, leading_summary, notices_of, step_times
from profiling.nvml import NAME as GPU_METRICS
from profiling.outcome import Failure, exit_in_words, hint_for, read_crash, read_traceback
from profiling.sentences import Sentence, joined, say
from profiling.spec import STEP_SOURCES, RunSpec

FEWEST_EVENTS_OF_A_FAILURE = 1000
PROBE_BYTES = 1 << 16  # any trace is that large, nearly
FAULTS = UNRECORDED | {"watching"}
CRASH_REPORT = "crash.txt"
LARGEST_BEGINNING_BYTES = 1 << 24  # of the output, in which the profiler's first words are looked for
SMALLEST_TRACE_BYTES = 4096  # a file that broke off before this holds a header and no events


@dataclass(frozen=True)
class RunResult:
    """A run that has ended.

    Parameters
    ----------
    outcome
        ``ok`` (exit status 0), ``failed`` (any other status or a signal), ``stopped`` (on the user's wish) or
        ``killed`` (on the user's wish, after it did not follow).
    words
        The outcome in one or two sentences.
    script_exit
        Exit status of the script; negative for a signal.
    folder
        The run folder.
    traces
        What was recorded, the best first: our windows, then those of the script's own profiler; may be empty.
    tail
        The end of the script's output.
    notices
        What the user should know beside the outcome: which steps, what was not recorded and why.
    failure
        The error that ended the script, None where it printed none.
    manifest
        The content of ``run.json``.
    """

    outcome: str
    words: Sentence
    script_exit: int
    folder: Path
    traces: tuple[Path, ...]
    tail: str
    notices: tuple[Sentence, ...]
    failure: Failure | None
    manifest: dict[str, Any]

    @property
    def trace(self) -> Path | None:
        """The trace to open, None where nothing was recorded."""
        return self.traces[0] if self.traces else None

    @property
    def fault(self) -> Sentence | None:
        """What kept the recording from being made or judged; None where nothing did."""
        return next((notice for notice in self.notices if notice.key in FAULTS), None)

    @property
    def missed_its_window(self) -> bool:
        """Whether the script ended before all was recorded, and a run with nothing to skip would record more."""
        schedule = self.manifest.get("spec", {}).get("schedule", {})
        steps, rows = self.manifest.get("steps", {}), self.manifest.get("traces") or [{}]
        recorded, light = len(steps.get("recorded") or ()), bool(rows[0].get("left_out"))
        passed_over = schedule.get("skip", 0) + schedule.get("warmup", 0) > 0 and rows[0].get("kind", "own") == "own"
        passed_over = passed_over and self.fault is None
        return passed_over and (light or recorded < min(schedule.get("active", 0), steps.get("count", 0)))

    @property
    def exit_status(self) -> int:
        """Status for a headless command: 0, 3 (no trace could be made), 4 (the script failed) or 130 (stopped)."""
        if self.outcome == "ok" and not self.traces and self.fault is not None:
            return 3
        return {"ok": 0, "failed": 4}.get(self.outcome, 130)


def build_result(
    spec: RunSpec,
    folder: Path,
    gathered: Gathered,
    *,
    exit_status: int,
    tail: str,
    errors: str,
    stopped: bool,
    killed: bool,
    seconds: float,
    gpus: list[dict[str, Any]] | None = None,
) -> RunResult:
    """Judge a run that has ended, complete its manifest and clear the folder of what only the run needed."""
    traces = _usable_traces(folder, gathered, exit_status)
    if not traces and not UNRECORDED & gathered.notices.keys():
        _look_whether_it_could_be_written(folder, gathered)
    failure = None
    if exit_status != 0 and not stopped:
        raised = exit_status > 0 or exit_status == -signal.SIGINT  # a KeyboardInterrupt ends Python by that signal
        failure = read_traceback(errors) if raised else read_crash(_crash_report(folder))
        if failure is not None and failure.title:
            failure = replace(failure, hint=hint_for(failure.title, tail) or "")
    outcome = "killed" if killed else "stopped" if stopped else "ok" if exit_status == 0 else "failed"
    words = _words(outcome, exit_status, failure, bool(traces))
    if "gpu-unrecorded" in gathered.notices:
        tail = _said_of_cupti(folder) + tail
    notices = notices_of(gathered, traces, exit_status, tail, spec.gpu)
    plain = manifest.read(folder) or {"format": manifest.FORMAT}
    plain.update(
        state=outcome,
        words=words,
        exit_status=exit_status,
        ended=time.time(),
        seconds=round(seconds, 3),
        torch=gathered.torch_version or None,
        python=gathered.python_version or None,
        steps=_steps(gathered, traces),
        traces=[_trace_row(folder, event) for event in traces],
        sources=manifest.copy_sources(sorted(gathered.sources) or [os.path.abspath(spec.script)], folder),
        notices=notices,
        notice_records=[notice.record() for notice in notices],
        failure=_failure_row(failure),
        line_ranges=_line_ranges(gathered),
        gpus=gpus or None,
        gpu_metrics=GPU_METRICS if gpus else None,
        output="output.log",
    )
    try:
        _write(folder, plain)
    except OSError as error:
        notices.append(say("not-written", error=error.strerror or error))
    empty = () if _crash_report(folder) else (CRASH_REPORT,)
    for name in ("child.json", "children.json", "events.jsonl", "stop", *empty):
        with contextlib.suppress(OSError):
            (folder / name).unlink()
    paths = tuple(Path(event["path"]) for event in traces)
    return RunResult(outcome, words, exit_status, folder, paths, tail, tuple(notices), failure, plain)


def _write(folder: Path, plain: dict[str, Any]) -> None:
    try:
        manifest.write(folder, plain)
    except OSError:  # the disk is full, say: what came of the run matters more than copies of its sources
        shutil.rmtree(folder / "sources", ignore_errors=True)
        plain["sources"] = []
        manifest.write(folder, plain)


def with_fault(
    result: RunResult | None, fault: str, status: int | None, folder: Path, tail: str, stopped: bool
) -> RunResult:
    """A result that tells a fault of ours; where there is no result for that fault, what is known without one."""
    told = say("watching", error=fault)
    if result is not None:
        return replace(result, notices=(*result.notices, told))
    outcome = "stopped" if stopped else "ok" if status == 0 else "failed"
    known = {"format": manifest.FORMAT, "state": outcome, "exit_status": status, "notices": [told]}
    words = joined(exit_in_words(status or 0), told)
    return RunResult(outcome, words, status or 0, folder, (), tail, (told,), None, known)


def _look_whether_it_could_be_written(folder: Path, gathered: Gathered) -> None:
    """Tell why there is no trace, where the script could not: its folder takes no files."""
    probe = folder / "probe.partial"
    try:
        try:
            with probe.open("wb") as out:
                out.write(bytes(PROBE_BYTES))
        finally:
            with contextlib.suppress(OSError):
                probe.unlink()
    except OSError as error:
        full = error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
        key = "unsaved-full" if full else "unsaved-large" if error.errno == errno.EFBIG else "unsaved"
        gathered.notices[key] = say(key, error=error.strerror or error)


def _crash_report(folder: Path) -> str:
    """What the fault handler of the script's Python wrote, mostly nothing."""
    path = folder / CRASH_REPORT
    with contextlib.suppress(OSError):
        if path.stat().st_size:
            return path.read_text("utf-8", "replace")
    return ""


def _said_of_cupti(folder: Path) -> str:
    """Lines of the output in which the profiler says why it could not reach the GPU: they come before the steps."""
    with contextlib.suppress(OSError), (folder / "output.log").open("rb") as log:
        lines = log.read(LARGEST_BEGINNING_BYTES).splitlines()
        return "".join(line.decode("utf-8", "replace") + "\n" for line in lines if b"CUPTI" in line)
    return ""


def _usable_traces(folder: Path, gathered: Gathered, exit_status: int) -> list[dict[str, Any]]:
    """Traces that are whole on disk, ours first; half-written ones are taken away."""
    for partial in (*folder.glob("*.partial"), *folder.glob("*trace*.json.tmp"), *folder.glob("process-*")):
        with contextlib.suppress(OSError):
            partial.unlink()
    moved = [{**event, "path": str(folder / os.path.basename(event["path"]))} for event in gathered.traces]
    found = [event for event in moved if os.path.isfile(event["path"])]
    told = {os.path.abspath(event["path"]) for event in found}
    for path in sorted(folder.glob("*trace*.json")):
        beside = path.name.startswith("script-") or path.name.endswith(".lines.json")
        if beside or str(path.absolute()) in told:
            continue
        if path.is_file() and path.stat().st_size > SMALLEST_TRACE_BYTES:
            found.append({"path": str(path), "kind": "own", "cut": True})
        else:
            with contextlib.suppress(OSError):
                path.unlink()
    own = [e for e in found if e.get("kind") == "own"]
    if exit_status != 0:  # of a script that failed before it trained, the start-up says nothing
        own = [e for e in own if e.get("phase") != "whole" or (e.get("events") or 0) >= FEWEST_EVENTS_OF_A_FAILURE]
    if any(e.get("steps") for e in own):  # beside a trace with steps, the idle parent of the ranks says nothing
        own = [e for e in own if e.get("phase") != "whole" or e.get("steps")]
    own.sort(key=_place_in_row)
    for event in found:
        if event.get("kind") == "own" and event not in own:
            with contextlib.suppress(OSError):
                os.unlink(event["path"])
    return own + [e for e in found if e.get("kind") != "own"]


def _place_in_row(event: dict[str, Any]) -> tuple[bool, int, bool]:
    """Sorts traces: the script's own process, then what it forked, in the order in which they came; then the ranks."""
    rank = event.get("rank")
    return rank is not None, rank or 0, os.path.basename(event["path"]).startswith("trace-pid")


def _words(outcome: str, status: int, failure: Failure | None, recorded: bool) -> Sentence:
    if outcome == "killed":
        parts: list[str] = [say("not-followed")]
    elif outcome == "stopped":
        parts = [say("stopped")]
    else:
        parts = [exit_in_words(status)]
    if failure is not None and failure.title and outcome == "failed":
        parts.append(failure.title + ("" if failure.title.endswith((".", "!", "?")) else "."))
    if outcome != "ok":
        parts.append(say("kept") if recorded else say("no-trace"))
    return joined(*parts) if len(parts) > 1 else say("ended-normally")


def source_in_words(source: str) -> Sentence:
    """Where steps come from; ``source`` is what the manifest says under ``steps.source``."""
    return say(f"source-{source}" if source in ("script", "backward", *STEP_SOURCES[1:]) else "source-none")


def _steps(gathered: Gathered, traces: list[dict[str, Any]]) -> dict[str, Any]:
    """Steps of the run: where they come from, how many, how long with and without the profiler (microseconds)."""
    summary = leading_summary(gathered)
    times = summary.get("times", [])
    measured = step_times(gathered)
    wall_us, profiled_us, steps = measured.wall_us, measured.profiled_us, measured.timed
    recorded = traces[0].get("steps", []) if traces else []
    source = summary.get("source") or (traces[0].get("source") or "" if traces else "")
    seen = 0 if traces else gathered.progress.step  # of a script that was killed
    return {
        "source": source,
        "source_words": source_in_words(source),
        "marked_by_script": not summary.get("marked", True),
        "count": summary.get("steps", seen),
        "recorded": recorded,
        "wall_step_us": wall_us,
        "wall_steps_timed": steps,
        "wall_waited_pct": measured.waited_pct,
        "wall_crowded_pct": measured.crowded_pct,
        "wall_error_pct": measured.error_pct,
        "wall_loop_us": measured.loop_us,
        "profiled_step_us": profiled_us,
        "profiler_cost_ratio": profiled_us / wall_us if profiled_us and wall_us else None,
        "timings": [{"step": row[0], "phase": row[1], "us": round(row[2], 1)} for row in times],
    }


def _line_ranges(gathered: Gathered) -> dict[str, Any] | None:
    """What was marked, and how much longer the marks made a recorded step; None where nothing was marked."""
    if not gathered.ranges:
        return None
    row = {k: v for k, v in gathered.ranges.items() if k not in ("ev", "t", "pid")}
    row["cost_ratio"] = cost_of_marks(gathered)
    return row


def _trace_row(folder: Path, event: dict[str, Any]) -> dict[str, Any]:
    keep = ("kind", "steps", "source", "devices", "unfinished", "phase", "rank", "written_as", "cut", "left_out")
    row = {key: event[key] for key in keep if key in event}
    row["path"] = os.path.relpath(event["path"], folder)
    row["bytes"] = os.path.getsize(event["path"])
    lines = folder / ("lines.json" if row["path"] == "trace.json" else row["path"][:-5] + ".lines.json")
    row["lines"] = lines.name if lines.is_file() else None
    return row


def _failure_row(failure: Failure | None) -> dict[str, Any] | None:
    if failure is None:
        return None
    frames = [vars(frame) for frame in failure.frames]
    return {"title": failure.title, "hint": failure.hint, "frames": frames}
