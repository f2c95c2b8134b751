"""``main.py profile``: its arguments, and one run in a terminal."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence

from profiling.events import Progress
from profiling.interpreters import find_interpreters
from profiling.notebooks import is_notebook, make_script
from profiling.notices import duration
from profiling.result import RunResult
from profiling.run import run_blocking
from profiling.spec import STEP_SOURCES, Options, RunSpec, Schedule, package_module

TAIL_LINES = 20
LONGEST_SECONDS = 1e6  # what a timer can wait for without an overflow
RELATIVE_IMPORT = "attempted relative import with no known parent package"
Report = Callable[[float | None, str], None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options; the script's own arguments stand behind ``--`` and are cut off before."""
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("script", nargs="?", metavar="SCRIPT", help="the training script")
    target.add_argument("-m", dest="module", metavar="MODULE", help="run a module instead, as python -m does")
    parser.add_argument("--json", action="store_true", help="print the run's manifest")
    parser.add_argument("--quiet", action="store_true", help="do not pass the script's output on to stderr")
    where = parser.add_argument_group("where it runs")
    where.add_argument("--interpreter", metavar="PATH", help="the Python that has torch (looked for beside the script)")
    where.add_argument("--cwd", default="", metavar="DIR", help="folder to start in (the script's)")
    where.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE", help="set a variable; may repeat", type=_variable
    )
    where.add_argument("--gpu", type=_gpus, default="", metavar="N", help="GPUs it sees: 0, or 0,1, or none (all)")
    where.add_argument("--runs", default="", metavar="DIR", help="folder that receives the run's folder")
    where.add_argument("--name", default="", help="what the run is called")
    window = parser.add_argument_group("which steps")
    schedule = Schedule()
    for name, text in (
        ("skip", "steps passed over"),
        ("warmup", "steps run under the profiler before recording"),
        ("active", "steps recorded"),
        ("repeat", "how often"),
    ):
        default = getattr(schedule, name)
        count = _steps if name in ("skip", "warmup") else _one_or_more
        window.add_argument(f"--{name}", type=count, default=default, metavar="N", help=f"{text} ({default})")
    sources = f"{{{','.join(STEP_SOURCES)}}}"
    window.add_argument("--steps", type=_source, default="auto", metavar=sources, help="what ends a step (auto)")
    window.add_argument("--stop-after-window", action="store_true", help="end the script once the steps are recorded")
    window.add_argument("--no-wall", action="store_true", help="do not time steps without the profiler")
    window.add_argument("--parameters", action="store_true", help="keep sums of the parameters, to compare runs by")
    window.add_argument("--parameters-after", type=_steps, default=0, metavar="N", help="keep them after N steps, too")
    window.add_argument(
        "--whole-seconds", type=_seconds, default=20.0, metavar="S", help="longest stretch without steps"
    )
    what = parser.add_argument_group("what is recorded")
    for name in ("shapes", "memory", "stacks"):
        what.add_argument(f"--no-{name}", action="store_true", help=f"leave {name} out")
    for name in ("flops", "modules", "cuda-sync-events"):
        what.add_argument(f"--{name}", action="store_true", help=f"record {name.replace('-', ' ')} too")
    what.add_argument("--line-ranges", action="append", default=[], metavar="FILE:FUNCTION", help="a range per line")
    what.add_argument("--no-sync-lines", action="store_true", help="do not look for the lines that wait (CUDA)")


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r}: write NAME=VALUE")
    return name, value


def _whole(text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least {least}")
    return number


def _steps(text: str) -> int:
    return _whole(text, 0)


def _one_or_more(text: str) -> int:
    return _whole(text, 1)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < LONGEST_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return seconds


def _source(text: str) -> str:
    if text not in STEP_SOURCES:
        known = ", ".join(STEP_SOURCES)
        raise argparse.ArgumentTypeError(f"{text!r} is none of {known}; a --steps of the script's stands behind --")
    return text


def _gpus(text: str) -> str:
    if text and not all(part.strip() for part in text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} names no GPU: write 0, or 0,1, or none")
    return text


def spec_of(options: argparse.Namespace, argv: Sequence[str]) -> RunSpec:
    """Return what the arguments ask for.

    Raises
    ------
    ProfilingError
        When they cannot be followed.
    """
    script = options.script or ""
    if is_notebook(script) and os.path.isfile(script):
        made = make_script(script, _absolute(options.interpreter))
        told = f"its code is run from {made.path}; lines that only a notebook understands: {made.left_out}."
        print(f"{script} is a notebook: {told}", file=sys.stderr)
        script = str(made.path)
    return RunSpec(
        interpreter=_absolute(options.interpreter) or _interpreter(script),
        script=script,
        module=options.module or "",
        argv=tuple(argv),
        cwd=options.cwd,
        env=dict(options.env),
        schedule=Schedule(options.skip, options.warmup, options.active, options.repeat),
        options=Options(
            not options.no_shapes,
            not options.no_memory,
            not options.no_stacks,
            options.flops,
            options.modules,
            options.cuda_sync_events,
        ),
        gpu=options.gpu,
        step_source=options.steps,
        stop_after_window=options.stop_after_window,
        line_ranges=tuple(options.line_ranges),
        measure_wall=not options.no_wall,
        parameters=options.parameters or options.parameters_after > 0,
        parameters_after=max(options.parameters_after, 0),
        sync_lines=not options.no_sync_lines,
        whole_seconds=options.whole_seconds,
        runs_root=options.runs,
        name=options.name,
    )


def _absolute(path: str | None) -> str:
    """A path as it holds in another folder too; links are kept (they are what a virtual environment is)."""
    whole = os.path.expanduser(path or "")
    return os.path.abspath(whole) if whole and os.path.exists(whole) else whole


def _interpreter(script: str) -> str:
    """The likeliest Python for a script; the one that runs us where none seems to have torch."""
    found = [i.path for i in find_interpreters(script) if i.has_torch]
    return found[0] if found else sys.executable


def profile(options: argparse.Namespace, argv: Sequence[str], progress: Report, clear: Callable[[], None]) -> int:
    """Run a script and print what came of it; returns the exit status (0, 3, 4 or 130).

    Raises
    ------
    ProfilingError
        Where nothing could be started.
    """

    def on_output(_: str, text: str) -> None:
        clear()
        sys.stderr.write(text)
        sys.stderr.flush()

    def on_progress(state: Progress) -> None:
        share = state.done / state.total if state.total else None
        progress(share, state.words + (f", step {state.step}" if state.step else ""))

    result = run_blocking(spec_of(options, argv), None if options.quiet else on_output, on_progress)
    clear()
    if options.json:
        _print(json.dumps(result.manifest, indent=2, ensure_ascii=False))
    else:
        _print("\n".join(lines_of(result)))
    if result.exit_status:
        if options.quiet and result.tail:
            sys.stderr.write("\n".join(result.tail.splitlines()[-TAIL_LINES:]) + "\n")
        print(f"steplens: {result.fault if result.outcome == 'ok' else result.words}", file=sys.stderr)
    return result.exit_status


def _stretches(numbers: Sequence[int]) -> str:
    """Ascending numbers in few words: ``4 to 8, 12``."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ", ".join(" to ".join(map(str, part)) for part in parts)


def _as_module(script: str) -> list[str]:
    """The command that runs a file of a package as the module that it is; nothing for a file of its own."""
    found = package_module(script) if script else None
    if found is None:
        return []
    module, folder = found
    return [f"Here: main.py profile --cwd {shlex.quote(folder)} -m {module}"]


def lines_of(result: RunResult) -> list[str]:
    """The run in a few lines: how it ended, what was recorded, what it cost, what to do next."""
    lines: list[str] = [result.words]
    if result.failure is not None and result.failure.users_frame is not None:
        frame = result.failure.users_frame
        inside = f" in {frame.function}" if frame.function else ""
        lines.append(f"at {frame.file}:{frame.line}{inside}: {frame.code}")
    if result.failure is not None and result.failure.hint:
        lines.append(result.failure.hint)
    if result.failure is not None and RELATIVE_IMPORT in result.failure.title:
        lines += _as_module(str(result.manifest.get("spec", {}).get("script") or ""))
    steps = result.manifest.get("steps", {})
    recorded = _stretches([int(step) for step in steps.get("recorded") or ()])
    if steps.get("count") and steps.get("source") != "":
        which = f" ({recorded})" if recorded else ""
        words = f"{len(steps['recorded'])} of them recorded{which}; from {steps.get('source_words')}."
        lines.append(f"Steps: {steps['count']}, {words}")
    elif recorded:  # a script that was killed could not say more
        lines.append(f"Steps recorded: {recorded}; from {steps.get('source_words')}.")
    for name, words in (("wall_step_us", "without the profiler"), ("profiled_step_us", "while recorded")):
        if steps.get(name):
            lines.append(f"A step took {duration(steps[name])} {words}.")
    lines += [f"Note: {notice}" for notice in result.notices]
    if result.missed_its_window:
        lines.append("To record from the first step on: --skip 0 --warmup 0")
    lines.append(f"Folder: {result.folder}")
    for trace in result.traces:
        lines.append(f"Trace: {trace} ({os.path.getsize(trace) / 1e6:.1f} MB)")
    return lines


def _print(text: str) -> None:
    sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
    sys.stdout.flush()
