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
from core.trace import Trace
from gui import text
from gui.timeline.frame import Frame
from gui.timeline.layout import Row
from gui.timeline.palette import blend
from gui.timeline.rects import draw_rects


@dataclass(eq=False)
class Series:
    """Step function: ``value[i]`` holds from ``time_ns[i]`` on; 0 before the first."""

    time_ns: NDArray[np.int64]
    value: NDArray[np.float64]
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
        self._series: dict[tuple[str, int], Series | None] = {}

    @cached_property
    def working(self) -> tuple[int, ...]:
        """Devices that did something, worked out once from all slices."""
        tracks = np.unique(self.trace.slices.track_id[self.trace.device_ids])
        return tuple(sorted({int(d) for d in self.trace.tracks.device[tracks]}))

    def busy(self, device: int) -> Lane:
        """Union of a device's work."""
        if device not in self._busy:
            self._busy[device] = device_lane(self.trace, device)
        return self._busy[device]

    def series(self, row: Row, figures: Figures | None) -> Series | None:
        """Series of a counter row; None when it is not known (yet)."""
        key = (row.key, id(figures) if row.key == "queue" else 0)
        if key not in self._series:
            self._series[key] = self._make(row, figures)
        return self._series[key]

    def reserved(self, device: int) -> Series | None:
        """Memory that the allocator holds, None where the trace does not say."""
        key = (f"reserved/{device}", 0)
        if key not in self._series:
            self._series[key] = self._memory(device, self.trace.memory.reserved_bytes)
        return self._series[key]

    def _make(self, row: Row, figures: Figures | None) -> Series | None:
        if row.key.startswith("memory/"):
            return self._memory(row.device, self.trace.memory.allocated_bytes) or self._running(row.device)
        if row.key == "queue":
            if figures is None or not len(figures.queue_time_ns):
                return None
            depth = figures.queue_depth.astype(np.float64)
            return Series(figures.queue_time_ns, depth, float(depth.max()), "count")
        counter = self.trace.counters[int(row.key.split("/")[1])]
        if not len(counter.time_ns):
            return None
        return Series(counter.time_ns, counter.value, float(counter.value.max()), "number")

    def _memory(self, device: int, totals: NDArray[np.int64]) -> Series | None:
        at = np.flatnonzero((self.trace.memory.device == device) & (totals >= 0))
        if not len(at):
            return None
        value = totals[at].astype(np.float64)
        return Series(self.trace.memory.time_ns[at], value, float(value.max()), "bytes")

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


def paint_counter(painter: QPainter, frame: Frame, data: CounterData, row: Row) -> None:
    """Draw one counter row's curve."""
    top, height = frame.row_y(row) + 4, row.height - 7
    view = frame.document.viewport
    edges = np.linspace(frame.start_ns, frame.end_ns, frame.columns + 1).astype(np.int64)
    inside = np.flatnonzero((edges[1:] > view.first_ns) & (edges[:-1] < view.last_ns))
    if not len(inside):
        return
    edges = edges[inside[0] : inside[-1] + 2]
    x = np.asarray(frame.left_px + inside * (frame.lanes_px / frame.columns), np.float64)
    if row.key.startswith("busy/"):
        share = coverage(data.busy(row.device), edges)
        _curve(painter, frame, x, share, 1.0, top, height, frame.palette.good)
        return
    series = data.series(row, frame.figures)
    if series is None:
        return
    colour = frame.palette.accent if series.unit == "bytes" else frame.palette.warn
    peak = max(series.peak, 1e-9)
    held = data.reserved(row.device) if row.key.startswith("memory/") else None
    if held is not None:
        peak = max(peak, held.peak)
        _line(painter, frame, x, held.largest(edges), peak, top, height, frame.palette.muted)
    _curve(painter, frame, x, series.largest(edges), peak, top, height, colour)


def _heights(values: NDArray[np.float64], peak: float, top: float, height: float) -> NDArray[np.float64]:
    return top + height - np.clip(values / peak, 0.0, 1.0) * height


def _line(
    painter: QPainter,
    frame: Frame,
    x: NDArray[np.float64],
    values: NDArray[np.float64],
    peak: float,
    top: float,
    height: float,
    colour: QColor,
) -> None:
    """Broken line: every other pair of columns."""
    y = _heights(values, peak, top, height)
    shown = (np.arange(len(y)) % 4 < 2) & (values > 0)
    width = frame.lanes_px / frame.columns
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    draw_rects(painter, np.column_stack((x, y, np.full(len(x), width), np.ones(len(x))))[shown])


def _curve(
    painter: QPainter,
    frame: Frame,
    x: NDArray[np.float64],
    values: NDArray[np.float64],
    peak: float,
    top: float,
    height: float,
    colour: QColor,
) -> None:
    """Area with a line on top, as columns: filling rectangles is ten times cheaper than stroking a path."""
    if not len(x):
        return
    y = np.round(_heights(values, peak, top, height))
    run = np.flatnonzero(np.concatenate(([True], y[1:] != y[:-1])))  # level stretches are one rectangle
    left, level = x[run], y[run]
    width = np.append(left[1:], x[-1] + frame.lanes_px / frame.columns) - left
    base = float(top + height)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(blend(colour, frame.palette.lanes, 0.28))
    draw_rects(painter, np.column_stack((left, level, width, base - level))[level < base])
    before = np.concatenate((level[:1], level[:-1]))
    rise = np.abs(level - before)
    flat = np.column_stack((left, level, width, np.ones(len(left))))
    steep = np.column_stack((left, np.minimum(level, before), np.ones(len(left)), rise))[rise > 1]
    painter.setBrush(colour)
    draw_rects(painter, np.concatenate((flat, steep)))
