"""What a painter of the timeline may use: the paint context of one frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF

from core.figures.model import Figures
from core.kinds import SliceKind
from core.lanes import LaneIndex
from core.lod import bin_width_ns
from core.trace import Trace
from gui.timeline.layout import Layout
from gui.timeline.palette import Palette
from gui.timeline.row import Row

if TYPE_CHECKING:
    from gui.session import Document

HEADER_PX, LEAST_HEADER_PX = 170, 96  # of the column of headings, where the window is wide, and in a narrow one
HEADER_SHARE = 0.28  # of the width, between the two
DRAGGED_PX, DRAGGED_SHARE = 48, 0.6  # of a column that the user has made so wide: at least, and of the width at most


@dataclass
class HeadingWidth:
    """Width of the column of headings, shared by all parts of a timeline; ``chosen_px`` 0 suits it to the room."""

    chosen_px: int = 0


def header_px(width_px: int, chosen_px: int = 0) -> int:
    """Width of the column of headings in a timeline so wide: with large text it leaves more to the lanes."""
    if chosen_px > 0:
        return max(min(chosen_px, round(width_px * DRAGGED_SHARE)), DRAGGED_PX)
    return min(max(round(width_px * HEADER_SHARE), LEAST_HEADER_PX), HEADER_PX)


@dataclass(eq=False)
class Frame:
    """One frame of the rows. Three spaces, named throughout:

    * time, ns from the trace's first event;
    * x and y of the canvas, px from its left and top (the header column included);
    * rows, each with ``y`` inside its section: `row_y` gives the canvas's.
    """

    document: Document
    trace: Trace
    figures: Figures | None
    index: LaneIndex
    layout: Layout
    palette: Palette
    looks: NDArray[np.uint8]
    coarse_looks: NDArray[np.uint8]
    no_looks: NDArray[np.uint8]  # all alike
    start_ns: float
    end_ns: float
    width_px: int
    height_px: int
    left_px: int  # where the lanes begin: width of the column of headings
    scroll_px: int = 0
    dpr: float = 1.0
    show_legend: bool = False
    all_flows: bool = False
    hovered: int = -1
    hover_x: int = -1
    section: bool | None = None  # True: only pinned rows count as visible, False: only scrolled ones, None: all
    vector: bool = False  # painting for a file of vectors: texts as text, nothing left for the next frame

    @property
    def lane_px(self) -> int:
        """Height of one lane with its gap."""
        return self.layout.lane_px

    @property
    def pad_px(self) -> int:
        """Room above and below the lanes of a row."""
        return self.layout.pad_px

    @property
    def slice_px(self) -> int:
        """Height of a slice."""
        return self.layout.lane_px - 1

    @property
    def lanes_px(self) -> int:
        """Width of the lanes."""
        return max(self.width_px - self.left_px, 1)

    @property
    def columns(self) -> int:
        """Columns of a curve, each about 2 px wide."""
        return max(self.lanes_px // 2, 1)

    @property
    def ns_per_px(self) -> float:
        """Time that a pixel is worth."""
        return (self.end_ns - self.start_ns) / self.lanes_px

    @property
    def bin_ns(self) -> int:
        """Width of the bins to fold by."""
        return bin_width_ns(self.ns_per_px)

    def x(self, time_ns: Any) -> Any:
        """Canvas x of a time (or an array of times)."""
        return (time_ns - self.start_ns) / (self.end_ns - self.start_ns) * self.lanes_px + self.left_px

    def time_at(self, x_px: float) -> float:
        """Time at a canvas x."""
        return self.start_ns + (x_px - self.left_px) * self.ns_per_px

    def row_y(self, row: Row) -> int:
        """Canvas y of a visible row's top."""
        return row.y if row.pinned else row.y + self.layout.pinned_px - self.scroll_px

    def visible_rows(self) -> list[Row]:
        """Rows that are at least partly on the canvas, pinned ones first."""
        top, scroll = self.layout.pinned_px, self.scroll_px
        pinned = self.layout.pinned if self.section is not False else []
        shown = self.layout.scrolled_between(scroll, scroll + self.height_px - top) if self.section is not True else []
        return pinned + shown

    def shows(self, row: Row) -> bool:
        """Row is one of this frame's (though perhaps scrolled out of view)."""
        return (self.section is None or self.section == row.pinned) and self.layout.is_shown(row)

    def place_of(self, slice_id: int) -> tuple[Row, int] | None:
        """Visible row of a slice and the canvas y of its lane; None when its row or lane is not shown."""
        row = self.layout.row_of_track(int(self.trace.slices.track_id[slice_id]))
        lane = self.layout.lane_position(row, slice_id) if row is not None else -1
        if lane < 0 and self.trace.slices.kind[slice_id] == SliceKind.STEP:
            row, lane = self.layout.by_key["steps"], 0
            return (row, self.row_y(row) + 1) if self.shows(row) else None
        if row is None or lane < 0 or not self.shows(row):
            return None
        return row, self.row_y(row) + self.pad_px + lane * self.lane_px

    def stand_in_of(self, slice_id: int) -> tuple[Row, int] | None:
        """Row that stands for a slice that is not drawn, and the canvas y of its middle.

        The slice's own row where its lane is not shown, the heading of its group where that is closed.
        """
        row = self.layout.row_of_track(int(self.trace.slices.track_id[slice_id]))
        if row is not None and not self.shows(row):
            row = self.layout.by_key.get(row.group)
        if row is None or not self.shows(row):
            return None
        return row, self.row_y(row) + row.height // 2

    def rect_of(self, slice_id: int) -> QRectF | None:
        """Canvas rectangle of a slice (at least 2 px wide), cut where pinned rows cover it; None when not shown."""
        place = self.place_of(slice_id)
        if place is None:
            return None
        row, y = place
        start = float(self.trace.slices.start_ns[slice_id])
        x0 = max(float(self.x(start)), self.left_px - 4.0)
        x1 = min(float(self.x(float(self.trace.end_ns[slice_id]))), self.width_px + 4.0)
        top = max(y, 0 if row.pinned else self.layout.pinned_px + 2)  # an outline needs 2 px
        if y + self.slice_px <= top or y >= self.height_px or x1 < self.left_px or x0 > self.width_px:
            return None
        return QRectF(x0, top, max(x1 - x0, 2.0), y + self.slice_px - top)
