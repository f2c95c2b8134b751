"""One row of the timeline: what it shows, how tall it is, and the measures that all rows share."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from core.kinds import TrackKind

LANE_PX = 17  # one lane with its gap, at least
SLICE_PX = 16  # the slice in it, and the height of its label
ROOMY_LANE_PX = 28  # one lane at most, where the rows leave room
PAD_PX = 3  # above and below the lanes of a row
GROUP_PX = 24
LOW_PAD_PX, LOW_GROUP_PX = 1, 18  # where CPU and device would not stand together otherwise
COUNTER_PX = 38
ROOMY_COUNTER_PX = 110
MODULE_LANES, ROOMY_MODULE_LANES = 2, 4  # of a collapsed Python stack: usually, and where the rows leave room
STEPS_PX = 20
SYNCS_PX = 17
FITTED_STREAMS = 4  # streams that a canvas shows together with the CPU where it can
# Lanes left at least by `Layout.fit`: an operator, what it calls, and the call that blocks.
FLOOR_LANES: dict[int, int] = {TrackKind.CPU_OPS: 4}
LAST_FLOOR_LANES: dict[int, int] = {TrackKind.CPU_OPS: 3}  # where they still hide the device
SUMMARY_LANES = 5  # lanes drawn in a collapsed group


class RowKind(Enum):
    """What a row draws."""

    STEPS = "steps"
    SYNCS = "syncs"
    GROUP = "group"
    SLICES = "slices"
    COUNTER = "counter"


@dataclass(eq=False)
class Row:
    """One row: a group's heading, the lanes of a track, a counter, or one of the two bands on top.

    ``key`` is stable over openings of the same trace. ``y``/``height`` are px inside its section (pinned or
    scrolled), set by `Layout.place`.
    """

    key: str
    kind: RowKind
    title: str
    subtitle: str = ""
    number: str = ""  # of a thread; the filter finds it, whatever the title
    group: str = ""
    track_id: int = -1
    track_kind: int = -1
    device: int = -1
    lanes: int = 1
    max_lanes: int = 1  # lanes shown at most; the others by scrolling inside the row
    default_lanes: int = 1
    natural_lanes: int = 1  # lanes shown at most where there is room for them
    first_lane: int = 0
    skip_lanes: int = 0  # outermost lanes left out because the step band already shows them
    empty: bool = False  # nothing to show in this trace
    height_px: int = 0  # of counters
    default_height_px: int = 0
    indent: int = 0
    expanded: bool = True
    default_expanded: bool = True
    communication: bool = False
    hidden: bool = False
    pinned: bool = False
    default_pinned: bool = False
    y: int = 0
    height: int = 0
    members: list[str] = field(default_factory=list)  # keys, of a group

    @property
    def is_python(self) -> bool:
        """Python stack of a thread: collapsed it shows modules."""
        return self.track_kind == TrackKind.CPU_PYTHON

    @property
    def can_collapse(self) -> bool:
        """Has more to show than its collapsed form."""
        return self.kind is RowKind.GROUP or (self.kind is RowKind.SLICES and (self.lanes > 1 or self.is_python))

    @property
    def shown_lanes(self) -> int:
        """Lanes drawn now."""
        if self.kind is not RowKind.SLICES:
            return 1
        return min(self.lanes, self.max_lanes) if self.expanded else 1
