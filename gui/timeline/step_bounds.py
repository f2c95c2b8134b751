"""What bound a step, as colour and words: those of the budget bar above the timeline."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QColor

from core.figures.model import Figures
from core.figures.step_parts import (
    DEVICE,
    EXCHANGE,
    LEFT_OUT,
    LOADING,
    NOT_KNOWN,
    OPERATORS,
    REST,
    bounds_of_steps,
)
from core.kinds import GapCause, SliceKind
from gui import text, theme
from gui.timeline.palette import Palette, blend

SOFT = 0.9  # share of the bar's colour, the rest is the strip's ground
LEAST_SHARE = 0.005  # of a step: less of a part is not told

_bounds: WeakKeyDictionary[Figures, NDArray[np.uint8]] = WeakKeyDictionary()


def _tr(words: str) -> str:
    return QCoreApplication.translate("timeline", words)


def bounds_of(figures: Figures) -> NDArray[np.uint8]:
    """What bound each step, as `core.figures.step_parts.bounds_of_steps` says; worked out once."""
    if figures not in _bounds:
        _bounds[figures] = bounds_of_steps(figures)
    return _bounds[figures]


def bound_colour(bound: int, pal: Palette) -> QColor:
    """Colour of a bar: that of the part of the budget bar that it stands for."""
    if bound < len(GapCause):
        name = theme.gap_color(bound, pal.dark)
    elif bound in (LEFT_OUT, NOT_KNOWN):
        return pal.grey
    else:
        name = {
            DEVICE: theme.busy_color("computing", pal.dark),
            EXCHANGE: theme.busy_color("communication_only", pal.dark),
            OPERATORS: theme.slice_color(SliceKind.CPU_OP, pal.dark),
            LOADING: theme.gap_color(GapCause.LOADER, pal.dark),
            REST: theme.slice_color(SliceKind.PYTHON, pal.dark),
        }[bound]
    return blend(QColor(name), pal.strip, SOFT)


def bound_text(bound: int) -> str:
    """What a colour means, in the words of the budget bar."""
    if bound < len(GapCause):
        return _tr("idle: {cause}").format(cause=text.gap_cause(bound))
    return {
        DEVICE: _tr("the device was busy"),
        EXCHANGE: _tr("communication"),
        OPERATORS: _tr("operators"),
        LOADING: _tr("data loader"),
        REST: _tr("Python and the rest"),
        LEFT_OUT: _tr("left out of the means"),
    }.get(bound, _tr("use of the device not known"))


def parts_text(figures: Figures, step: int) -> list[str]:
    """Lines on the parts of a step's time on the device, the busy one first, then idling by cause, largest first."""
    parts = figures.step_parts
    if parts is None or parts.busy_ns[step] < 0:
        return []
    length = max(float(parts.length_ns[step]), 1.0)
    named = [(_tr("device busy"), float(parts.busy_ns[step]))]
    idle = parts.idle_ns[step]
    for cause in np.argsort(-idle, kind="stable").tolist():
        if idle[cause] >= LEAST_SHARE * length:
            named.append((_tr("device idle: {cause}").format(cause=text.gap_cause(cause)), float(idle[cause])))
    line = _tr("{part}: {time} ({share})")
    return [line.format(part=p, time=text.duration(ns), share=text.percent(100 * ns / length)) for p, ns in named]
