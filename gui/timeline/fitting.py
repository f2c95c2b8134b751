"""Suits the rows to the height of the canvas: fewer lanes where it is low, more and taller ones where it has room."""

from __future__ import annotations

from heapq import heapify, heapreplace
from typing import TYPE_CHECKING

from core.kinds import TrackKind
from gui.timeline.row import (
    COUNTER_PX,
    FITTED_STREAMS,
    FLOOR_LANES,
    GROUP_PX,
    LANE_PX,
    LAST_FLOOR_LANES,
    LOW_GROUP_PX,
    LOW_PAD_PX,
    MODULE_LANES,
    PAD_PX,
    ROOMY_COUNTER_PX,
    ROOMY_LANE_PX,
    ROOMY_MODULE_LANES,
    Row,
    RowKind,
)

if TYPE_CHECKING:
    from gui.timeline.layout import Layout

HOPELESS_SCREENS = 4


def fit(layout: Layout, height_px: int) -> None:
    """Show fewer lanes of deep rows until CPU and device stand together in a canvas of this height, if they can.

    Where all rows leave room, deep ones show more of their lanes, then lanes and counters grow. Rows that the user
    has sized stay; the lanes left out are reached by scrolling inside the row.
    """
    free = {r for r in layout.rows if r.kind is RowKind.SLICES and r.max_lanes == r.default_lanes}
    for row in free:
        row.max_lanes = row.default_lanes = row.natural_lanes
    counters = [r for r in layout.rows if r.kind is RowKind.COUNTER and r.height_px == r.default_height_px]
    for row in counters:
        row.height_px = row.default_height_px = COUNTER_PX
    layout.lane_px, layout.module_lanes = LANE_PX, MODULE_LANES
    layout.pad_px, layout.group_px = PAD_PX, GROUP_PX
    layout.place(publish=False)
    layout.cramped = _excess_px(layout, height_px) > 0 and not _is_hopeless(layout, height_px)
    if layout.cramped:
        if _shrink(layout, height_px, free) > 0:
            layout.module_lanes, layout.pad_px, layout.group_px = 1, LOW_PAD_PX, LOW_GROUP_PX
            layout.place(publish=False)
            _shrink(layout, height_px, free, LAST_FLOOR_LANES, least=1)
            layout.place(publish=False)
            _give_back(layout, height_px, free)
        layout.place(publish=False)
    room_px = height_px - layout.pinned_px - layout.scrolled_px
    if room_px > 0:
        _grow(layout, room_px, free, counters)
    layout.place()


def _streams(layout: Layout) -> list[Row]:
    """Streams that are to be seen together with the CPU."""
    return [r for r in layout.scrolled if r.track_kind == TrackKind.DEVICE_STREAM][:FITTED_STREAMS]


def _excess_px(layout: Layout, height_px: int) -> int:
    """By how much the last of the streams lies too low, as the rows are placed."""
    streams = _streams(layout)
    return layout.pinned_px + streams[-1].y + streams[-1].height - height_px if streams else 0


def _is_hopeless(layout: Layout, height_px: int) -> bool:
    """Whether the streams lie screens below however low the rows above are, as with hundreds of ranks."""
    last = _streams(layout)[-1]
    above = sum(row.y < last.y for row in layout.scrolled)
    return layout.pinned_px + LOW_GROUP_PX * above > HOPELESS_SCREENS * max(height_px, 1)


def _shrink(
    layout: Layout, height_px: int, free: set[Row], floors: dict[int, int] = FLOOR_LANES, least: int = 2
) -> int:
    """Take lanes from deep rows above the streams; returns how much the last stream is still too low, px.

    Rows without a slice in view come first, and go down to one lane.
    """
    streams = _streams(layout)
    if not streams:
        return 0
    last, excess_px = streams[-1], _excess_px(layout, height_px)
    above = [r for r in layout.scrolled if r.y < last.y and r in free and r.expanded]
    for row in above:
        if excess_px > 0 and row.key in layout.empty_in_view and row.shown_lanes > 1:
            excess_px -= LANE_PX * (row.shown_lanes - 1)
            row.max_lanes = row.default_lanes = 1
    spare = [(floors.get(r.track_kind, least) - r.shown_lanes, place, r) for place, r in enumerate(above or [last])]
    heapify(spare)  # the row with the most lanes above its floor first, of equal ones the upper
    while excess_px > 0 and spare and spare[0][0] < 0:
        lanes, place, row = spare[0]
        row.max_lanes = row.default_lanes = row.shown_lanes - 1
        heapreplace(spare, (lanes + 1, place, row))
        excess_px -= LANE_PX
    return excess_px


def _give_back(layout: Layout, height_px: int, free: set[Row]) -> None:
    """Lower rows may have freed more than was missing: operators get lanes back, the row that lacks fewest first."""
    spare_px = -_excess_px(layout, height_px)
    last = _streams(layout)[-1]
    rows = [r for r in layout.scrolled if r in free and r.expanded and r.y < last.y]
    rows = [r for r in rows if r.track_kind == TrackKind.CPU_OPS and r.key not in layout.empty_in_view]
    for row in sorted(rows, key=_lacks):
        lanes = min(_lacks(row), max(spare_px, 0) // LANE_PX)
        row.max_lanes = row.default_lanes = row.shown_lanes + lanes
        spare_px -= lanes * LANE_PX


def _lacks(row: Row) -> int:
    """Lanes of a row that it would show with room for them."""
    return max(min(row.lanes, row.natural_lanes) - row.shown_lanes, 0)


def _grow(layout: Layout, room_px: int, free: set[Row], counters: list[Row]) -> None:
    """Use the room that the rows leave: more lanes of deep rows, taller lanes, taller counters."""
    stacks = [layout.wanted_lanes(r.track_id) for r in layout.scrolled if r.is_python and not r.expanded]
    while layout.module_lanes < min(max(stacks, default=0), ROOMY_MODULE_LANES):
        needed_px = LANE_PX * sum(lanes > layout.module_lanes for lanes in stacks)
        if needed_px > room_px:
            break
        layout.module_lanes += 1
        room_px -= needed_px
    deep = [r for r in layout.scrolled if r in free and r.expanded]
    while room_px >= LANE_PX and deep:
        row = min(deep, key=lambda r: r.shown_lanes)
        if row.shown_lanes >= min(row.lanes, 2 * row.natural_lanes):
            deep.remove(row)
            continue
        row.max_lanes = row.default_lanes = row.shown_lanes + 1
        room_px -= LANE_PX
    rows = [r for r in (*layout.pinned, *layout.scrolled) if r.kind is RowKind.SLICES]
    lanes = sum(layout.shown_lanes_of(r) for r in rows)
    layout.lane_px = LANE_PX + min(room_px // max(lanes, 1), ROOMY_LANE_PX - LANE_PX)
    room_px -= (layout.lane_px - LANE_PX) * lanes
    shown = [r for r in counters if layout.is_shown(r)]
    for row in shown:
        row.height_px = row.default_height_px = min(COUNTER_PX + room_px // len(shown), ROOMY_COUNTER_PX)
