"""Numpy -> ``QPainter.drawRects``, ``drawPixmapFragments``: the only user of pyqtgraph's internals.

Drawing 20,000 rectangles from a list of ``QRectF`` costs 50 ms, from an array handed over by address under 4 ms.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from pyqtgraph.Qt.internals import PrimitiveArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPixmap

F64 = NDArray[np.float64]


class RectBatch:
    """Rectangles collected over a frame and drawn with one call per colour."""

    def __init__(self) -> None:
        self._parts: list[tuple[F64, F64, F64, F64, NDArray[np.int32]]] = []
        self._array = PrimitiveArray(QRectF, 4)

    def add(self, x: F64, y: F64, width: F64, height: F64, colour: NDArray[np.int32]) -> None:
        """Add ``n`` rectangles, px; ``colour`` is the caller's key of each."""
        if len(x):
            self._parts.append((x, y, width, height, colour))

    def draw(self, painter: QPainter, colour_of: Callable[[int], QColor]) -> int:
        """Draw and forget all; returns the number of rectangles."""
        if not self._parts:
            return 0
        columns = [np.concatenate([part[i] for part in self._parts]) for i in range(5)]
        self._parts.clear()
        key = columns[4].astype(np.int16)  # sorted by radix, several times faster
        order = np.argsort(key, kind="stable")
        key = key[order]
        self._array.resize(len(key))
        table = self._array.ndarray()
        for i in range(4):
            np.take(columns[i], order, out=table[:, i])
        border = np.concatenate(([0], np.flatnonzero(key[1:] != key[:-1]) + 1, [len(key)]))
        painter.setPen(Qt.PenStyle.NoPen)
        for a, b in zip(border[:-1].tolist(), border[1:].tolist(), strict=True):
            painter.setBrush(colour_of(int(key[a])))
            draw_rects(painter, table[a:b])
        return len(key)


_SCRATCH = PrimitiveArray(QRectF, 4)


def draw_rects(painter: QPainter, rows: F64) -> None:
    """Draw float64[n, 4] rectangles (x, y, width, height) with the painter's brush."""
    if not len(rows):
        return
    _SCRATCH.resize(len(rows))
    _SCRATCH.ndarray()[:] = rows
    painter.drawRects(*_SCRATCH.drawargs())


_FRAGMENTS = PrimitiveArray(QPainter.PixmapFragment, 10)


def draw_fragments(painter: QPainter, pixmap: QPixmap, target: F64, source: F64, scale: float) -> None:
    """Draw pieces of a pixmap: ``target`` float64[n, 2] centres, px; ``source`` float64[n, 4] in its own pixels."""
    n = len(target)
    if not n:
        return
    _FRAGMENTS.resize(n)
    table = _FRAGMENTS.ndarray()
    table[:, 0:2] = target
    table[:, 2:6] = source
    table[:, 6:8] = scale
    table[:, 8] = 0.0
    table[:, 9] = 1.0
    painter.drawPixmapFragments(*_FRAGMENTS.drawargs(), pixmap)  # type: ignore[call-arg]
