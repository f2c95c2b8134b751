"""Ends a script whose launcher is gone: killed hard, it cannot end what it has started.

A small process waits at a pipe that ends with the launcher, however that ended. Neither a signal at the parent's death
(it is bound to the thread that started the script, not to the process) nor a thread in the script (which would no
longer be as if it ran alone) does the same.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from profiling.processes import WINDOWS, descendants, started_at

GRACE_SECONDS = 3.0  # between asking and killing
POLL_SECONDS = 0.05
_FINISHED = b"."
_GUARD = "import sys; sys.path.insert(0, sys.argv[1]); from profiling.lifeline import guard; guard(int(sys.argv[2]))"


class Lifeline:
    """The launcher's end of the pipe; without a process to watch at the other one, where none can be started.

    Parameters
    ----------
    pid
        The script's process, leader of a group of its own.
    """

    def __init__(self, pid: int) -> None:
        self._guard: subprocess.Popen[bytes] | None = None
        if WINDOWS:  # no groups of processes there
            return
        command = [sys.executable, "-I", "-S", "-c", _GUARD, str(Path(__file__).resolve().parents[1]), str(pid)]
        with contextlib.suppress(OSError, ValueError):
            self._guard = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, bufsize=0,
                start_new_session=True, cwd="/",
            )  # fmt: skip

    def let_go(self) -> None:
        """The script has ended: nothing is to be watched any more."""
        guard, self._guard = self._guard, None
        if guard is None or guard.stdin is None:
            return
        with contextlib.suppress(OSError):
            guard.stdin.write(_FINISHED)
        with contextlib.suppress(OSError):
            guard.stdin.close()
        try:
            guard.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            guard.kill()
            guard.wait()


def guard(pid: int) -> None:
    """Wait for the launcher's word or its end; after the latter end the process, its group and all it has started."""
    mark = started_at(pid)
    with contextlib.suppress(OSError):
        if os.read(0, 1) == _FINISHED:
            return
    if started_at(pid) != mark:
        return  # it has ended by itself
    seen: dict[int, str] = {}
    end = time.monotonic() + GRACE_SECONDS
    number = signal.SIGTERM
    while True:
        for root in {pid, *seen}:
            for child in descendants(root) - seen.keys():
                seen[child] = started_at(child)
        _send(pid, seen, number)
        living = [p for p, m in {pid: mark, **seen}.items() if m and started_at(p) == m]
        if number == signal.SIGKILL or not living:
            return
        while time.monotonic() < end and any(started_at(p) for p in living):
            time.sleep(POLL_SECONDS)
        number = signal.SIGKILL


def _send(pid: int, seen: dict[int, str], number: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, number)
    for child, mark in seen.items():
        if mark and started_at(child) == mark:
            with contextlib.suppress(OSError):
                os.kill(child, number)
