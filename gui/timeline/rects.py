"""Numpy -> ``QPainter.drawRects``, ``drawPixmapFragments``: the only user of pyqtgraph's internals.

Drawing 20,000 rectangles from a list of ``QRectF`` built in Python costs 50 ms; handed over as an array by address
10 ms as ``QRectF`` and 6 ms as ``QRect``, which Qt fills without a rasteriser (measured, Qt 6.11, raster engine).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QColor, QPainter, QPixmap

F64 = NDArray[np.float64]
MOST_MOVES = 8  # addresses that are tried for an array


def _internals() -> Any:
    """`wrapinstance`, without pyqtgraph's plots and widgets, which nothing here uses.

    These are 130 modules, 13 MB and the time of ten frames. The package stands empty in its place meanwhile; whoever
    imports it later gets it whole.
    """
    name, found = "pyqtgraph.Qt.compat", find_spec("pyqtgraph")
    if "pyqtgraph" not in sys.modules and found is not None and found.submodule_search_locations:
        bare = sys.modules["pyqtgraph"] = ModuleType("pyqtgraph")
        bare.__path__ = list(found.submodule_search_locations)
        try:
            return import_module(name).wrapinstance
        except Exception:  # noqa: BLE001, S110 - another version, which wants to be whole
            pass
        finally:
            for loaded in [n for n in sys.modules if n == "pyqtgraph" or n.startswith("pyqtgraph.")]:
                del sys.modules[loaded]
    return import_module(name).wrapinstance


wrapinstance = _internals()


class RectBatch:
    """Rectangles collected over a frame and drawn with one call per colour."""

    def __init__(self) -> None:
        self._parts: list[tuple[F64, F64, F64, F64, NDArray[np.int32]]] = []

    def add(self, x: F64, y: F64, width: F64, height: F64, colour: NDArray[np.int32]) -> None:
        """Add ``n`` rectangles, px; ``colour`` is the caller's key of each."""
        if len(x):
            self._parts.append((x, y, width, height, colour))

    def draw(self, painter: QPainter, colour_of: Callable[[int], QColor]) -> int:
        """Draw and forget all; returns the number of rectangles."""
        if not self._parts:
            return 0
        x, y, width, height, keys = (np.concatenate([part[i] for part in self._parts]) for i in range(5))
        self._parts.clear()
        order = np.argsort(keys.astype(np.int16), kind="stable")  # 16 bit: sorted by radix, several times faster
        key = keys[order]
        table = _pixels(x, y, width, height)[order]
        border = np.concatenate(([0], np.flatnonzero(key[1:] != key[:-1]) + 1, [len(key)]))
        painter.setPen(Qt.PenStyle.NoPen)
        for a, b in zip(border[:-1].tolist(), border[1:].tolist(), strict=True):
            painter.setBrush(colour_of(int(key[a])))
            _draw(painter, table[a:b])
        return len(key)


def _pixels(x: Any, y: Any, width: Any, height: Any) -> NDArray[np.int32]:
    """Borders of `QRect` (left, top, right, bottom, the last two inside): rounded, at least one pixel each way."""
    table = np.empty((len(x), 4), np.int32)
    table[:, 0] = np.floor(x + 0.5)
    table[:, 1] = np.floor(y + 0.5)
    table[:, 2] = np.maximum(np.floor(x + width + 0.5) - 1, table[:, 0])
    table[:, 3] = np.maximum(np.floor(y + height + 0.5) - 1, table[:, 1])
    return table


def _first(table: NDArray[Any], kind: type) -> tuple[Any, NDArray[Any]]:
    """The first row as an object of Qt's, and the table that it stands in, which has to live as long."""
    kept: list[NDArray[Any]] = []
    first = wrapinstance(table.ctypes.data, kind)
    while not isinstance(first, kind) and len(kept) < MOST_MOVES:
        kept.append(table)  # Python still knows an object of Qt's that stood at this address: another one is needed
        table = table.copy()
        first = wrapinstance(table.ctypes.data, kind)
    return first, table


def _draw(painter: QPainter, table: NDArray[np.int32]) -> None:
    first, table = _first(table, QRect)
    painter.drawRects(first, len(table))


def draw_rects(painter: QPainter, rows: F64) -> None:
    """Draw float64[n, 4] rectangles (x, y, width, height), px, with the painter's brush."""
    if len(rows):
        _draw(painter, _pixels(rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3]))


def draw_fragments(painter: QPainter, pixmap: QPixmap, target: F64, source: F64, scale: float) -> None:
    """Draw pieces of a pixmap: ``target`` float64[n, 2] centres, px; ``source`` float64[n, 4] in its own pixels."""
    n = len(target)
    if not n:
        return
    table: NDArray[Any] = np.empty((n, 10), np.float64)
    table[:, 0:2] = target
    table[:, 2:6] = source
    table[:, 6:8] = scale
    table[:, 8] = 0.0
    table[:, 9] = 1.0
    first, table = _first(table, QPainter.PixmapFragment)
    painter.drawPixmapFragments(first, n, pixmap)  # type: ignore[call-arg]
