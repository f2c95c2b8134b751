"""Room for two things at once: a slice of the CPU, and the device row where the work that it waits for stands."""

from __future__ import annotations

from collections.abc import Callable

from core.kinds import TrackKind
from gui.timeline.layout import Layout
from gui.timeline.row import Row, RowKind

MOST_LANES = 8  # from a chosen operator down to the call that blocks in it


def show_both(layout: Layout, scroll_px: int, height_px: int, upper: tuple[int, ...], work: int) -> int:
    """Make room for slices of the CPU and the row of device work; return how far to scroll, px.

    Rows between them give up what they can: open Python stacks, then lanes, in the end their place. Rows that the user
    has sized keep their lanes.

    Parameters
    ----------
    scroll_px, height_px
        How far the rows are scrolled now, and the height of the canvas.
    upper
        Slices of the CPU, the one that matters least first; -1 for none.
    work
        Slice of a device; -1 stands for the first stream.
    """
    slices = [i for i in upper if i >= 0]
    low = _device_row(layout, work)
    if not slices or low is None or not layout.is_shown(low) or low.pinned:
        return scroll_px
    layout.bring_back()
    _open_lanes(layout, slices)
    while slices:
        tops = [top for top in (_top(layout, i) for i in slices) if top >= 0]
        if not tops or min(tops) > low.y:
            return scroll_px
        room_px = height_px - layout.pinned_px
        if low.y + low.height - min(tops) <= room_px or _fold(layout, slices, low, room_px):
            top = min(_top(layout, i) for i in slices if _top(layout, i) >= 0)
            least = max(scroll_px, low.y + low.height - room_px)
            whole = (row.y for row in layout.scrolled if least <= row.y <= top)  # a heading is not cut, if it can be
            return max(min(next(whole, least), top), 0) if least > scroll_px else max(min(scroll_px, top), 0)
        slices = slices[1:]
    last = _top(layout, upper[-1] if upper[-1] >= 0 else upper[0])  # no room for both: the call that blocks
    return min(max(scroll_px, last + layout.lane_px - height_px + layout.pinned_px), last)


def _device_row(layout: Layout, work: int) -> Row | None:
    if work >= 0:
        return layout.row_of_track(int(layout.index.trace.slices.track_id[work]))
    return next((r for r in layout.scrolled if r.track_kind == TrackKind.DEVICE_STREAM), None)


def _open_lanes(layout: Layout, slices: list[int]) -> None:
    """Show the lanes of all slices of each row, from the uppermost to the lowest."""
    depth = layout.index.trace.slices.depth
    for row in dict.fromkeys(layout.row_of(i) for i in slices):
        if row is None or row.is_python or not row.expanded:
            continue
        lanes = [int(depth[i]) - row.skip_lanes for i in slices if layout.row_of(i) is row]
        first, wanted = max(min(lanes), 0), max(lanes) - max(min(lanes), 0) + 1
        if row.max_lanes == row.default_lanes and row.shown_lanes < wanted <= MOST_LANES:
            row.max_lanes = row.default_lanes = wanted
        if wanted <= row.shown_lanes:
            row.first_lane = min(max(row.first_lane, first + wanted - row.shown_lanes), first)
        else:  # the call that blocks, rather than what it is in
            row.first_lane = max(0, max(lanes) - row.shown_lanes + 1)
    layout.place()


def _top(layout: Layout, slice_id: int) -> int:
    """Upper edge of a slice's lane among the scrolled rows, px; -1 when it is not there."""
    row = layout.row_of(slice_id)
    lane = layout.lane_position(row, slice_id) if row is not None else -1
    if row is None or lane < 0 or row.pinned or not layout.is_shown(row):
        return -1
    return row.y + layout.pad_px + lane * layout.lane_px


def _fold(layout: Layout, slices: list[int], low: Row, room_px: int) -> bool:
    """Fold what stands between, until all is within the room; all is as it was where it cannot be."""
    before = [(row, row.expanded, row.max_lanes, row.default_lanes) for row in layout.rows], layout.module_lanes
    depth = layout.index.trace.slices.depth
    needed: dict[Row, int] = {}  # lanes of the rows of the slices, down to the last of them
    for row, i in ((layout.row_of(i), i) for i in slices):
        if row is not None and not row.is_python and row.expanded:
            needed[row] = max(needed.get(row, 1), int(depth[i]) - row.skip_lanes - row.first_lane + 1)
    own = {row.key for row in (layout.row_of(i) for i in slices) if row is not None}
    first = min(row.y for row in layout.scrolled if row.key in own)
    between = [r for r in layout.scrolled if first < r.y < low.y and r.kind is RowKind.SLICES and r.key not in own]

    def fits() -> bool:
        layout.place(publish=False)
        return low.y + low.height - min(_top(layout, i) for i in slices if _top(layout, i) >= 0) <= room_px

    folds = [*_folds(layout, between, needed), *_asides(layout, first, low, own)]
    done = fits() or any(fold() and fits() for fold in folds)
    if not done:
        for row, expanded, most, usual in before[0]:
            row.expanded, row.max_lanes, row.default_lanes = expanded, most, usual
        layout.module_lanes, layout.aside = before[1], frozenset()
    layout.place()
    return done


def _asides(layout: Layout, first_px: int, low: Row, own: set[str]) -> list[Callable[[], bool]]:
    """Rows that can be left out, those without a slice in view before the others, headings of groups last."""
    rows = [r for r in layout.scrolled if first_px < r.y < low.y and r.key not in own]
    rows.sort(key=lambda r: (r.kind is RowKind.GROUP, r.key not in layout.empty_in_view, not r.is_python, -r.y))

    def aside(row: Row) -> bool:
        layout.aside |= {row.key}
        return True

    return [lambda row=row: aside(row) for row in rows]  # type: ignore[misc]


def _folds(layout: Layout, between: list[Row], needed: dict[Row, int]) -> list[Callable[[], bool]]:
    """What can be folded, one after the other; each says whether it changed something."""

    def close(row: Row) -> bool:
        row.expanded = False
        return True

    def modules() -> bool:
        changed, layout.module_lanes = layout.module_lanes > 1, 1
        return changed

    def lane() -> bool:
        free = [r for r in between if r.max_lanes == r.default_lanes and r.expanded and r.shown_lanes > 1]
        free += [r for r, lanes in needed.items() if r.max_lanes == r.default_lanes and r.shown_lanes > lanes]
        row = max(free, key=lambda r: r.shown_lanes, default=None)
        if row is not None:
            row.max_lanes = row.default_lanes = row.shown_lanes - 1
        return row is not None

    stacks = [row for row in between if row.is_python and row.expanded]
    every = sum(row.shown_lanes for row in (*between, *needed))
    return [*((lambda row=row: close(row)) for row in stacks), modules, *([lane] * every)]
