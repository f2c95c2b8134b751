"""Which rows the timeline shows, in which order and how tall: groups, expand, hide, pin, reorder, resize, filter."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

from core.lanes import Lane, LaneIndex
from gui.timeline import fitting
from gui.timeline.row import (
    GROUP_PX,
    LANE_PX,
    MODULE_LANES,
    PAD_PX,
    ROOMY_MODULE_LANES,
    STEPS_PX,
    SYNCS_PX,
    Row,
    RowKind,
)


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
        self._seen: dict[str, tuple[int, int]] = {}  # start and end of a slice that was in view, by key of its row
        self._published: tuple[object, ...] = ()
        self.filter_text = ""
        self.lane_px = LANE_PX  # height of a lane with its gap, by `fit`
        self.pad_px, self.group_px = PAD_PX, GROUP_PX  # above and below the lanes of a row; of a group; by `fit`
        self.cramped = False  # CPU and device stand together only because rows gave up lanes, by `fit`
        self.module_lanes = MODULE_LANES  # of collapsed Python stacks, by `fit`
        self.hides_empty = False  # rows without a slice in view are left out
        self.empty_in_view: frozenset[str] = frozenset()  # keys of those rows, from `note_empty`
        self.aside: frozenset[str] = frozenset()  # keys of rows left out between a call and its work, by `pairing`
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
        if row.hidden or row.empty or (row.key in self.aside and not row.pinned):
            return False
        if self.hides_empty and row.key in self.empty_in_view and not row.pinned:
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
        return self.filter_text in f"{row.title} {row.subtitle} {row.number}".casefold()

    def height_of(self, row: Row) -> int:
        """Height of a row, px."""
        if row.kind is RowKind.GROUP:
            return self.group_px
        if row.kind is RowKind.STEPS:
            return STEPS_PX
        if row.kind is RowKind.SYNCS:
            return SYNCS_PX
        if row.kind is RowKind.COUNTER:
            return row.height_px
        return self.shown_lanes_of(row) * self.lane_px + 2 * self.pad_px

    def shown_lanes_of(self, row: Row) -> int:
        """Lanes that a row draws: a collapsed Python stack as many as there is room for."""
        if row.is_python and not row.expanded:
            return max(1, min(self.module_lanes, len(self.modules(row.track_id))))
        return row.shown_lanes

    def modules(self, track_id: int) -> list[Lane]:
        """Lanes that stand for a collapsed Python track: all that fit, else its modules, else its own frames."""
        whole = int(self.index.trace.tracks.lanes[track_id]) <= self.module_lanes
        return self.index.lanes(track_id) if whole else self.index.summary(track_id)

    def wanted_lanes(self, track_id: int) -> int:
        """Lanes that a collapsed Python track would draw with all the room it may have."""
        deep = int(self.index.trace.tracks.lanes[track_id])
        return deep if deep <= ROOMY_MODULE_LANES else len(self.index.summary(track_id))

    def lanes_of(self, row: Row) -> list[Lane]:
        """Lanes that a row draws now, top to bottom."""
        if row.kind is not RowKind.SLICES:
            return []
        if row.is_python and not row.expanded:
            return self.modules(row.track_id)[: self.module_lanes] or self.index.lanes(row.track_id)[:1]
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

    def row_of(self, slice_id: int) -> Row | None:
        """Row of a slice, None when its track has none."""
        return self.row_of_track(int(self.index.trace.slices.track_id[slice_id]))

    def is_shown(self, row: Row) -> bool:
        """Row is among the visible ones."""
        return row.key in self._shown

    def fit(self, height_px: int) -> None:
        """Suit rows to the height of the canvas, see `gui.timeline.fitting`; rows that the user has sized stay."""
        self.aside = frozenset()
        fitting.fit(self, height_px)

    # What the user does --------------------------------------------------------------------------------------

    def toggle(self, key: str, expanded: bool | None = None) -> None:
        """Expand or collapse a row or a group."""
        row = self.by_key[key]
        row.expanded = (not row.expanded) if expanded is None else expanded
        self.place()

    def hide_empty(self, hides: bool) -> None:
        """Leave out the rows that have no slice in view, or show them again."""
        self.hides_empty = hides
        self.place()

    def rows_without_slices(self, start_ns: float, end_ns: float) -> frozenset[str]:
        """Keys of the rows of slices that have none in a stretch of time; O(rows log n)."""
        rows = (row for row in self.rows if row.kind is RowKind.SLICES)
        return frozenset(row.key for row in rows if not self._has_slices(row, start_ns, end_ns))

    def _has_slices(self, row: Row, start_ns: float, end_ns: float) -> bool:
        start, end = self._seen.get(row.key, (0, -1))
        if start < end_ns and start_ns < end:  # what was in view before still is
            return True
        lane = self.index.lane(row.track_id, row.skip_lanes)  # deeper ones lie below these
        lo, hi = lane.window(start_ns, end_ns)
        if hi > lo:
            self._seen[row.key] = int(lane.start_ns[(lo + hi) // 2]), lane.end((lo + hi) // 2)
        return hi > lo

    def note_empty(self, keys: frozenset[str]) -> None:
        """Take over which rows are empty in view; places the rows anew where that changes what is shown."""
        changed, self.empty_in_view = self.empty_in_view != keys, keys
        if changed and self.hides_empty:
            self.place()

    def set_hidden(self, key: str, hidden: bool) -> None:
        """Hide a row, or a group with its members, or show it again."""
        row = self.by_key[key]
        for member in (key, *row.members):
            self.by_key[member].hidden = hidden
        self.place()

    def bring_back(self) -> bool:
        """Show the rows again that were left out between a call and its work; False when there are none."""
        had, self.aside = bool(self.aside), frozenset()
        if had:
            self.place()
        return had

    def left_out_above(self, row: Row) -> int:
        """How many rows were left out right above a row that is shown."""
        if not self.aside:
            return 0
        count = 0
        for one in self.rows[: self.rows.index(row)][::-1]:
            if self.is_shown(one) and not one.pinned:
                break
            count += one.key in self.aside
        return count

    def show_all(self) -> None:
        """Show every hidden row."""
        self.aside = frozenset()
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
            lanes = round((height_px - 2 * self.pad_px) / self.lane_px)
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
        if row.key in self.aside:
            self.bring_back()
        self.empty_in_view -= {row.key}
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
            "hides_empty": self.hides_empty,
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
        self.hides_empty = state.get("hides_empty") is True
        order = state.get("order")
        if isinstance(order, list) and sorted(map(str, order)) == sorted(self.default_order):
            self._order([str(key) for key in order])
        self.place()
