"""What to run and what to record: everything that a run is made from, checked before anything starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from profiling.errors import ProfilingError
from profiling.notebooks import is_notebook
from profiling.sentences import say

STEP_SOURCES = ("auto", "optimizer", "loader", "module", "whole")
NO_GPU = "none"
STDIN_MODES = ("inherit", "pipe", "null")


@dataclass(frozen=True)
class Schedule:
    """How many steps are passed over and how many are recorded.

    The first ``skip + warmup`` steps stand outside the window (allocator growth, autotuning and lazy loading happen
    there); then ``active`` steps are recorded, ``repeat`` times. Just before each window a few steps are timed without
    the profiler.
    """

    skip: int = 1
    warmup: int = 3
    active: int = 5
    repeat: int = 1

    def __post_init__(self) -> None:
        if self.skip < 0 or self.warmup < 0 or self.active < 1 or self.repeat < 1:
            raise ProfilingError(
                say("no-schedule"),
                say("schedule-is", skip=self.skip, warmup=self.warmup, active=self.active, repeat=self.repeat),
                say("cure-schedule"),
            )


@dataclass(frozen=True)
class Options:
    """What torch records beside the operators' names and times; each one costs something."""

    shapes: bool = True
    memory: bool = True
    stacks: bool = True
    flops: bool = False
    modules: bool = False
    cuda_sync_events: bool = False


@dataclass(frozen=True)
class RunSpec:
    """One profiling of one script.

    Parameters
    ----------
    interpreter
        Path of the Python that runs the script; it needs torch, and nothing of ours.
    script, module
        Exactly one of them: a path, or a dotted name as ``python -m`` takes it.
    argv
        The script's own arguments, already split; nothing is expanded.
    cwd
        Folder in which the script starts. Empty: the script's folder, or the current one for a module.
    env
        Variables to set beside the inherited ones; an empty value removes the variable.
    gpu
        Which GPUs the script sees, as ``CUDA_VISIBLE_DEVICES`` takes them (``0``, ``0,2``, a UUID); ``none`` hides all
        of them, an empty text leaves the variable as it is.
    step_source
        What ends a step: ``auto`` looks at the loop itself, the others force one way.
    stop_after_window
        End the script (cleanly: its ``finally`` and ``atexit`` run) once the last window is written.
    line_ranges
        Wrap statements of the user's functions in ranges: ``"*"`` for all of them, else ``file:function`` patterns,
        each a path's end and a qualified name (``train.py:Loss.forward``), either may be ``*``.
    measure_wall
        Time a few steps without the profiler before the window.
    sync_lines
        On CUDA, run one warm-up step under ``torch.cuda.set_sync_debug_mode("warn")`` and keep each warning's stack.
    parameters
        Keep sums of the parameters at the script's end, and the losses of the recorded steps too, to compare two runs
        by more than the losses of the other steps. Shows as a Python frame around each backward pass.
    parameters_after
        Keep those sums after so many steps, too (only with ``parameters``; 0: at the end alone). Not where that step
        is one of the recorded ones.
    whole_seconds
        Longest stretch recorded where no step can be found.
    runs_root
        Folder that receives the run folder.
    """

    interpreter: str
    script: str = ""
    module: str = ""
    argv: tuple[str, ...] = ()
    cwd: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    schedule: Schedule = Schedule()
    options: Options = Options()
    gpu: str = ""
    step_source: str = "auto"
    stop_after_window: bool = False
    line_ranges: tuple[str, ...] = ()
    measure_wall: bool = True
    sync_lines: bool = True
    parameters: bool = False
    parameters_after: int = 0
    whole_seconds: float = 20.0
    stdin: str = "inherit"
    runs_root: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        if bool(self.script) == bool(self.module):
            raise ProfilingError(say("one-target"), "", say("cure-one"))
        if self.step_source not in STEP_SOURCES:
            known = say("cure-one-of", names=", ".join(STEP_SOURCES))
            raise ProfilingError(say("step-source", name=self.step_source), "", known)
        if not all(part.strip() for part in self.gpu.split(",")) and self.gpu:
            raise ProfilingError(say("names-no-gpu", name=self.gpu), "", say("cure-gpu"))
        if self.stdin not in STDIN_MODES:
            raise ProfilingError(say("input-mode", name=self.stdin))

    @property
    def title(self) -> str:
        """What the run is called where the user gave no name."""
        return self.name or (Path(self.script).name if self.script else self.module)

    @property
    def folder(self) -> str:
        """Folder in which the script starts, absolute."""
        if self.cwd:
            return os.path.abspath(os.path.expanduser(self.cwd))
        return os.path.dirname(os.path.abspath(self.script)) if self.script else os.getcwd()

    @property
    def script_as_typed(self) -> str:
        """``sys.argv[0]`` as the script shall see it: relative where the script lies in its working folder."""
        path = os.path.abspath(os.path.expanduser(self.script))
        return os.path.basename(path) if os.path.dirname(path) == self.folder else path

    @property
    def command(self) -> list[str]:
        """The command that would run the script alone; for showing, never given to a shell."""
        target = ["-m", self.module] if self.module else [self.script_as_typed]
        return [self.interpreter, *target, *self.argv]

    def check(self) -> None:
        """Raise a :class:`ProfilingError` where a file or folder named here is not there."""
        if not os.path.isdir(self.folder):
            raise ProfilingError(say("no-folder", path=self.folder), "", say("cure-another"))
        if self.script and not os.path.exists(os.path.abspath(os.path.expanduser(self.script))):
            raise ProfilingError(say("no-script", path=self.script), "", say("cure-path"))
        if is_notebook(self.script):
            raise ProfilingError(say("is-notebook", path=self.script), "", say("cure-notebook"))

    def to_json(self) -> dict[str, Any]:
        """Plain values for the manifest: paths that hold in any folder; values of variables may be secrets."""
        script, runs = (os.path.abspath(os.path.expanduser(p)) if p else "" for p in (self.script, self.runs_root))
        cwd = self.folder if self.cwd or self.module else ""
        plain = asdict(replace(self, env={}, script=script, runs_root=runs, cwd=cwd))
        plain["env"] = sorted(self.env)
        return plain


def from_json(plain: Mapping[str, Any]) -> RunSpec:
    """Spec of a run's manifest, for running it again; the environment's values are not kept and so not restored."""
    known = {k: v for k, v in plain.items() if k in RunSpec.__dataclass_fields__ and k != "env"}
    known["schedule"] = Schedule(**known.get("schedule", {}))
    known["options"] = Options(**known.get("options", {}))
    for key in ("argv", "line_ranges"):
        known[key] = tuple(known.get(key, ()))
    return RunSpec(**known)


def package_module(script: str) -> tuple[str, str] | None:
    """Module name and project folder of a file that lies in a package, else None.

    A file in a package with relative imports only runs as ``python -m``; the launcher offers that.
    """
    path = Path(os.path.abspath(script))
    parts: list[str] = [] if path.name == "__main__.py" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        parts.insert(0, folder.name)
        folder = folder.parent
    if folder == path.parent or not all(part.isidentifier() for part in parts):
        return None
    return ".".join(parts), str(folder)
