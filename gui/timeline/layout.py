"""Which rows the timeline shows, in which order and how tall: groups, expand, hide, pin, reorder, resize, filter."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from core.kinds import TrackKind
from core.lanes import Lane, LaneIndex

LANE_PX = 17  # one lane with its gap
SLICE_PX = 16  # the slice in it
PAD_PX = 3  # above and below the lanes of a row
GROUP_PX = 24
COUNTER_PX = 38
STEPS_PX = 20
SYNCS_PX = 17
FITTED_STREAMS = 4  # streams that a canvas shows together with the CPU where it can
# Lanes left at least by `Layout.fit`: an operator, what it calls, and the call that blocks.
FLOOR_LANES: dict[int, int] = {TrackKind.CPU_OPS: 4}
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


class Layout:
    """All rows of one trace and what the user made of them.

    Parameters
    ----------
    rows
        All rows in their default order, each group's heading before its members (`gui.timeline.rows.build_rows`).
    index
        Lanes of the trace.
    """

    def __init__(self, rows: list[Row], index: LaneIndex) -> None:
        self.index = index
        self.rows = rows
        self.by_key = {row.key: row for row in rows}
        self.default_order = [row.key for row in rows]
        self._by_track = {row.track_id: row for row in reversed(rows) if row.kind is RowKind.SLICES}
        self._shown: set[str] = set()
        self._published: tuple[object, ...] = ()
        self.filter_text = ""
        self.version = 0  # grows with every change of what is where
        self.pinned: list[Row] = []
        self.scrolled: list[Row] = []
        self._tops_px: list[int] = []  # of the scrolled rows, ascending
        self.pinned_px = 0
        self.scrolled_px = 0
        self.place()

    # What is where -------------------------------------------------------------------------------------------

    def place(self, publish: bool = True) -> None:
        """Work out anew which rows are visible, and where; ``publish`` False for a step on the way."""
        visible = [row for row in self.rows if self._is_visible(row)]
        self._shown = {row.key for row in visible}
        self.pinned = [row for row in visible if row.pinned]
        self.scrolled = [row for row in visible if not row.pinned]
        self.pinned_px = self._stack(self.pinned)
        self.scrolled_px = self._stack(self.scrolled)
        self._tops_px = [row.y for row in self.scrolled]
        if publish:
            self._publish()

    def scrolled_between(self, top_px: float, bottom_px: float) -> list[Row]:
        """Scrolled rows that are at least partly in ``[top_px, bottom_px)`` of their section."""
        first = bisect_right(self._tops_px, top_px) - 1
        return self.scrolled[max(first, 0) : bisect_left(self._tops_px, bottom_px)]

    def _publish(self) -> None:
        rows = (*self.pinned, *self.scrolled)
        shown = tuple((r.key, r.y, r.height, r.expanded, r.pinned, r.first_lane) for r in rows)
        if shown != self._published:
            self._published = shown
            self.version += 1

    def _stack(self, rows: list[Row]) -> int:
        y = 0
        for row in rows:
            row.y, row.height = y, self.height_of(row)
            y += row.height
        return y

    def _is_visible(self, row: Row) -> bool:
        if row.hidden or row.empty:
            return False
        group = self.by_key.get(row.group)
        if self.filter_text:
            if row.kind in (RowKind.STEPS, RowKind.SYNCS):
                return True
            if row.kind is RowKind.GROUP:
                return self._matches(row) or any(self._matches(self.by_key[k]) for k in row.members)
            return self._matches(row) or (group is not None and self._matches(group))
        return row.pinned or group is None or (group.expanded and not group.hidden)

    def _matches(self, row: Row) -> bool:
        return self.filter_text in f"{row.title} {row.subtitle}".casefold()

    def height_of(self, row: Row) -> int:
        """Height of a row, px."""
        if row.kind is RowKind.GROUP:
            return GROUP_PX
        if row.kind is RowKind.STEPS:
            return STEPS_PX
        if row.kind is RowKind.SYNCS:
            return SYNCS_PX
        if row.kind is RowKind.COUNTER:
            return row.height_px
        return self._shown_lanes(row) * LANE_PX + 2 * PAD_PX

    def _shown_lanes(self, row: Row) -> int:
        if row.is_python and not row.expanded:
            return max(1, min(2, len(self.modules(row.track_id))))
        return row.shown_lanes

    def modules(self, track_id: int) -> list[Lane]:
        """Lanes that stand for a collapsed Python track: its modules, else its own frames."""
        return self.index.summary(track_id)

    def lanes_of(self, row: Row) -> list[Lane]:
        """Lanes that a row draws now, top to bottom."""
        if row.kind is not RowKind.SLICES:
            return []
        if row.is_python and not row.expanded:
            return self.modules(row.track_id)[:2] or self.index.lanes(row.track_id)[:1]
        lanes = self.index.lanes(row.track_id)[row.skip_lanes :]
        first = min(row.first_lane, max(0, len(lanes) - row.shown_lanes))
        return lanes[first : first + row.shown_lanes]

    def lane_position(self, row: Row, slice_id: int) -> int:
        """Which drawn lane of a row holds a slice, -1 when none does."""
        if row.is_python and not row.expanded:
            for i, lane in enumerate(self.lanes_of(row)):
                if lane.neighbour(slice_id, 0) >= 0:
                    return i
            return -1
        first = min(row.first_lane, max(0, row.lanes - row.shown_lanes))
        position = int(self.index.trace.slices.depth[slice_id]) - row.skip_lanes - first
        return position if 0 <= position < row.shown_lanes else -1

    def row_of_track(self, track_id: int) -> Row | None:
        """Row of a track, None when it has none."""
        return self._by_track.get(track_id)

    def is_shown(self, row: Row) -> bool:
        """Row is among the visible ones."""
        return row.key in self._shown

    def fit(self, height_px: int) -> None:
        """Show fewer lanes of deep rows until CPU and device stand together in a canvas of this height.

        Rows that the user has sized stay; the lanes left out are reached by scrolling inside the row.
        """
        free = [r for r in self.rows if r.kind is RowKind.SLICES and r.max_lanes == r.default_lanes]
        for row in free:
            row.max_lanes = row.default_lanes = row.natural_lanes
        self.place(publish=False)
        streams = [r for r in self.scrolled if r.track_kind == TrackKind.DEVICE_STREAM][:FITTED_STREAMS]
        if streams:
            last = streams[-1]
            excess = self.pinned_px + last.y + last.height - height_px
            above = [r for r in self.scrolled if r.y < last.y and r in free and r.expanded]
            while excess > 0:
                row = max(above, key=lambda r: r.shown_lanes - FLOOR_LANES.get(r.track_kind, 2), default=last)
                if row.shown_lanes <= FLOOR_LANES.get(row.track_kind, 2):
                    break
                row.max_lanes = row.default_lanes = row.shown_lanes - 1
                excess -= LANE_PX
        self.place()

    # What the user does --------------------------------------------------------------------------------------

    def toggle(self, key: str, expanded: bool | None = None) -> None:
        """Expand or collapse a row or a group."""
        row = self.by_key[key]
        row.expanded = (not row.expanded) if expanded is None else expanded
        self.place()

    def set_hidden(self, key: str, hidden: bool) -> None:
        """Hide a row, or a group with its members, or show it again."""
        row = self.by_key[key]
        for member in (key, *row.members):
            self.by_key[member].hidden = hidden
        self.place()

    def show_all(self) -> None:
        """Show every hidden row."""
        for row in self.rows:
            row.hidden = False
        self.place()

    def set_pinned(self, key: str, pinned: bool) -> None:
        """Keep a row on top of the scrolled ones."""
        self.by_key[key].pinned = pinned
        self.place()

    def set_filter(self, text: str) -> None:
        """Show only rows whose title, subtitle or group holds a text."""
        self.filter_text = text.strip().casefold()
        self.place()

    def resize(self, key: str, height_px: int) -> None:
        """Give a row another height; rows of lanes take whole lanes and expand."""
        row = self.by_key[key]
        if row.kind is RowKind.COUNTER:
            row.height_px = min(max(height_px, 20), 240)
        elif row.kind is RowKind.SLICES:
            lanes = round((height_px - 2 * PAD_PX) / LANE_PX)
            row.expanded = lanes > 1 or row.lanes == 1
            row.max_lanes = min(max(lanes, 1), max(row.lanes, 1), 120)
        self.place()

    def scroll_lanes(self, key: str, lanes: int) -> bool:
        """Scroll inside a row; False when it shows all its lanes or is at its end."""
        row = self.by_key[key]
        if row.kind is not RowKind.SLICES or not row.expanded:
            return False
        last = max(0, row.lanes - row.shown_lanes)
        first = min(max(row.first_lane + lanes, 0), last)
        if first == row.first_lane:
            return False
        row.first_lane = first
        self._publish()
        return True

    def move(self, key: str, before: str) -> None:
        """Put a row in front of another of the same group (a group in front of another group); "" is the end."""
        row = self.by_key[key]
        block = [key, *row.members]
        rest = [k for k in (r.key for r in self.rows) if k not in block]
        if before in block:
            return
        at = len(rest)
        if before:
            target = self.by_key[before]
            if target.group != row.group:
                return
            at = rest.index(before)
        elif row.group:
            mates = [i for i, k in enumerate(rest) if self.by_key[k].group == row.group]
            at = (mates[-1] + 1) if mates else rest.index(row.group) + 1
        rest[at:at] = block
        self._order(rest)

    def _order(self, keys: list[str]) -> None:
        self.rows = [self.by_key[key] for key in keys]
        for row in self.rows:
            if row.members:
                row.members = [k for k in keys if self.by_key[k].group == row.key]
        self.place()

    def reveal(self, slice_id: int) -> Row | None:
        """Make the row and lane of a slice visible; None when its track has no row."""
        trace = self.index.trace
        row = self.row_of_track(int(trace.slices.track_id[slice_id]))
        if row is None:
            return None
        if row.empty:
            return self.by_key.get("steps")
        before = (row.hidden, row.expanded, row.first_lane)
        row.hidden = False
        group = self.by_key.get(row.group)
        regroup = group is not None and not row.pinned and (group.hidden or not group.expanded)
        if group is not None:
            group.hidden, group.expanded = False, True
        if self.filter_text and not self._is_visible(row):
            self.filter_text, regroup = "", True
        depth = int(trace.slices.depth[slice_id]) - row.skip_lanes
        if depth >= 0 and self.lane_position(row, slice_id) < 0:
            row.expanded = True
            if not row.first_lane <= depth < row.first_lane + row.shown_lanes:
                row.first_lane = max(0, min(depth - row.shown_lanes // 2, row.lanes - row.shown_lanes))
        if regroup or before != (row.hidden, row.expanded, row.first_lane):
            self.place()
        return row

    # Remembered per trace ------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """What differs from the default, as plain values that can be written as JSON."""
        rows = self.rows
        order = [row.key for row in rows]
        return {
            "version": 1,
            "expanded": {r.key: r.expanded for r in rows if r.expanded != r.default_expanded},
            "hidden": [r.key for r in rows if r.hidden],
            "pinned": {r.key: r.pinned for r in rows if r.pinned != r.default_pinned},
            "lanes": {r.key: r.max_lanes for r in rows if r.max_lanes != r.default_lanes},
            "heights": {r.key: r.height_px for r in rows if r.height_px != r.default_height_px},
            "order": order if order != self.default_order else [],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state; whatever does not fit this trace or has the wrong type is left out."""
        if not isinstance(state, dict) or state.get("version") != 1:
            return
        for name, attribute, kind in (
            ("expanded", "expanded", bool),
            ("pinned", "pinned", bool),
            ("lanes", "max_lanes", int),
            ("heights", "height_px", int),
        ):
            values = state.get(name)
            for key, value in values.items() if isinstance(values, dict) else ():
                if key in self.by_key and type(value) is kind and (kind is bool or 1 <= value <= 400):
                    setattr(self.by_key[key], attribute, value)
        hidden = state.get("hidden")
        for key in hidden if isinstance(hidden, list) else ():
            if isinstance(key, str) and key in self.by_key:
                self.by_key[key].hidden = True
        order = state.get("order")
        if isinstance(order, list) and sorted(map(str, order)) == sorted(self.default_order):
            self._order([str(key) for key in order])
        self.place()
