"""A run's folder as data: what was run, how long its steps took, which sources it used, which losses it saw."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from core.source import SourceFinder
from core.source_lines import read_line_record
from core.trace import Trace
from core.words import visible

MANIFEST, SOURCES, LOSSES = "run.json", "sources", "losses.json"
LARGEST_BYTES = 50_000_000
_OWN = Path(__file__).resolve().parents[1]
SAMPLES, EXAMPLE = _OWN / "resources" / "samples", _OWN / "examples" / "reference_story"


@dataclass(frozen=True)
class ParametersAt:
    """Sums of the parameters after a step; ``sums`` None where there are none, and ``reason`` says why."""

    step: int
    sums: tuple[tuple[float, float] | None, ...] | None
    reason: str = ""  # "recorded": the step was one of those in the trace


@dataclass(frozen=True)
class Timing:
    """How far the time of a step without the profiler can be trusted; None is unknown."""

    waited_pct: float | None = None  # of the timing, while other programs had the cores; the sum over threads
    error_pct: float | None = None  # standard error of the step
    loop_ns: float | None = None  # what a fixed piece of work took then: how fast the processor was
    crowded_pct: float | None = None  # as ``waited_pct``, while the script's own threads and workers had the cores


@dataclass(frozen=True)
class Failure:
    """The error that ended a script; empty where it ended in order."""

    title: str = ""  # as the script printed it
    hint: str = ""
    frames: tuple[tuple[str, int, str, bool], ...] = ()  # file, line, function, whether the user's; outermost first
    steps: int | None = None  # that were over; None is unknown

    @property
    def kind(self) -> str:
        """Type of the error, such as ``AttributeError``, "" where none is known."""
        return found[1] if (found := re.match(r"([A-Za-z_][\w.]{0,80})(?=:|$)", self.title)) else ""

    @property
    def place(self) -> str:
        """Where in the user's own code it arose, such as ``train.py:31``; "" where that is unknown."""
        own = next(((file, line) for file, line, _, users in reversed(self.frames) if users), None)
        name = own[0].replace("\\", "/").rsplit("/", 1)[-1][:80] if own else ""
        return f"{name}:{own[1]}" if own else ""


@dataclass(frozen=True)
class RunRecord:
    """What ``run.json`` says; None where it says nothing."""

    folder: Path
    name: str
    state: str  # ok | failed | stopped | killed | running
    created_s: float | None
    wall_step_ns: float | None  # measured without the profiler
    profiled_step_ns: float | None
    spec: Mapping[str, Any] = field(default_factory=dict)  # what to run it again with
    sources: Mapping[str, Path] = field(default_factory=dict)  # path when it ran -> copy in the folder
    traces: tuple[Path, ...] = ()
    losses: tuple[float | None, ...] | None = None  # of each backward pass; None: not recorded
    parameters: tuple[tuple[float, float] | None, ...] | None = None  # (sum, length) of each, at the script's end
    loss_steps: tuple[int, ...] | None = None  # number of the step that each loss is of; None in older runs
    losses_recorded: bool = False  # those of the recorded steps are among them
    parameters_at: ParametersAt | None = None  # after a chosen step
    timing: Timing = Timing()  # of ``wall_step_ns``
    failure: Failure = Failure()
    # Names of the files that the app recorded itself -> options that were chosen and are not in them.
    recorded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cores: int | None = None  # of the machine
    steps_made: int | None = None  # by the script, in all
    steps_from: str = ""  # what ended a step, in words; "" where none was found or the run does not say
    first_step_ns: float | None = None  # with all that it waits for: compilers, loaders that start, memory

    @property
    def trace(self) -> Path | None:
        """The trace to open."""
        return self.traces[0] if self.traces else None

    def copy_of(self, file: str) -> Path | None:
        """The run's own copy of a source that a trace names (in full, or by the end of its path)."""
        if file in self.sources:
            return self.sources[file]
        wanted = file.replace("\\", "/")
        found = [c for original, c in self.sources.items() if original.replace("\\", "/").endswith(f"/{wanted}")]
        return found[0] if len(found) == 1 else None

    def original_of(self, file: str) -> Path | None:
        """The user's own file behind a source that a trace names."""
        copy = self.copy_of(file)
        return next((Path(original) for original, c in self.sources.items() if c == copy), None) if copy else None


def read_run(folder: Path) -> RunRecord | None:
    """Read a run's folder; None where it is none. Paths in it are used only where they lie inside the folder."""
    values = _read(folder / MANIFEST)
    if not isinstance(values, dict) or not str(values.get("format", "")).startswith("steplens.run/"):
        return None
    steps = _dict(values.get("steps"))
    sources = {
        str(row["path"]): copy
        for row in _list(values.get("sources"))
        if isinstance(row, dict) and "path" in row and (copy := _inside(folder, row.get("copy"))) is not None
    }
    traces = [_inside(folder, row.get("path")) for row in _list(values.get("traces")) if isinstance(row, dict)]
    kept = _read(folder / LOSSES)
    kept = kept if isinstance(kept, dict) else {}
    return RunRecord(
        folder,
        visible(str(values.get("name") or folder.name)),
        str(values.get("state") or ""),
        _number(values.get("created")),
        _nanoseconds(steps.get("wall_step_us")),
        _nanoseconds(steps.get("profiled_step_us")),
        _dict(values.get("spec")),
        sources,
        tuple(t for t in traces if t is not None),
        _losses(kept),
        _sums(kept.get("parameters")),
        _loss_steps(kept),
        kept.get("recorded") is True,
        _parameters_at(kept.get("parameters_after")),
        Timing(
            _number(steps.get("wall_waited_pct")),
            _number(steps.get("wall_error_pct")),
            _nanoseconds(steps.get("wall_loop_us")),
            _number(steps.get("wall_crowded_pct")),
        ),
        _failure(values, steps),
        {
            Path(str(row.get("path"))).name: tuple(str(name) for name in _list(row.get("left_out")))
            for row in _list(values.get("traces"))
            if isinstance(row, dict) and row.get("kind", "own") == "own"
        },
        cores if type(cores := _dict(values.get("environment")).get("cpu_count")) is int and cores > 0 else None,
        made if type(made := steps.get("count")) is int and made > 0 else None,
        visible(str(steps.get("source_words") or "")) if steps.get("source") else "",
        _first_step(steps),
    )


def run_of(trace_path: Path) -> RunRecord | None:
    """The run that a trace file belongs to, None for a trace from elsewhere."""
    return read_run(trace_path.parent)


def name_of(trace: Trace, run: RunRecord | None = None) -> str:
    """What to call a trace: a run's by its script and the time of day, several files by their folder, else the file.

    Files of runs all have the same name, so it would tell nothing. Where it has several ranks, these stand in front.
    """
    run = run or run_of(trace.path)
    ranks = _ranks_in_words(trace)
    if run is not None:
        began = time.strftime(", %H:%M", time.localtime(run.created_s)) if run.created_s is not None else ""
        part = f" · {trace.path.name}" if len(run.traces) > 1 and len(trace.sources) == 1 else ""
        return ranks + run.name + began + part
    several = len(trace.sources) > 1 and len({s.path.parent for s in trace.sources}) == 1
    return ranks + (trace.path.parent.name if several else trace.path.name)


def _ranks_in_words(trace: Trace) -> str:
    """The ranks of a trace of several files, such as "ranks 0-3, 6 · "; nothing where fewer than two are known."""
    ranks = sorted({int(rank) for rank in trace.processes.rank if rank >= 0}) if len(trace.sources) > 1 else []
    if len(ranks) < 2:
        return ""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    told = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs[:4])
    return f"ranks {told}{' …' if len(runs) > 4 else ''} · "


def read_losses(path: Path) -> tuple[float | None, ...] | None:
    """Values of the tensors that ``backward()`` was called on, in order; None where they were not recorded."""
    values = _read(path)
    return _losses(values) if isinstance(values, dict) else None


def _failure(values: Mapping[str, Any], steps: Mapping[str, Any]) -> Failure:
    row, count = _dict(values.get("failure")), steps.get("count")
    frames = [
        (visible(str(f.get("file"))), f["line"], visible(str(f.get("function"))), f.get("users") is True)
        for f in _list(row.get("frames"))
        if isinstance(f, dict) and type(f.get("line")) is int
    ]
    known = type(count) is int and bool(frames)  # a script that crashed without a traceback could not count
    return Failure(
        visible(str(row.get("title") or "")),
        visible(str(row.get("hint") or "")),
        tuple(frames),
        count if known else None,
    )


def _first_step(steps: Mapping[str, Any]) -> float | None:
    """The time of step 0; None where it is not among the timings."""
    rows = [row for row in _list(steps.get("timings")) if isinstance(row, dict) and row.get("step") == 0]
    return _nanoseconds(rows[0].get("us")) if rows else None


def _losses(values: Mapping[str, Any]) -> tuple[float | None, ...] | None:
    if not str(values.get("format", "")).startswith("steplens.losses/"):
        return None
    return tuple(_number(v) for v in _list(values.get("values")))


def _loss_steps(values: Mapping[str, Any]) -> tuple[int, ...] | None:
    steps = values.get("steps")
    if not isinstance(steps, list) or any(type(s) is not int for s in steps):
        return None
    return tuple(steps) if len(steps) == len(_list(values.get("values"))) else None


def _parameters_at(value: Any) -> ParametersAt | None:
    if not isinstance(value, dict) or type(value.get("step")) is not int:
        return None
    return ParametersAt(value["step"], _sums(value.get("sums")), str(value.get("reason") or ""))


def read_parameters(path: Path) -> tuple[tuple[float, float] | None, ...] | None:
    """Sum and length of each parameter at the end of a run; None where they were not asked for."""
    values = _read(path)
    return _sums(values.get("parameters")) if isinstance(values, dict) else None


def _sums(rows: Any) -> tuple[tuple[float, float] | None, ...] | None:
    if not isinstance(rows, list):
        return None
    pairs = [[_number(v) for v in _list(row)] for row in rows]
    return tuple((p[0], p[1]) if len(p) == 2 and p[0] is not None and p[1] is not None else None for p in pairs)


def finder_for(trace: Trace, roots: Sequence[Path] = ()) -> SourceFinder:
    """Return a finder that reads the run's own copies of the sources, and its record of exact lines, where it can.

    For the app's own sample traces it reads the examples that they are about. ``roots``: more folders that the user
    has allowed.
    """
    run = run_of(trace.path)
    if run is None:
        return SourceFinder(trace, [*([EXAMPLE] if _is_sample(trace) else []), *roots])
    record = read_line_record(run.folder, trace.path.name.removesuffix(".json"))
    copies = _inside(run.folder, SOURCES)  # a folder from elsewhere may hold a link to anywhere in its place
    return SourceFinder(trace, [*([copies] if copies is not None else []), *roots], record)


def kept_source(run: RunRecord | None, trace: Trace, file: str) -> Path | None:
    """Return the app's own copy of a source that a trace names: the run's, or the example's for a sample trace."""
    if run is not None:
        return run.copy_of(file)
    path = EXAMPLE / file
    return path if _is_sample(trace) and path.name == file and path.is_file() else None


def _is_sample(trace: Trace) -> bool:
    try:
        return trace.path.resolve().parent == SAMPLES and EXAMPLE.is_dir()
    except OSError:
        return False


def _read(path: Path) -> Any:
    try:
        if not path.is_file() or path.stat().st_size > LARGEST_BYTES:
            return None
        return orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None


def _inside(folder: Path, name: Any) -> Path | None:
    if not isinstance(name, str) or not name:
        return None
    path = folder / name
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError):
        return None
    return path if inside else None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: Any) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if known else None


def _nanoseconds(value_us: Any) -> float | None:
    number = _number(value_us)
    return None if number is None else number * 1000.0
