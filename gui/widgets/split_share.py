"""The last part of a splitter keeps its proportion: what a small window takes from it, a larger one gives back."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QByteArray, QDataStream, QIODevice, QObject
from PySide6.QtWidgets import QSplitter

MOST_SHARE = 0.75
LEAST_RATIO, MOST_RATIO = 0.25, 4.0


class SplitShare(QObject):
    """Its size is counted as a multiple of the usual one for the room that there is; 1 until the user drags the handle.

    Parameters
    ----------
    splitter
        Of two parts.
    usual
        Usual size of the last part, px, of both parts' room, px.
    """

    def __init__(self, splitter: QSplitter, usual: Callable[[int], int]) -> None:
        super().__init__(splitter)
        self._splitter, self._usual = splitter, usual
        self.ratio = 1.0
        splitter.splitterMoved.connect(self._dragged)

    def restore(self, saved: QByteArray) -> bool:
        """Take over the proportion of a state that `QSplitter.saveState` gave; False where there is none in it."""
        stream = QDataStream(saved, QIODevice.OpenModeFlag.ReadOnly)
        _marker, _version, count = (stream.readInt32() for _ in range(3))
        if stream.status() != QDataStream.Status.Ok or count != 2:
            return False
        sizes = [stream.readInt32() for _ in range(count)]
        room = sum(sizes)
        if stream.status() != QDataStream.Status.Ok or min(sizes) <= 0 or self._usual(room) <= 0:
            return False
        self.ratio = self._within(sizes[-1] / self._usual(room))
        return True

    def give(self, room_px: int) -> None:
        """Share out so much room."""
        last = min(round(self.ratio * self._usual(room_px)), round(MOST_SHARE * room_px))
        self._splitter.setSizes([room_px - last, last])

    def _dragged(self, _place: int, _handle: int) -> None:
        sizes = self._splitter.sizes()
        if min(sizes) > 0:
            self.ratio = self._within(sizes[-1] / max(self._usual(sum(sizes)), 1))

    @staticmethod
    def _within(ratio: float) -> float:
        return min(max(ratio, LEAST_RATIO), MOST_RATIO)
