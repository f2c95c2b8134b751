"""Running a piece of Python in a process of its own, and measuring wall time, CPU time and memory of its whole tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Sample:
    """One run. ``seconds`` is what the script itself measured; ``peak_bytes`` counts shared pages once (PSS)."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    extra: dict[str, float]


class Missing(Exception):
    """The script could not run: a package is not installed."""


def run(script: str, *arguments: str, python: str = sys.executable, timeout_s: float = 900) -> Sample:
    """Run a script that prints one JSON object with ``seconds`` (and whatever else) as its last line."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [python, "-c", script, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True
    )
    peak = [0]
    stop = threading.Event()
    watcher = threading.Thread(target=watch, args=(process.pid, peak, stop))
    watcher.start()
    before = os.times()
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Missing(f"gave up after {timeout_s:.0f} s") from None
    finally:
        stop.set()
        watcher.join()
    after = os.times()
    if process.returncode:
        raise Missing((err.strip().splitlines() or ["failed"])[-1][:120])
    values = json.loads(out.strip().splitlines()[-1])
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Sample(values.pop("seconds"), cpu, peak[0], values)


def watch(pid: int, peak: list[int], stop: threading.Event) -> None:
    """Keep the largest memory of a process and all below it in ``peak[0]``, until told to stop."""
    while not stop.wait(0.03):
        peak[0] = max(peak[0], memory_bytes(tree(pid)))


def memory_bytes(pids: list[int]) -> int:
    """Memory of these processes together: their PSS, but nameless shared memory whole and once.

    The PSS holds only such of its pages as a process has looked at.
    """
    nameless: dict[str, int] = {}
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            if "/memfd:" in line or "/dev/zero" in line:
                span, _, _, _, inode = line.split()[:5]
                start, end = (int(text, 16) for text in span.split("-"))
                nameless[inode] = max(nameless.get(inode, 0), end - start)
    return sum(map(_pss, pids)) + sum(nameless.values())


def tree(pid: int) -> list[int]:
    """Return a process and all below it."""
    found, todo = [], [pid]
    while todo:
        one = todo.pop()
        found.append(one)
        try:
            tasks = list(Path(f"/proc/{one}/task").glob("*/children"))
        except OSError:  # it has ended meanwhile
            continue
        for task in tasks:
            try:
                todo += map(int, task.read_text().split())
            except OSError:
                continue
    return found


def tree_cpu_seconds(pids: list[int]) -> float:
    """Processor time of these processes, children that have ended included."""
    ticks = 0
    for pid in pids:
        try:
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
        except OSError:
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


def _pss(pid: int) -> int:
    """Proportional set size without shared memory, bytes."""
    found = 0
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                found += int(line.split()[1]) * 1024
            elif line.startswith("Pss_Shmem:"):
                found -= int(line.split()[1]) * 1024
    except OSError:
        pass
    return found


def machine() -> str:
    """The machine and versions in one line."""
    import msgspec
    import numpy
    import orjson

    cores = os.cpu_count()
    load = f"{time.strftime('%Y-%m-%d')}, load average {os.getloadavg()[0]:.1f}"
    return (
        f"{cores}-core {os.uname().machine}, Python {sys.version.split()[0]}, numpy {numpy.__version__}, "
        f"msgspec {msgspec.__version__}, orjson {orjson.__version__}; {load}"
    )
