"""Regular expressions that may go on for ever, looked for in a process of their own, which can be ended.

Python's `re` tries all ways in which repetitions can share a name among them, and lets no other thread run meanwhile:
the window would stand still.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from PySide6.QtCore import QCoreApplication

from core.errors import TraceError

LIMIT_S = 5.0
_LOOK_S = 0.05  # how often is looked whether the search was called off
_MANY = 3  # repetitions in a row, in names of thousands of characters


class NotSearched(TraceError):
    """A pattern was not looked for to the end, which is no fault of how it is written."""


_CODE = """
import json, re, sys
pattern, flags, names = json.load(sys.stdin)
fits = re.compile(pattern, flags).search
json.dump([at for at, name in enumerate(names) if fits(name)], sys.stdout)
"""


def may_go_on(pattern: str) -> bool:
    """Whether a group is repeated, or much else: only then can a search take longer than a look at each name."""
    return re.search(r"\)[*+{]", pattern) is not None or len(re.findall(r"[*+]|,\}", pattern)) >= _MANY


def fitting(pattern: str, flags: int, names: Sequence[str], tick: Callable[[], object]) -> list[int]:
    """Return the places of the names in which a pattern is found.

    Parameters
    ----------
    pattern, flags
        As `re.compile` takes them.
    names
        Any texts.
    tick
        Called now and then; may raise.

    Raises
    ------
    NotSearched
        When it takes too long, or there can be no process.
    """
    try:
        return _fitting(json.dumps([pattern, flags, names]).encode(), tick)
    except (OSError, ValueError, MemoryError) as error:
        words = QCoreApplication.translate(
            "search", "The process that looks for such a pattern could not do it. Fewer repetitions need none."
        )
        raise NotSearched(words, str(error)) from error


def _fitting(content: bytes, tick: Callable[[], object]) -> list[int]:
    hidden = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # Windows would open one
    command = [sys.executable, "-I", "-S", "-c", _CODE]
    request: bytes | None = content
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing, creationflags=hidden) as process:
        end = time.monotonic() + LIMIT_S
        try:
            while time.monotonic() < end:
                tick()
                try:
                    answer, _ = process.communicate(request, _LOOK_S)
                except subprocess.TimeoutExpired:
                    request = None  # it is on its way
                    continue
                if process.returncode:
                    raise OSError(process.returncode, "The process that looks for a pattern has ended early")
                return [int(at) for at in json.loads(answer)]
        finally:
            process.kill()
    words = QCoreApplication.translate(
        "search", "This regular expression takes too long: a repetition in it stands within, or beside, another one."
    )
    raise NotSearched(words)
