"""How long the window stands still while a trace is opened and diagnosed: gaps between the beats of a timer.

Budget: no gap over 50 ms on a quiet machine. Where others use the machine too, a gap also holds their time. So three
times are told, the worst gap of each kind: by the clock; what this program is to blame for, which is the GUI thread's
own work and such waiting (for the interpreter, mostly) as the other threads of the process had work meanwhile; and the
own work alone. Waiting for a free core (Linux tells it in ``/proc``) is nobody's fault here. A window that opens
nothing is the yardstick.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.window import spin, standing_window

BEAT_MS = 4
LONG_S = 0.05
LIMIT_S = 900.0
EVENTS_PER_MB = 5_000  # of `benchmarks.generate`, about


@dataclass
class Gap:
    """Time between two beats: by the clock, by what this program is to blame for, and of the GUI thread's own work."""

    at_s: float
    wall_s: float
    due_s: float  # of this program's doing, see above
    own_s: float
    stacks: Counter[str] = field(default_factory=Counter)


class Heart:
    """Beats in the GUI thread; a second thread notes what that thread does while a beat is late."""

    def __init__(self, watch: bool) -> None:
        from PySide6.QtCore import QTimer

        self.gaps: list[Gap] = []
        self._began = self._last = time.perf_counter()
        self._own, self._all, self._queued = time.thread_time(), time.process_time(), _queued_s()
        self._stacks: Counter[str] = Counter()
        self._main = threading.get_ident()
        self._stop = threading.Event()
        self._timer = QTimer()
        self._timer.timeout.connect(self._beat)
        self._timer.start(BEAT_MS)
        if watch:
            threading.Thread(target=self._watch, daemon=True).start()

    def _beat(self) -> None:
        now, own, everything, queued = time.perf_counter(), time.thread_time(), time.process_time(), _queued_s()
        wall, worked = now - self._last, own - self._own
        others = everything - self._all - worked
        waited = max(wall - worked - (queued - self._queued), 0.0)
        self.gaps.append(Gap(self._last - self._began, wall, worked + min(waited, others), worked, self._stacks))
        self._last, self._own, self._all, self._queued, self._stacks = now, own, everything, queued, Counter()

    def stop(self) -> None:
        self._timer.stop()
        self._stop.set()

    def _watch(self) -> None:
        while not self._stop.wait(0.008):
            if time.perf_counter() - self._last < LONG_S:
                continue
            frame, lines = sys._current_frames().get(self._main), []
            while frame is not None and len(lines) < 8:
                lines.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}")
                frame = frame.f_back
            self._stacks[" < ".join(lines)] += 1


def _queued_s() -> float:
    """Seconds for which this thread was ready to run and had no core; 0 where the system does not say."""
    try:
        with open("/proc/thread-self/schedstat", "rb", 0) as file:
            return int(file.read(64).split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):
        return 0.0


def measure(path: Path | None, watch: bool = False, helper: bool = True) -> list[Gap]:
    """Gaps while a window opens a trace to the end of the diagnosis; None opens nothing for two seconds."""
    from gui import helpers, jobs

    window = standing_window()
    if helper:
        helpers.start()
    heart = Heart(watch)
    if path is None:
        spin(2.0)
    else:
        window.session.open([path])
        end = time.perf_counter() + LIMIT_S
        while time.perf_counter() < end:
            spin(0.2)
            if not window.opener.busy and not jobs.busy():
                break
        spin(0.5)
    heart.stop()
    return heart.gaps


def report(name: str, gaps: list[Gap], stacks: bool) -> None:
    """Print one line, and the long gaps where asked for."""
    wall, due, own = (1e3 * max(getattr(g, what) for g in gaps) for what in ("wall_s", "due_s", "own_s"))
    over = sum(g.wall_s > LONG_S for g in gaps), sum(g.due_s > LONG_S for g in gaps)
    print(
        f"  {name:<24}{wall:>10.0f}{due:>12.0f}{own:>10.0f}{over[0]:>8}{over[1]:>8}{sum(g.wall_s for g in gaps):>10.1f}"
    )
    for gap in sorted(gaps, key=lambda g: -g.due_s)[: 8 if stacks else 0]:
        print(
            f"    {gap.wall_s * 1e3:.0f} ms ({gap.due_s * 1e3:.0f} due, {gap.own_s * 1e3:.0f} own) at {gap.at_s:.2f} s"
        )
        for line, count in gap.stacks.most_common(3):
            print(f"      {count} x {line}")


def _generated(folder: Path, size_mb: int) -> Path:
    from benchmarks.generate import write_trace

    path = folder / f"generated-{size_mb}MB.json"
    with path.open("wb") as file:
        write_trace(file, size_mb * EVENTS_PER_MB)
    return path


def _child(path: str, stacks: bool) -> int:
    """Measure in a process of its own: imports happen once per process."""
    import subprocess

    command = [sys.executable, "-m", "benchmarks", "freezes", "--one", path] + (["--stacks"] if stacks else [])
    with tempfile.TemporaryDirectory() as cache:
        return subprocess.run(command, env={**os.environ, "XDG_CACHE_HOME": cache}, check=False).returncode


def main(arguments: list[str] | None = None) -> int:
    """Print the worst gap for an idle window, a small, a 50 MB and a 400 MB trace."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks freezes", description=__doc__)
    parser.add_argument("traces", nargs="*", type=Path, help="traces of your own instead of generated ones")
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 400], metavar="MB")
    parser.add_argument("--stacks", action="store_true", help="say what the GUI thread did in the long gaps")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one is not None:
        path = Path(options.one) if options.one else None
        report(path.name if path else "nothing (yardstick)", measure(path, options.stacks), options.stacks)
        sys.stdout.flush()
        os._exit(0)  # worker processes and threads of the window end with it
    words = f"{'worst ms':>10}{'our doing':>12}{'own work':>10}{'> 50 ms':>8}{'of them':>8}{'seconds':>10}"
    print(f"  {'opened':<24}{words}", flush=True)
    _child("", options.stacks)
    for path in options.traces:
        _child(str(path), options.stacks)
    with tempfile.TemporaryDirectory() as folder:
        for size in [] if options.traces else options.sizes:
            _child(str(_generated(Path(folder), size)), options.stacks)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
