"""Arguments; starts the window, or a headless command (docs/headless.md)."""

from __future__ import annotations

# ruff: noqa: E402 - the first lines come before the other imports
import _signal  # type: ignore[import-not-found]  # signal itself takes longer to load
import os
import sys

AS_PROGRAM = __name__ == "__main__" or os.path.basename(sys.argv[0]) == "steplens"  # the command that installing makes
if AS_PROGRAM and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, lambda *_: os._exit(130))  # Ctrl+C while the modules load: nothing has begun yet

import argparse
import contextlib
import difflib
import errno
import math
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.reporting.terminal import Progress, drop_output, page, say, write

if TYPE_CHECKING:
    from core.allow import Allowed
    from core.analysis import Analysis
    from core.set_aside import SetAside
    from core.trace import Trace

DONE, WRONG_ARGUMENTS, UNUSABLE_INPUT, SCRIPT_FAILED, GATE_NOT_MET, CANCELLED = 0, 2, 3, 4, 5, 130
MOST_UNUSED = 8  # entries of an allow file told one by one
NEGATIVE = re.compile(r"-(?:(?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan)$", re.IGNORECASE)
COMMANDS = ("analyze", "profile", "compare", "screenshot", "report")


class UsageError(Exception):
    """Wrong arguments that argparse cannot see."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    progress = Progress()
    try:
        if AS_PROGRAM and argv is None and signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if not arguments or (arguments[0] not in COMMANDS and not arguments[0].startswith("-")):
            return window(arguments)
        if arguments[0] == "--":
            return window(arguments[1:])
        options = _parse(arguments)
        return int(options.run(options, progress))
    except KeyboardInterrupt:
        progress.clear()
        say("cancelled")
        return CANCELLED
    except BrokenPipeError:  # the reader of our output has seen enough
        drop_output()
        return DONE
    except Exception as error:
        progress.clear()
        return _failed(error)


def _failed(error: Exception) -> int:
    """Say what went wrong in one line, and return the exit status."""
    if isinstance(error, UsageError):
        say(f"error: {error}")
        return WRONG_ARGUMENTS
    from core.errors import Cancelled, TraceError

    if isinstance(error, Cancelled):
        say("cancelled")
        return CANCELLED
    if isinstance(error, TraceError):
        say(f"error: {' '.join(str(error).split())}")
        return UNUSABLE_INPUT
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        name = str(error.filename)
        say(f"error: {name[:60]}...: this path of {len(name)} characters is longer than the system allows.")
        return UNUSABLE_INPUT
    if isinstance(error, MemoryError):
        say("error: there is not enough memory to open this trace. Record fewer steps, or close other programs.")
        return UNUSABLE_INPUT
    if os.environ.get("STEPLENS_DEBUG"):
        raise error
    say(f"error: {type(error).__name__}: {' '.join(str(error).split())}. This is a fault of StepLens: please report it "
        "with the traceback that STEPLENS_DEBUG=1 shows.")  # fmt: skip
    return UNUSABLE_INPUT


# Commands ----------------------------------------------------------------------------------------------------


def window(paths: Sequence[str]) -> int:
    """Open the window, with these traces."""
    if "" in paths:
        raise UsageError("a path is empty; is a variable of the shell unset?")
    missing = [p for p in paths if not Path(p).exists()]
    if missing and len(missing) == len(paths):  # else the window opens the others, and says which are missing
        close = difflib.get_close_matches(paths[0], COMMANDS, 1)
        if missing[0] == paths[0] and close and len(paths[0]) < 16:
            raise UsageError(f"unknown command {paths[0]!r}, did you mean {close[0]!r}?")
        say(f"error: {missing[0]}: there is no such file. main.py --help lists the commands.")
        return UNUSABLE_INPUT
    try:
        with _uninterrupted():
            from gui.app import run
    except ImportError as error:
        say(f"error: the window cannot be loaded: {error}. The headless commands work without it (main.py --help).")
        return UNUSABLE_INPUT
    return int(run([Path(p) for p in paths]))


def analyze_command(options: argparse.Namespace, progress: Progress) -> int:
    """Print figures and suggestions."""
    with _uninterrupted():
        from core.allow import parse_gate, read_allow_file, split_allowed
        from core.reporting import json, phrases, text
        from core.rule_runner import load_rules

    allowed = read_allow_file(options.allow) if options.allow else []
    gate = None
    if options.fail_on is not None:
        try:
            gate = parse_gate(options.fail_on, [r.rule.id for r in load_rules()])
        except ValueError as error:
            raise UsageError(str(error)) from error
    trace, analysis = _analysed(options.trace, progress, 0.0, 1.0)
    if options.json:
        progress.clear()
        write(json.to_bytes(json.document(trace, analysis)))
        _without_allowed(None, analysis, options.allow, allowed, progress)
    else:
        rest, aside = _without_allowed(trace, analysis, options.allow, allowed, progress)
        write(text.report(trace, rest, page(), every=options.all, aside=aside).encode("utf-8", "replace"))
    new, _, _ = split_allowed(analysis.suggestions, allowed)
    if gate is None:
        return DONE
    for result in gate.unchecked(analysis.rules):
        say(f"--fail-on: {result.rule.id} could not be checked: {result.reason}")
    failing = [s for s in new if gate.hits(s)]
    for suggestion in failing:
        where = f" ({phrases.place(suggestion.source)})" if suggestion.source else ""
        say(f"--fail-on {options.fail_on}: {suggestion.rule_id}: {phrases.printable(suggestion.headline)}{where}")
    return GATE_NOT_MET if failing else DONE


def _without_allowed(
    trace: Trace | None, analysis: Analysis, file: Path | None, allowed: Sequence[Allowed], progress: Progress
) -> tuple[Analysis, SetAside]:
    """Take what a file allows out of an analysis (where there is a trace to price it by), and tell what it allows."""
    from core.allow import split_allowed
    from core.set_aside import set_aside
    from core.words import counted, cut

    _, meant, unused = split_allowed(analysis.suggestions, allowed)
    words = {s.key: f"allowed: {entry.reason}" for s, entry in meant}
    found = set_aside(trace, analysis, words) if trace is not None else (analysis, ())
    progress.clear()
    for entry in unused[:MOST_UNUSED]:
        said = f"{cut(entry.rule)} ({cut(entry.reason)})"
        say(f"{file}: nothing here fits the entry for {said}; is it still needed?")
    if len(unused) > MOST_UNUSED:
        rest = counted(len(unused) - MOST_UNUSED, "further entry", "further entries")
        say(f"{file}: nor does anything fit {rest}")
    if meant:
        say(f"{len(meant)} of {len(analysis.suggestions)} suggestions are allowed by {file}")
    return found


def compare_command(options: argparse.Namespace, progress: Progress) -> int:
    """Print two traces side by side."""
    with _uninterrupted():
        from core.compare import compare
        from core.reporting import comparing, json

    before = _analysed(options.before, progress, 0.0, 0.5)
    after = _analysed(options.after, progress, 0.5, 1.0)
    found = compare(*before, *after)
    progress.clear()
    if options.json:
        write(json.to_bytes(comparing.document(before[0], after[0], found)))
    else:
        write(comparing.report(before[0], after[0], found, page()).encode("utf-8", "replace"))
    return DONE


def report_command(options: argparse.Namespace, progress: Progress) -> int:
    """Write one self-contained page."""
    with _uninterrupted():
        from core.allow import read_allow_file
        from core.files import check_output, write_atomically
        from core.reporting import html

    _check_ending(options.out, ".html", ".htm")
    check_output(options.out, (".html", ".htm"), [options.trace, *([options.allow] if options.allow else [])])
    allowed = read_allow_file(options.allow) if options.allow else []
    trace, analysis = _analysed(options.trace, progress, 0.0, 0.95)
    rest, aside = _without_allowed(trace, analysis, options.allow, allowed, progress)
    write_atomically(options.out, html.page(trace, rest, aside=aside).encode("utf-8", "replace"))
    progress.clear()
    write(os.fsencode(options.out) + b"\n")
    return DONE


def _check_ending(path: Path, *endings: str) -> None:
    if path.suffix.lower() not in endings:
        raise UsageError(f"{path}: the output must end in {' or '.join(endings)}")


def screenshot_command(options: argparse.Namespace, progress: Progress) -> int:
    """Write a picture of the window."""
    from core.files import check_output

    _check_ending(options.out, ".png")
    check_output(options.out, (".png",), [options.trace])
    if (options.start_us is None) != (options.end_us is None):
        raise UsageError("--start-us and --end-us go together")
    if options.start_us is not None and not -math.inf < options.start_us < options.end_us < math.inf:
        raise UsageError("--start-us and --end-us must be numbers, the first smaller than the second")
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    with _uninterrupted():
        import gui.main_window  # noqa: F401 - the screenshot imports it late
        from gui.screenshot import screenshot

    screenshot(options, progress)
    progress.clear()
    write(os.fsencode(options.out) + b"\n")
    return DONE


def profile_command(options: argparse.Namespace, progress: Progress) -> int:
    """Run a script under the profiler."""
    from profiling.command import profile
    from profiling.errors import ProfilingError

    try:
        return profile(options, options.script_arguments, progress, progress.clear)
    except ProfilingError as error:
        progress.clear()
        say(f"error: {' '.join(str(error).split())}")
        return UNUSABLE_INPUT


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Put a Ctrl+C off while modules load: numpy and Qt do not survive one in the middle of their import."""
    pressed: list[int] = []
    try:
        before = signal.signal(signal.SIGINT, lambda *_: pressed.append(1))
    except ValueError:  # not in the main thread, which alone gets it
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


def _analysed(path: Path, progress: Progress, start: float, end: float) -> tuple[Trace, Analysis]:
    """Open and analyse one trace; opening takes most of the time."""
    with _uninterrupted():
        import core.pricing
        import core.rule_runner  # noqa: F401 - analyze imports them late
        from core import cache
        from core.analysis import analyze
        from core.importing import open_trace, pool
        from core.run_folder import finder_for

    pool.allow_in_child()  # it has no other thread: its decoders may be forked
    border = start + 0.6 * (end - start)
    trace = open_trace(path, progress=progress.part(start, border), cache_dir=cache.user_folder())
    return trace, analyze(trace, progress=progress.part(border, end), source=finder_for(trace))


# Arguments ---------------------------------------------------------------------------------------------------


def version() -> str:
    """Return the program's version, also from a checkout that is not installed."""
    import tomllib
    from importlib import metadata

    project = Path(__file__).with_name("pyproject.toml")
    try:
        return str(tomllib.loads(project.read_text("utf-8"))["project"]["version"])
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return metadata.version("steplens")


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        write(f"StepLens {version()}\n".encode())
        parser.exit(DONE)


def _path(text: str) -> Path:
    if not text:  # Path("") is the current folder, which nobody meant
        raise argparse.ArgumentTypeError("the path is empty; is a variable of the shell unset?")
    return Path(text)


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.lower().partition("x")
    if not (width.isdigit() and height.isdigit() and 200 <= int(width) <= 16384 and 150 <= int(height) <= 16384):
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 1600x1000")
    return int(width), int(height)


def _parser(chosen: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="main.py",
        description="StepLens: see where a PyTorch training step waits, and what a fix would save.",
        epilog="Without a command, main.py [TRACE...] opens the window. Exit status: 0 done, 2 wrong arguments, "
        "3 unusable input, 4 the profiled script failed, 5 the --fail-on gate is not met, 130 cancelled.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run: Callable[..., int], text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".", allow_abbrev=False)
        sub.set_defaults(run=run, usage_of=sub)
        sub._negative_number_matcher = NEGATIVE  # argparse itself takes -1e18 and -inf for options
        return sub

    analyze = command("analyze", analyze_command, "figures and suggestions of a trace, as text or JSON")
    analyze.add_argument("trace", type=_path, metavar="TRACE", help="a .json or .json.gz trace, or a folder of ranks")
    analyze.add_argument("--json", action="store_true", help="print one JSON object")
    analyze.add_argument("--all", action="store_true", help="show suggestions that save less than 1 %% of a step, too")
    analyze.add_argument("--allow", type=_path, metavar="FILE", help="findings that are meant (docs/headless.md)")
    analyze.add_argument(
        "--fail-on",
        metavar="SPEC",
        help="exit with 5 when a finding that FILE does not allow fits one of these, separated by commas: a rule id, "
        "low, medium or high (that severity or more), saving>=5%%, saving>=200us, any",
    )
    profile = command("profile", profile_command, "run a script under the profiler")
    profile.usage = "main.py profile (SCRIPT | -m MODULE) [options] [-- ARGS]"
    if chosen == "profile":  # the others need not load what runs scripts
        from profiling.command import add_arguments

        add_arguments(profile)
    compare = command("compare", compare_command, "two traces side by side")
    compare.add_argument("before", type=_path, metavar="BEFORE")
    compare.add_argument("after", type=_path, metavar="AFTER")
    compare.add_argument("--json", action="store_true", help="print one JSON object")
    shot = command("screenshot", screenshot_command, "a picture of the window")
    shot.add_argument("trace", type=_path, metavar="TRACE")
    shot.add_argument("out", type=_path, metavar="OUT.png")
    shot.add_argument("--size", type=_size, default=(1600, 1000), metavar="WxH", help="in pixels (1600x1000)")
    shot.add_argument("--suggestion", type=int, metavar="N", help="show the Nth suggestion, counted from 1")
    shot.add_argument("--theme", choices=("light", "dark"), default="dark")
    shot.add_argument("--start-us", type=float, metavar="A", help="show the trace from A ...")
    shot.add_argument("--end-us", type=float, metavar="B", help="... to B, us from the first event")
    report = command("report", report_command, "one self-contained page to send to a colleague")
    report.add_argument("trace", type=_path, metavar="TRACE")
    report.add_argument("out", type=_path, metavar="OUT.html")
    report.add_argument("--allow", type=_path, metavar="FILE", help="findings that are meant (docs/headless.md)")
    return parser


def _parse(arguments: list[str]) -> argparse.Namespace:
    """Parse a command; what stands behind ``profile ... --`` belongs to the script."""
    rest: list[str] = []
    if arguments[0] == "profile" and "--" in arguments:
        border = arguments.index("--")
        arguments, rest = arguments[:border], arguments[border + 1 :]
    parser = _parser(arguments[0])
    if arguments[0] not in COMMANDS and not any(o.startswith(arguments[0]) for o in ("--version", "--help", "-h")):
        parser.error(f"unrecognized arguments: {arguments[0]}")  # argparse would only miss the command
    options, unknown = parser.parse_known_args(arguments)
    if unknown:  # argparse itself would show the usage of main.py, which has none of the command's options
        hint = "; what is for the script stands behind --" if arguments[0] == "profile" else ""
        options.usage_of.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    options.script_arguments = rest
    return options


def started() -> int:
    """Run as a program."""
    try:
        return main()
    except KeyboardInterrupt:  # before main could take it
        return CANCELLED


if __name__ == "__main__":
    raise SystemExit(started())
