"""Analysing a trace, stage by stage, next to opening it in the same run.

    python -m benchmarks analysis [--events 20000 200000] [--trace FILE ...] [--repeat 3]

Two openings are told side by side. *Tables*: the file is read without cache, as commands do, and nothing is drawn; in
a process of its own, after a small generated trace that warms imports and caches up, and analysed there. *Painted*: the
file is opened in a window that stands open (offscreen, 1600 x 1000), up to the first frame of its timeline; also in a
process of its own, in turns with the other, in which nothing is analysed and no other process reads. The best of the
repeats counts for each figure. CPU time is that of the process and of the workers that help with opening.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.generate import write_trace
from benchmarks.measure import Missing, Sample, machine, run
from benchmarks.window import spin, standing_window

STAGES = ("load", "figures", "rules", "pricing")
FIGURES_AND_PRICING, RULES = 0.25, 0.25  # budgets, as shares of the time to load
LIMIT_S = 120.0
_COLUMNS = (
    "trace", "slices", "fixes", "figures ms", "rules ms", "pricing ms", "tables ms", "figures + pricing", "rules",
    "painted ms", "figures + pricing", "rules", "over 0.25",
)  # fmt: skip

_SCRIPT = """
import gc, json, resource, sys, time
from pathlib import Path
from core.analysis import analyze
from core.importing import open_trace
def now():
    use = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in use), time.perf_counter()
def measure(path):
    gc.collect()
    marks = [now()]
    trace = open_trace(path)
    marks.append(now())
    last = analyze(trace, on_partial=lambda partial: marks.append(now()))
    marks.append(now())
    return trace, last, marks
measure(Path(sys.argv[1]))
trace, analysis, marks = measure(Path(sys.argv[2]))
values = {"seconds": marks[-1][1] - marks[0][1], "slices": len(trace.slices), "fixes": sum(bool(s.effects) for s in
analysis.suggestions)}
for name, (cpu, wall), (cpu_to, wall_to) in zip(sys.argv[3].split(), marks, marks[1:]):
    values[name] = cpu_to - cpu
    values[name + "_wall"] = wall_to - wall
print(json.dumps(values))
"""


_WINDOW = "import sys; from benchmarks.analysis import open_in_window; open_in_window(sys.argv[1])"


def open_in_window(path: str) -> None:
    """Open a trace in a window that stands open, and print what it took to the first painted frame, as JSON."""
    from PySide6.QtCore import QEvent, QObject, QTimer
    from PySide6.QtWidgets import QApplication, QWidget

    from gui import helpers, warmup

    window = standing_window()
    warmup.finish()
    spin(0.5)
    # The opening alone, and all of it in this process: one that helps would begin with the figures at once.
    setattr(window.opener, "analyze", lambda document: None)  # noqa: B010
    setattr(helpers, "take", lambda progress, start_one=False: None)  # noqa: B010
    done: list[tuple[float, float]] = []

    class Filter(QObject):
        def eventFilter(self, target: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
            is_canvas = event.type() == QEvent.Type.Paint and type(target).__name__ == "Canvas"
            if is_canvas and isinstance(target, QWidget) and target.isVisible():
                QTimer.singleShot(0, lambda: done.append(_now()))  # when the event that is at work has been dealt with
            return False

    watch = Filter()
    QApplication.instance().installEventFilter(watch)
    cpu, wall = _now()
    window.session.open([Path(path)])
    end = time.perf_counter() + LIMIT_S
    while not done and time.perf_counter() < end:
        spin(0.005)
    print(json.dumps({"seconds": done[0][1] - wall, "painted": done[0][0] - cpu, "painted_wall": done[0][1] - wall}))
    sys.stdout.flush()
    os._exit(0)


def _now() -> tuple[float, float]:
    """CPU time of this process and of those that it has waited for; and the time by the clock: s."""
    use = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in use), time.perf_counter()


def main(arguments: list[str]) -> None:
    """Print a line for each trace, with the shares of both openings."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks analysis")
    parser.add_argument("--events", type=int, nargs="*", default=[20_000, 200_000], help="sizes of generated traces")
    parser.add_argument("--trace", type=Path, nargs="*", default=[], help="real traces to measure as well")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args(arguments)
    os.environ["STEPLENS_CACHE"] = ""  # every opening is the first
    print(machine())
    print(f"\n| {' | '.join(_COLUMNS)} |\n{'|---' * len(_COLUMNS)}|")
    with tempfile.TemporaryDirectory(prefix="steplens-bench-") as text:
        small = Path(text) / "small.json"
        with small.open("wb") as file:
            write_trace(file, 5_000)
        for events in options.events:
            path = Path(text) / f"{events}.json"
            with path.open("wb") as file:
                write_trace(file, events)
            _report(f"{events:,} events (generated)", small, path, options.repeat)
            path.unlink()
        for trace in options.trace:
            _report(trace.name.split(".")[0], small, trace, options.repeat)
    print(
        "\nTimes and shares are of CPU time; by the clock behind the slash. Shares are of the time before them: to the "
        "tables, or to the first painted frame. Wanted: figures and pricing together at most "
        f"{FIGURES_AND_PRICING}, rules at most {RULES}. The last column tells what is over it in CPU time."
    )


def _report(title: str, small: Path, path: Path, repeat: int) -> None:
    samples: list[Sample] = []
    for _ in range(repeat):
        try:
            samples.append(run(_SCRIPT, str(small), str(path), " ".join(STAGES)))
            samples.append(run(_WINDOW, str(path), timeout_s=2 * LIMIT_S))
        except Missing as error:
            print(f"| {title} | not measured: {error} |", flush=True)
            return
    best: dict[str, float] = {}
    for sample in samples:
        best.update({name: min(value, best.get(name, value)) for name, value in sample.extra.items()})
    cells: list[Any] = [title, f"{best['slices']:,.0f}", f"{best['fixes']:.0f}"]
    cells += [f"{1e3 * best[name]:.1f}" for name in STAGES[1:]]
    missed = []
    for opening, name in (("load", "tables"), ("painted", "painted")):
        both, rules = _shares(best, opening, ("figures", "pricing")), _shares(best, opening, ("rules",))
        cells += [f"{1e3 * best[opening]:.1f} / {1e3 * best[f'{opening}_wall']:.1f}"]
        cells += [f"{cpu:.2f} / {wall:.2f}" for cpu, wall in (both, rules)]
        over = [f"{what} of {name}" for what, (cpu, _), most in (
            ("figures", both, FIGURES_AND_PRICING), ("rules", rules, RULES)
        ) if cpu > most]  # fmt: skip
        missed += over
    print(f"| {' | '.join(cells)} | {', '.join(missed) or '-'} |", flush=True)


def _shares(best: dict[str, float], opening: str, stages: tuple[str, ...]) -> tuple[float, float]:
    """Share of some stages in an opening: in CPU time, and by the clock."""
    cpu = sum(best[stage] for stage in stages) / best[opening]
    return cpu, sum(best[f"{stage}_wall"] for stage in stages) / best[f"{opening}_wall"]


if __name__ == "__main__":
    main(sys.argv[1:])
