"""How a run ended, in words a person can act on."""

from __future__ import annotations

import linecache
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from profiling.sentences import TEMPLATES, Sentence, joined, say


@dataclass(frozen=True)
class Frame:
    """One line of a traceback; ``users`` tells the user's code from libraries."""

    file: str
    line: int
    function: str
    code: str
    users: bool


@dataclass(frozen=True)
class Failure:
    """Why a script failed.

    Parameters
    ----------
    title
        The error in one line, as the script printed it.
    hint
        What to do about it; empty where nothing better is known than the error itself.
    frames
        The traceback, outermost first.
    """

    title: str
    hint: str = ""
    frames: tuple[Frame, ...] = ()

    @property
    def users_frame(self) -> Frame | None:
        """The innermost frame in the user's own code."""
        return next((f for f in reversed(self.frames) if f.users), None)


_FRAME = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+)(?:, in (?P<function>.+))?$')
_LIBRARY = re.compile(r"[/\\](site-packages|dist-packages|lib[/\\]python3\.\d+)[/\\]|^<")


_RANK = re.compile(r"^\[rank(\d+)\]: ?(.*)$")  # as torchrun's ranks begin their lines
_GROUP = re.compile(r"^ +[|+] ?")  # as the parts of an exception group are drawn
_CRASHED = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>.+)$')
# What steers a terminal (ECMA-48).
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\^_])?")
_OURS = re.compile(r"^<steplens>|[/\\]profiling[/\\]_child\w*\.py$")


def read_traceback(text: str) -> Failure | None:
    """The traceback that tells most: the last one with code of the user's, else the last one; None where none is.

    Lines of ranks are read rank by rank: what ends the launcher of the ranks comes after them and says nothing.
    """
    ranks: dict[int, list[str]] = {}
    plain: list[str] = []
    grouped = "Exception Group Traceback (most recent call last)" in text
    for line in text.splitlines():
        found = _RANK.match(line)
        if found:
            ranks.setdefault(int(found[1]), []).append(found[2])
        else:
            plain.append(_GROUP.sub("", line) if grouped else line)
    found_plain = _tracebacks(plain)
    found_ranks = [failure for rank in sorted(ranks) for failure in reversed(_tracebacks(ranks[rank]))]
    for failure in [*reversed(found_plain), *found_ranks]:
        if failure.users_frame is not None:
            return failure
    return next(iter([*reversed(found_plain), *found_ranks]), None) or _read_syntax_error(plain)


def _tracebacks(lines: Sequence[str]) -> list[Failure]:
    """All of them, in order."""
    found = []
    for start, line in enumerate(lines):
        if line.startswith("Traceback (most recent call last)"):
            failure = _traceback_at(lines, start)
            if failure is not None:
                found.append(failure)
    return found


def _traceback_at(lines: Sequence[str], start: int) -> Failure | None:
    frames: list[Frame] = []
    for index in range(start + 1, len(lines)):
        found = _FRAME.match(lines[index])
        if found:
            code = lines[index + 1].strip() if index + 1 < len(lines) else ""
            frames.append(_frame(found, "" if _FRAME.match("  " + code) else code))
        elif lines[index] and not lines[index].startswith(" "):
            return Failure(_shown(lines[index].strip()), "", tuple(frames))
    return None


def read_crash(text: str) -> Failure | None:
    """Where a script was when it crashed in native code, as Python's fault handler wrote it down; None without that.

    The failure has no title: how the script ended says it.
    """
    lines = text[text.rfind("Fatal Python error:") :].splitlines() if "Fatal Python error:" in text else []
    start = next((i for i, line in enumerate(lines) if line.startswith("Current thread")), len(lines))
    frames = []
    for line in lines[start + 1 :]:
        found = _CRASHED.match(line)
        if found is None:
            break
        if not _OURS.search(found["file"]):
            frames.append(_frame(found, linecache.getline(found["file"], int(found["line"])).strip()))
    return Failure("", say("hint-crash"), tuple(reversed(frames))) if frames else None


def _frame(found: re.Match[str], code: str) -> Frame:
    file = found["file"]
    return Frame(file, int(found["line"]), found["function"] or "", code, not _LIBRARY.search(file))


def _read_syntax_error(lines: Sequence[str]) -> Failure | None:
    """A syntax error of the script itself comes without the usual heading."""
    for index in range(len(lines) - 1, -1, -1):
        if re.match(r"^(SyntaxError|IndentationError|TabError): ", lines[index]):
            for above in range(index - 1, max(-1, index - 6), -1):
                found = _FRAME.match(lines[above])
                if found:
                    return Failure(_shown(lines[index]), "", (_frame(found, lines[above + 1].strip()),))
            return Failure(_shown(lines[index]))
    return None


def _shown(text: str) -> str:
    """A line as a terminal shows it, without what would steer the one where it is repeated."""
    plain = _ESCAPE.sub("", text)
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in plain)


# Pattern of an error's text -> what to do. The first that fits is taken.
_HINTS: tuple[tuple[str, str], ...] = (
    (r"CUDA out of memory|OutOfMemoryError|CUDNN_STATUS_ALLOC_FAILED", "hint-gpu-memory"),
    (r"\bMemoryError\b|can't allocate memory|Cannot allocate memory", "hint-memory"),
    # Kineto adds "If you see CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, refer to ..." whatever the error was.
    (r"(?<!you see )CUPTI_ERROR_(?:VIRTUALIZED_DEVICE_)?INSUFFICIENT_PRIVILEGES", "hint-privileges"),
    (
        r"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS|profiler already enabled|Profiler is already enabled",
        "hint-subscriber",
    ),
    (r"CUPTI initialization failed", "hint-cupti"),
    (r"attempted relative import with no known parent package", "hint-package"),
    (r"EOFError: EOF when reading a line", "hint-input"),
    (r"CUDA error: (an illegal memory access|device-side assert)", "hint-kernel"),
    (r"CUDA driver version is insufficient|no kernel image is available", "hint-driver"),
    (r"Found no NVIDIA driver", "hint-driverless"),
    (r"Torch not compiled with CUDA enabled", "hint-cpu-build"),
    (r"No space left on device", "hint-disk"),
    (r"InvalidCxxCompiler|No working C\+\+ compiler found|Failed to find C compiler", "hint-compiler"),
    (r"TritonMissing|Cannot find a working triton installation", "hint-triton"),
    (r"DataLoader worker .* (killed|exited)|bus error.*shared memory", "hint-worker"),
)


def hint_for(title: str, text: str = "") -> Sentence | None:
    """What to do about an error, judged by its message (and the output around it); None where nothing is known."""
    missing = re.match(r"(?:ModuleNotFoundError|ImportError): No module named '([\w.]+)'", title)
    if missing:
        return say("hint-module", package=missing[1].partition(".")[0])
    for pattern, key in _HINTS:
        if re.search(pattern, title) or (text and re.search(pattern, text)):
            return say(key)
    return None


def exit_in_words(status: int) -> Sentence:
    """An exit status as one or two sentences; negative numbers are signals, as ``subprocess`` has them."""
    if status == 0:
        return say("ended-normally")
    if status > 0:
        return say("ended-status", status=status)
    try:
        name = signal.Signals(-status).name
    except ValueError:
        return say("ended-signal", number=-status)
    told = say("ended-killed" if name in ("SIGKILL", "SIGTERM") else "ended-named", number=-status, name=name)
    return joined(told, say(name)) if name in TEMPLATES else told
