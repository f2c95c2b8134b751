"""Parts of the timeline that are painted by hand, in pixels that grow with the text size."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from gui.session import Session
from gui.timeline.frame import HeadingWidth, header_px


class Scaled(QWidget):
    """A widget that draws in its own pixels, each ``scale`` of Qt's wide: labels and rows grow together.

    What it draws and hit-tests is in its own pixels (`wide`, `high`, `inner`); only its place in the window is in Qt's.
    """

    scale = 1.0
    headings = HeadingWidth()  # nobody's own: the fitting one
    picture_scale = 0.0  # device pixels per pixel of Qt of the picture being made, 0: the screen's

    def follow_text_size(self, session: Session) -> None:
        """Take over the session's text size, now and whenever it changes."""
        self.scale = session.text_scale
        session.textSizeChanged.connect(self._text_size_changed)
        self._session_of_scale = session

    def _text_size_changed(self) -> None:
        self.scale = self._session_of_scale.text_scale
        self.rescaled()
        self.updateGeometry()
        self.update()

    def rescaled(self) -> None:
        """The text size has changed: set fixed sizes anew, drop kept pictures."""

    def outer(self, px: float) -> int:
        """Own pixels in Qt's."""
        return round(px * self.scale)

    def wide(self) -> int:
        """Width, own pixels; the last one may be cut."""
        return math.ceil(self.width() / self.scale)

    def high(self) -> int:
        """Height, own pixels; the last one may be cut."""
        return math.ceil(self.height() / self.scale)

    @property
    def head_px(self) -> int:
        """Width of the column of headings, own pixels."""
        return header_px(self.wide(), self.headings.chosen_px)

    def inner(self, position: QPointF) -> QPointF:
        """Where an event of Qt's happened, own pixels."""
        return position / self.scale

    def ratio(self) -> float:
        """Device pixels per own pixel: the screen's, or those of the picture being made."""
        return (self.picture_scale or self.devicePixelRatioF()) * self.scale

    def own_painter(self) -> QPainter:
        """Painter of the widget in own pixels."""
        painter = QPainter(self)
        if self.scale != 1.0:
            painter.scale(self.scale, self.scale)
        return painter
