"""A picture that is kept while what it shows stays, and not made while it changes with every frame."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPointF, QRectF, QSize
from PySide6.QtGui import QPainter, QPixmap

SPARE_PX = 128  # by which the picture is larger than what it shows, device pixels: a window may be made larger

Key = tuple[object, ...]


def _on_whole_pixels(painter: QPainter) -> bool:
    """Whether what is drawn straight looks as it does in a picture: its origin lies on a border of device pixels.

    At a scale of the screen like 1.25 a widget may begin inside one.
    """
    at = painter.deviceTransform()
    return all(abs(px - round(px)) < 1e-3 for px in (at.dx(), at.dy()))


class Still:
    """Paints something straight the first time, from a picture when the same is wanted again.

    A view in motion is thus drawn once a frame instead of drawn and copied; one at rest under a moving pointer is
    only copied.
    """

    def __init__(self) -> None:
        self._picture: QPixmap | None = None
        self._held: Key = ()  # what the picture shows
        self._last: Key = ()  # what was painted last

    def forget(self) -> None:
        """What was painted last is no longer what the same key stands for, or was not finished."""
        self._held = self._last = ()

    def paint(self, painter: QPainter, key: Key, size: QSize, ratio: float, draw: Callable[[QPainter], None]) -> None:
        """Paint what ``key`` stands for over ``size`` px, each ``ratio`` device pixels; ``draw`` draws it."""
        key = (*key, size.width(), size.height(), ratio)
        if key != self._held:
            if key != self._last and _on_whole_pixels(painter):
                self._last = key
                draw(painter)
                return
            self._picture, self._held = self._make(size, ratio, draw), key
        if self._picture is not None:
            pixels = size * ratio
            painter.drawPixmap(QPointF(0, 0), self._picture, QRectF(0, 0, pixels.width(), pixels.height()))

    def _make(self, size: QSize, ratio: float, draw: Callable[[QPainter], None]) -> QPixmap:
        pixels = size * ratio
        picture = self._picture
        if (
            picture is None
            or picture.width() < pixels.width()
            or picture.height() < pixels.height()
            or (picture.width() > pixels.width() + 2 * SPARE_PX or picture.height() > pixels.height() + 2 * SPARE_PX)
        ):
            picture = QPixmap(pixels + QSize(SPARE_PX, SPARE_PX))
        picture.setDevicePixelRatio(ratio)
        painter = QPainter(picture)
        draw(painter)
        painter.end()
        return picture
