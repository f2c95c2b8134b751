"""Time axis: ticks with units a person can read, relative to the trace, the step or the selection."""

from __future__ import annotations

import math
from enum import Enum

import numpy as np
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter

from gui import text
from gui.timeline.labels import draw_text, slice_font
from gui.timeline.palette import Palette
from gui.timeline.rects import draw_rects

AXIS_PX = 24
TICK_PX = 100  # at least between two labels
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


class Origin(Enum):
    """What the axis counts from."""

    TRACE = "trace"
    STEP = "step"
    SELECTION = "selection"


def tick_step_ns(ns_per_px: float) -> float:
    """Distance of the labelled ticks: 1, 2 or 5 times a power of ten, at least `TICK_PX` apart."""
    least = max(ns_per_px * TICK_PX, 1e-3)
    power = 10.0 ** math.floor(math.log10(least))
    return next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= least * 0.999999)


def tick_text(time_ns: float, step_ns: float, width_ns: float) -> str:
    """Time of a tick in the unit that suits the visible width, with as many decimals as the step needs."""
    scale, unit = next((u for u in _UNITS if max(abs(width_ns), step_ns) >= u[0] * 0.9999), _UNITS[-1])
    decimals = max(0, math.ceil(-math.log10(step_ns / scale) - 1e-9))
    shown = round(time_ns / scale, decimals) + 0.0
    return f"{shown:,.{decimals}f}".replace(",", text.THIN).replace("-", "−") + text.THIN + unit


def ticks(start_ns: float, end_ns: float, origin_ns: float, ns_per_px: float) -> tuple[list[float], float]:
    """Times of the labelled ticks in a window (ns of the trace, not of the origin), and their distance."""
    step = tick_step_ns(ns_per_px)
    first = math.ceil((start_ns - origin_ns) / step)
    last = math.floor((end_ns - origin_ns) / step)
    return [origin_ns + i * step for i in range(first, min(last, first + 400) + 1)], step


def paint_axis(
    painter: QPainter,
    palette: Palette,
    rect: QRectF,
    window_ns: tuple[float, float],
    origin_ns: float,
) -> None:
    """Draw the ticks of ``[start, end)`` over ``rect``, px."""
    start, end = window_ns
    ns_per_px = (end - start) / max(rect.width(), 1)
    times, step = ticks(start, end, origin_ns, ns_per_px)
    painter.setFont(slice_font())
    painter.fillRect(QRectF(rect.left(), rect.bottom() - 1, rect.width(), 1), palette.line)
    minor = step / 5
    first, last = math.ceil((start - origin_ns) / minor), math.floor((end - origin_ns) / minor)
    small = origin_ns + np.arange(first, min(last, first + 2000) + 1) * minor
    x = np.round(rect.left() + (small - start) / ns_per_px)
    one = np.ones(len(x))
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(palette.line)
    draw_rects(painter, np.column_stack((x, one * (rect.bottom() - 4), one, one * 3)))
    farthest = max(abs(start - origin_ns), abs(end - origin_ns))
    at = np.round(rect.left() + (np.array(times) - start) / ns_per_px)
    one = np.ones(len(at))
    painter.setBrush(palette.dim)
    draw_rects(painter, np.column_stack((at, one * (rect.bottom() - 8), one, one * 7)))
    for time, x_px in zip(times, at.tolist(), strict=True):
        if x_px + TICK_PX - 4 <= rect.right() + 30:
            words = tick_text(time - origin_ns, step, min(farthest, (end - start) * 50))
            place = QRectF(x_px + 4, rect.top() + 2, TICK_PX, rect.height() - 8)
            draw_text(painter, place, words, palette.muted, elide=False)
