"""Painting that survives its own faults."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from PySide6.QtGui import QPainter, QPaintEvent


def guarded(paint: Callable[[Any, QPaintEvent], None]) -> Callable[[Any, QPaintEvent], None]:
    """Wrap a ``paintEvent`` so that an exception in it is reported, and the picture left as far as it came.

    A traceback keeps the painters of its frames open, and Qt takes the process down when a paint event ends with one:
    they are closed here, innermost first, before the error goes where every uncaught one goes (`sys.excepthook`).
    """

    @functools.wraps(paint)
    def painted(self: Any, event: QPaintEvent) -> None:
        try:
            paint(self, event)
        except Exception as error:
            _close_painters(error)
            sys.excepthook(type(error), error, error.__traceback__)

    return painted


def _close_painters(error: BaseException) -> None:
    frames, trace = [], error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    for frame in reversed(frames):
        for held in tuple(frame.f_locals.values()):
            if isinstance(held, QPainter) and held.isActive():
                held.end()
