"""Whether two traces are of the same program under the same conditions: what differs is named before times are."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from core.call_stacks import has_call_stacks
from core.errors import TraceError
from core.kinds import SliceKind
from core.moved_run import source_root
from core.project import COPIES, Project, load_project, project_folder
from core.recorded import has_python_stacks, has_shapes
from core.run_folder import RunRecord
from core.trace import Trace
from core.words import visible

PRODUCTS = frozenset(("aten::linear", "aten::addmm", "aten::mm", "aten::matmul", "aten::bmm", "aten::conv2d"))

CODES = ("script", "arguments", "environment", "steps", "device", "torch", "rank", "simulated", "shapes")
RECORDED = ("stacks", "shapes", "memory")  # that any trace tells of itself
RUN_OPTIONS = ("flops", "modules", "cuda_sync_events")  # that only a run's folder tells


@dataclass(frozen=True)
class Condition:
    """One thing that differs: ``code`` is one of `CODES`, or ``recording``; both values as words, "" for nothing."""

    code: str
    before: str
    after: str


def program_of(run: RunRecord | None) -> str | None:
    """What was run: the script's path, of a changed copy its project; None where that is not known."""
    if run is None:
        return None
    script = str(run.spec.get("script") or run.spec.get("module") or run.name)
    copy = copy_of(script)
    return str(PurePath(copy).parents[1]) if copy else script


def project_of(run: RunRecord) -> Project | None:
    """The rounds that are kept beside a run's folder, where it is one of them."""
    folder, program = run.folder.resolve(), str(program_of(run))
    for root in (folder.parent / "projects", folder.parents[1] / "projects"):
        project = load_project(Path(program) if Path(program).parent == root else project_folder(root, program))
        if project is not None and project.find(run.folder) is not None:
            return project
    return None


def copy_of(script: str) -> str:
    """Folder of the changed copy that a script lies in, below its project's; "" where it lies in none."""
    parts = PurePath(script).parts
    for at in range(len(parts) - 2, 0, -1):
        if parts[at] == COPIES and parts[at + 1].isdigit():
            return str(PurePath(*parts[: at + 2]))
    return ""


def file_family(path: PurePath) -> str:
    """Name of a trace without the numbers that tell runs, ranks and times apart."""
    name = path.name.partition(".")[0]
    return "".join(c for c in name if not c.isdigit()).strip("-_ ")


def is_same_program(before: Trace, after: Trace, runs: tuple[RunRecord | None, RunRecord | None]) -> bool:
    """Whether two traces may be compared without asking: the same script, or else files with names of one family."""
    programs = [program_of(run) for run in runs]
    if None not in programs:
        return _is_one(str(programs[0]), str(programs[1]))
    if programs != [None, None] or not before.sources or not after.sources:
        return False
    family = file_family(before.path)
    return family == file_family(after.path) and (family != "trace" or before.path.parent == after.path.parent)


def _is_one(before: str, after: str) -> bool:
    """A project's folder is named after its script, with a digest of the path."""
    if before == after:
        return True
    pairs = ((before, after), (after, before))
    return any(os.path.basename(project) == project_folder(Path("."), script).name for script, project in pairs)


def ran_same_code(runs: tuple[RunRecord | None, RunRecord | None]) -> bool:
    """Whether two runs had the same sources and arguments: their times differ by chance. False where that is unknown.

    Sources are told apart by their places below the folder that a changed copy is made of.
    """
    sides = [_code_of(run) for run in runs]
    return bool(sides[0]) and sides[0] == sides[1]


def _code_of(run: RunRecord | None) -> dict[str, Any]:
    """What a run ran: texts of its sources and its arguments; nothing where one cannot be read."""
    root = source_root(run) if run is not None else None
    if run is None or not run.sources or root is None or run.spec.get("env"):  # its values are not kept
        return {}
    found: dict[str, Any] = {"": (run.spec.get("argv"), run.spec.get("module"))}
    try:
        for path, copy in run.sources.items():
            place = Path(path)
            found[str(place.relative_to(root) if place.is_relative_to(root) else place)] = copy.read_bytes()
    except OSError:
        return {}
    return found


def differing(before: Trace, after: Trace, runs: tuple[RunRecord | None, RunRecord | None]) -> tuple[Condition, ...]:
    """What differs between two traces beside the code that a fix changes; what one of them does not state is left out.

    Scripts, their arguments, variables that were set and what ends a step count where a run is known here. Shapes are
    those of the first matrix product or convolution of a step.
    """
    found = []
    programs = [program_of(run) for run in runs]
    if None not in programs and not _is_one(str(programs[0]), str(programs[1])):
        found.append(Condition("script", str(programs[0]), str(programs[1])))
    elif (runs[0] is None) != (runs[1] is None):
        sides_of = zip((before, after), runs, strict=True)
        names = [run.name if run is not None else trace.path.name for trace, run in sides_of]
        found.append(Condition("script", names[0], names[1]))
    if runs[0] is not None and runs[1] is not None:
        found += _differing_runs(runs[0], runs[1])
    sides = [_conditions(trace) for trace in (before, after)]
    for code in sides[0]:
        old, new = (side.get(code) for side in sides)
        if old is not None and new is not None and old != new:
            found.append(Condition(code, str(old), str(new)))
    return tuple(found)


def differing_recording(
    before: Trace, after: Trace, runs: tuple[RunRecord | None, RunRecord | None]
) -> Condition | None:
    """What was recorded in one of two traces only; None where it is the same.

    A profiler that records more takes more of the step, and what needs the data is found in one trace only.
    """
    known = None not in runs
    sides = [
        _recorded(trace) + (_options(run) if known else ()) for trace, run in zip((before, after), runs, strict=True)
    ]
    if sides[0] == sides[1]:
        return None
    return Condition("recording", ", ".join(sides[0]), ", ".join(sides[1]))


def _recorded(trace: Trace) -> tuple[str, ...]:
    has = (has_python_stacks(trace) or has_call_stacks(trace), has_shapes(trace), bool(len(trace.memory)))
    return tuple(name for name, there in zip(RECORDED, has, strict=True) if there)


def _options(run: RunRecord | None) -> tuple[str, ...]:
    chosen = run.spec.get("options") if run is not None else None
    if not isinstance(chosen, dict):
        return ()
    return tuple(name.replace("_", " ") for name in RUN_OPTIONS if chosen.get(name) is True)


def _differing_runs(before: RunRecord, after: RunRecord) -> list[Condition]:
    """Arguments and names of variables of two runs, and what ended a step in them."""
    found = []
    words = _different_words(*(_texts(run.spec.get("argv")) for run in (before, after)))
    if words[0] != words[1]:
        found.append(Condition("arguments", *words))
    names = [" ".join(sorted(_texts(run.spec.get("env")))) for run in (before, after)]
    if names[0] != names[1]:
        found.append(Condition("environment", *names))
    if before.steps_from and after.steps_from and before.steps_from != after.steps_from:
        found.append(Condition("steps", before.steps_from, after.steps_from))
    return found


def _texts(value: Any) -> list[str]:
    return [visible(str(v)) for v in value] if isinstance(value, list | tuple) else []


def _different_words(before: list[str], after: list[str]) -> tuple[str, str]:
    """Two command lines without what they share at their ends; an option stays before its value."""
    shortest = min(len(before), len(after))
    first = next((i for i in range(shortest) if before[i] != after[i]), shortest)
    most = shortest - first
    last = next((i for i in range(most) if before[-1 - i] != after[-1 - i]), most)
    differing = before[first : first + 1] + after[first : first + 1]
    if first and before[first - 1].startswith("-") and not all(word.startswith("-") for word in differing):
        first -= 1
    return " ".join(before[first : len(before) - last]), " ".join(after[first : len(after) - last])


def _conditions(trace: Trace) -> dict[str, Any]:
    meta = trace.meta
    names = sorted({d.name for d in meta.devices if d.name})
    device = ", ".join(names) if names else "GPU" if trace.has_device_work else "CPU only"
    if names and not trace.has_device_work:
        device += " (no work of it recorded)"
    return {
        "device": device if names or not trace.has_device_work else None,
        "torch": meta.torch_version,
        "rank": meta.rank,
        "simulated": "simulated" if meta.simulated else "recorded",
        "shapes": _shapes(trace),
    }


def _shapes(trace: Trace) -> str | None:
    """Input shapes of the first matrix product or convolution of the middle step: the batch is in them."""
    if not len(trace.steps):
        return None
    slices = trace.slices
    start = np.sort(trace.steps.start_ns)[len(trace.steps) // 2]
    ops = np.flatnonzero((slices.kind == SliceKind.CPU_OP) & (slices.start_ns >= start))
    wanted = [i for i in np.unique(slices.name_id[ops]) if trace.strings[int(i)] in PRODUCTS]
    ops = ops[np.isin(slices.name_id[ops], wanted)]
    if not len(ops):
        return None
    try:
        dims = trace.args(int(ops[np.argmin(slices.start_ns[ops])])).get("Input Dims")
    except (TraceError, OSError):
        return None  # the file is gone: what it said cannot be told
    while isinstance(dims, list) and dims and not dims[-1]:  # of inputs that are no tensors
        dims = dims[:-1]
    return str(dims) if dims else None
