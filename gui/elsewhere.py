"""Which window runs a round: two windows of one machine may have the same script open."""

from __future__ import annotations

import os

from gui.opened import machine
from profiling.processes import started_at


def mark() -> str:
    """Name of this process, which no later one with the same number has."""
    pid = os.getpid()
    return f"{pid}-{machine()}-{started_at(pid)}"


def runs_elsewhere(by: str) -> bool:
    """Whether the process of a `mark` is another one that still runs; False where that cannot be told."""
    pid, _, rest = by.partition("-")
    where, _, began = rest.partition("-")
    if not pid.isdigit() or not began or where != machine() or int(pid) == os.getpid():
        return False
    return started_at(int(pid)) == began
