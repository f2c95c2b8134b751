"""Curves: device busy, memory, launch queue, and the counters that a trace brings along."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QColor, QPainter

from core.figures.model import Figures
from core.lanes import Lane, device_lane
from core.lod import coverage
from core.sets import distinct
from core.trace import Trace
from gui import text
from gui.timeline.frame import Frame
from gui.timeline.kept import PAD_SHARE
from gui.timeline.palette import blend
from gui.timeline.rects import draw_rects
from gui.timeline.row import Row


@dataclass(eq=False)
class Series:
    """Step function: ``value[i]`` holds from ``time_ns[i]`` on; 0 before the first."""

    time_ns: NDArray[np.int64]
    value: NDArray[np.float64] | NDArray[np.int32]
    peak: float
    unit: str  # "bytes", "count" or "number"

    def largest(self, edges_ns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Largest value in each bin between edges: float64[n - 1]. O(values in the window)."""
        position = np.searchsorted(self.time_ns, edges_ns, "right")
        first, last = position[:-1], position[1:]
        carried = np.where(first > 0, self.value[np.maximum(first - 1, 0)], 0.0)
        result = carried.copy()
        busy = np.flatnonzero(last > first)
        if len(busy):
            inside = self.value[: last[busy[-1]]]
            result[busy] = np.maximum(carried[busy], np.maximum.reduceat(inside, first[busy]))
        return result


class CounterData:
    """Series of one trace, made when a row first needs them."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._busy: dict[int, Lane] = {}
        self._series: dict[str, Series | None] = {}
        self._memory_times: dict[int, NDArray[np.int64]] = {}
        self._queue: tuple[NDArray[np.int32], Series] | None = None  # the column that it was made of
        self.kept: dict[str, Columns] = {}  # by key of the row

    @cached_property
    def working(self) -> tuple[int, ...]:
        """Devices that did something, worked out once from all slices."""
        tracks = distinct(self.trace.slices.track_id[self.trace.device_ids])
        return tuple(sorted({int(d) for d in self.trace.tracks.device[tracks]}))

    def busy(self, device: int) -> Lane:
        """Union of a device's work."""
        if device not in self._busy:
            self._busy[device] = device_lane(self.trace, device)
        return self._busy[device]

    def series(self, row: Row, figures: Figures | None) -> Series | None:
        """Series of a counter row; None when it is not known (yet)."""
        if row.key == "queue":
            return self._queued(figures)
        if row.key not in self._series:
            self._series[row.key] = self._make(row)
        return self._series[row.key]

    def reserved(self, device: int) -> Series | None:
        """Memory that the allocator holds, None where the trace does not say."""
        key = f"reserved/{device}"
        if key not in self._series:
            self._series[key] = self._memory(device, self.trace.memory.reserved_bytes)
        return self._series[key]

    def _queued(self, figures: Figures | None) -> Series | None:
        """Depth of the launch queue, made once for all stages of a diagnosis that share its column."""
        if figures is None or not len(figures.queue_time_ns):
            return None
        kept, column = self._queue, figures.queue_depth
        if kept is None or kept[0] is not column:
            kept = self._queue = column, Series(figures.queue_time_ns, column, float(column.max()), "count")
        return kept[1]

    def _make(self, row: Row) -> Series | None:
        if row.key.startswith("memory/"):
            return self._memory(row.device, self.trace.memory.allocated_bytes) or self._running(row.device)
        counter = self.trace.counters[int(row.key.split("/")[1])]
        if not len(counter.time_ns):
            return None
        return Series(counter.time_ns, counter.value, float(counter.value.max()), "number")

    def _memory(self, device: int, totals: NDArray[np.int64]) -> Series | None:
        at = np.flatnonzero((self.trace.memory.device == device) & (totals >= 0))
        if not len(at):
            return None
        every = len(at) == len(totals)  # mostly: then the column of times serves as it is
        value = (totals if every else totals[at]).astype(np.float64)
        time = self.trace.memory.time_ns if every else self.trace.memory.time_ns[at]
        known = self._memory_times.setdefault(device, time)  # mostly those of all totals of a device
        time = known if np.array_equal(known, time) else time
        return Series(time, value, float(value.max()), "bytes")

    def _running(self, device: int) -> Series | None:
        """Running sum of allocations where the trace lacks totals: relative to the trace's start."""
        at = np.flatnonzero(self.trace.memory.device == device)
        if not len(at):
            return None
        value = np.cumsum(self.trace.memory.bytes[at]).astype(np.float64)
        value -= min(float(value.min()), 0.0)
        return Series(self.trace.memory.time_ns[at], value, float(value.max()), "bytes")


def _tr(words: str) -> str:
    return QCoreApplication.translate("timeline", words)


def subtitle(data: CounterData, frame: Frame, row: Row) -> str:
    """What stands under a counter's name: the figure of the visible window, or its peak."""
    if row.key.startswith("busy/"):
        edges = np.array([max(frame.start_ns, 0), max(frame.end_ns, 1)], np.int64)
        lo = max(int(frame.start_ns), int(frame.document.viewport.first_ns))
        hi = min(int(frame.end_ns), int(frame.document.viewport.last_ns))
        if hi <= lo:
            return ""
        edges = np.array([lo, hi], np.int64)
        share = float(coverage(data.busy(row.device), edges)[0]) * 100
        return _tr("{share} in view").format(share=text.percent(share))
    series = data.series(row, frame.figures)
    if series is None:
        return _tr("not known")
    if series.unit == "bytes":
        return _tr("peak {size}").format(size=text.size(series.peak))
    return _tr("at most {count}").format(count=text.count(series.peak))


@dataclass(eq=False)
class Columns:
    """Values of one row in bins of a fixed width, kept while the view moves inside their stretch."""

    key: tuple[object, ...]
    start_ns: float
    end_ns: float
    edges_ns: NDArray[np.int64]  # one more than values
    values: NDArray[np.float64]
    held: NDArray[np.float64] | None  # memory that the allocator holds
    peak: float


def columns(data: CounterData, frame: Frame, row: Row) -> Columns | None:
    """Values of a row's curve about the view, None where there is nothing to draw.

    Bins are absolute, about 2 px wide: a curve keeps its shape while the view moves.
    """
    key = (row.key, frame.bin_ns, id(frame.figures))
    kept = data.kept.get(row.key)
    if kept is not None and kept.key == key and kept.start_ns <= frame.start_ns and frame.end_ns <= kept.end_ns:
        return kept
    view, pad = frame.document.viewport, (frame.end_ns - frame.start_ns) * PAD_SHARE
    start, end = frame.start_ns - pad, frame.end_ns + pad
    first, last = max(start, view.first_ns), min(end, view.last_ns)
    bins = np.arange(first // frame.bin_ns, last // frame.bin_ns + 2, dtype=np.int64) * frame.bin_ns
    edges = np.clip(bins, int(view.first_ns), int(view.last_ns))
    edges = edges[np.append(True, edges[1:] > edges[:-1])]
    if len(edges) < 2:
        return None
    held = None
    if row.key.startswith("busy/"):
        values, peak = coverage(data.busy(row.device), edges), 1.0
    else:
        series = data.series(row, frame.figures)
        if series is None:
            return None
        values, peak = series.largest(edges), max(series.peak, 1e-9)
        reserved = data.reserved(row.device) if row.key.startswith("memory/") else None
        if reserved is not None:
            held, peak = reserved.largest(edges), max(peak, reserved.peak)
    data.kept[row.key] = made = Columns(key, start, end, edges, values, held, peak)
    return made


def paint_counter(painter: QPainter, frame: Frame, data: CounterData, row: Row) -> None:
    """Draw one counter row's curve."""
    made = columns(data, frame, row)
    if made is None:
        return
    lo, hi = np.searchsorted(made.edges_ns, (int(frame.start_ns), int(frame.end_ns) + 1))
    lo, hi = max(int(lo) - 1, 0), min(int(hi), len(made.values))
    if lo >= hi:
        return
    top, height = frame.row_y(row) + 4, row.height - 7
    x = np.asarray(frame.x(made.edges_ns[lo : hi + 1]), np.float64)
    if row.key.startswith("busy/"):
        colour = frame.palette.good
    else:
        series = data.series(row, frame.figures)
        in_bytes = series is not None and series.unit == "bytes"
        colour = frame.palette.accent if in_bytes else frame.palette.warn
    if made.held is not None:
        shown = (made.held[lo:hi] > 0) & (np.arange(lo, hi) % 4 < 2)  # every other pair of columns
        _line(painter, frame, x, _heights(made.held[lo:hi], made.peak, top, height), shown)
    _curve(painter, frame, x, _heights(made.values[lo:hi], made.peak, top, height), float(top + height), colour)


def _heights(values: NDArray[np.float64], peak: float, top: float, height: float) -> NDArray[np.float64]:
    return top + height - np.clip(values / peak, 0.0, 1.0) * height


def _line(
    painter: QPainter, frame: Frame, x: NDArray[np.float64], y: NDArray[np.float64], shown: NDArray[np.bool_]
) -> None:
    """Line over the columns that are shown. ``x``: borders of the columns, one more than ``y``."""
    at = np.flatnonzero(shown)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(frame.palette.muted)
    draw_rects(painter, np.column_stack((x[at], y[at], x[at + 1] - x[at], np.ones(len(at)))))


def _curve(
    painter: QPainter, frame: Frame, x: NDArray[np.float64], y: NDArray[np.float64], base: float, colour: QColor
) -> None:
    """Area with a line on top, as columns: filling rectangles is ten times cheaper than stroking a path."""
    y = np.round(y)
    run = np.flatnonzero(np.concatenate(([True], y[1:] != y[:-1])))  # level stretches are one rectangle
    left, level = x[run], y[run]
    width = np.append(left[1:], x[-1]) - left
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(blend(colour, frame.palette.lanes, 0.28))
    draw_rects(painter, np.column_stack((left, level, width, base - level))[level < base])
    before = np.concatenate((level[:1], level[:-1]))
    rise = np.abs(level - before)
    flat = np.column_stack((left, level, width, np.ones(len(left))))
    steep = np.column_stack((left, np.minimum(level, before), np.ones(len(left)), rise))[rise > 1]
    painter.setBrush(colour)
    draw_rects(painter, np.concatenate((flat, steep)))
