"""How wide the column of headings is: as suits the window, or as the user has made it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gui.timeline.frame import HeadingWidth, header_px

if TYPE_CHECKING:
    from gui.timeline.view import TimelineView

WIDEST_PX = 4000  # that a kept state may ask for


class Headings:
    """Width that all parts of a view share, in the timeline's own pixels."""

    def __init__(self, view: TimelineView) -> None:
        self._width, self._canvas = HeadingWidth(), view.canvas
        self._bars = (view.strip, view.minimap, view.axis)
        for part in (*self._bars, view.canvas):
            part.headings = self._width

    @property
    def chosen_px(self) -> int:
        """What the user has chosen, 0 nothing."""
        return self._width.chosen_px

    def set_width(self, width_px: int) -> None:
        """Make the column so wide; 0 suits it to the room."""
        self._take(header_px(self._canvas.wide(), max(width_px, 1)) if width_px else 0)

    def _take(self, chosen_px: int) -> None:
        self._width.chosen_px = chosen_px
        for bar in self._bars:
            bar.rescaled()
            bar.update()
        self._canvas.update()

    def restore(self, width_px: object) -> None:
        """Take a kept width over as it is, since the view has its own room only later; what is none is left out."""
        if type(width_px) is int and 0 <= width_px <= WIDEST_PX:
            self._take(width_px)

    def widen(self, by_px: int) -> None:
        """Make the column wider or narrower."""
        self.set_width(max(self._canvas.head_px + by_px, 1))
