"""Level of detail: what is left of a lane when a pixel is worth more time than a slice lasts.

The cost follows the number of bins in the window, not the number of slices: a bin is one binary search. Slices that
last at least a bin stay themselves; the shorter ones of a bin are folded into one box that knows how many they are
and how densely they cover it, and neighbouring boxes that look alike become one run. Nothing is left out: a single
short slice in an empty minute is still a box.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.lanes import Lane, Stack, stacked
from core.tables import F64, I32, I64, U8

LEVELS = 4  # steps of density that a folded box distinguishes


@dataclass(frozen=True, eq=False)
class Boxes:
    """What to draw of a lane. The first ``single`` rows are slices of their own, the rest folded runs.

    ``slice_id`` of a run is one of its slices (its middle one), which stands for its colour; ``count`` is the number
    of slices in the box; ``level`` is 1..LEVELS, the share of the box that slices cover (always LEVELS for single
    ones).
    """

    start_ns: I64
    end_ns: I64
    slice_id: I32
    count: I32
    level: U8
    single: int

    def __len__(self) -> int:
        return len(self.slice_id)


def _empty() -> Boxes:
    none64, none32 = np.zeros(0, np.int64), np.zeros(0, np.int32)
    return Boxes(none64, none64, none32, none32, np.zeros(0, np.uint8), 0)


EMPTY_BOXES = _empty()


def bin_width_ns(ns_per_px: float) -> int:
    """Width of a bin for a resolution: the power of two between 1.4 and 2.8 pixels (at least 1 ns).

    Powers of two keep the bins where they are while the view moves, so folded boxes do not flicker, and let a
    caller keep boxes over small changes of the zoom.
    """
    return 1 << max(0, math.floor(math.log2(max(2.83 * ns_per_px, 1.0))))


def fold(lane: Lane, keys: NDArray[np.uint8], start_ns: float, end_ns: float, bin_ns: int) -> Boxes:
    """Boxes of the slices of a lane that touch ``[start_ns, end_ns)``.

    Parameters
    ----------
    lane
        Slices in time order that do not overlap.
    keys
        uint8[n_slices of the trace]: what makes two slices look alike (a colour index).
    start_ns, end_ns
        Window, ns.
    bin_ns
        Width of a bin, see `bin_width_ns`.
    """
    return fold_lanes((lane,), keys, start_ns, end_ns, bin_ns)[0]


def fold_lanes(
    lanes: Sequence[Lane], keys: NDArray[np.uint8], start_ns: float, end_ns: float, bin_ns: int
) -> tuple[Boxes, I32]:
    """Boxes of several lanes at once, and the lane of each box: int32[n], positions in ``lanes``.

    All lanes are read by the same expressions, which is what a lane in a frame mostly costs. See `fold`.
    """
    lanes = stacked(lanes)
    found = [(i, _borders(lane, start_ns, end_ns, bin_ns)) for i, lane in enumerate(lanes)]
    found = [(i, border) for i, border in found if len(border)]
    if not found:
        return EMPTY_BOXES, np.zeros(0, np.int32)
    border = np.concatenate([b for _, b in found])
    counts = [len(b) for _, b in found]
    keep = border[1:] > border[:-1]
    keep[np.cumsum(counts[:-1], dtype=np.intp) - 1] = False  # between two lanes
    first, stop = border[:-1][keep], border[1:][keep]
    lane = np.repeat(np.array([i for i, _ in found], np.int32), counts)[:-1][keep]
    return _boxes(lanes[0].stack or lanes[0], keys, bin_ns, (first, stop, lane))


def _boxes(
    of: Stack | Lane,
    keys: NDArray[np.uint8],
    bin_ns: int,
    groups: tuple[NDArray[np.intp], NDArray[np.intp], I32],
) -> tuple[Boxes, I32]:
    """Boxes of groups of slices, each the positions ``[first, stop)`` of those that start in one bin of a lane."""
    first, stop, lane = groups
    starts, ids, covered = of.start_ns, of.ids, of.covered_ns
    last = stop - 1
    large = (covered[stop] - covered[last]) >= bin_ns
    alone, alone_lane = last[large], lane[large]
    rest = (stop - first) > large
    if not rest.any():
        return _single(of, alone), alone_lane
    first, last, lane = first[rest], last[rest] - large[rest], lane[rest]
    box_start, box_end = starts[first], of.ends(last)
    inside = covered[last + 1] - covered[first]
    share = inside / np.maximum(box_end - box_start, bin_ns)
    level = np.clip(np.ceil(share * LEVELS), 1, LEVELS).astype(np.uint8)
    shown = ids[(first + last) >> 1]
    look = keys[shown].astype(np.int32) * (LEVELS + 1) + level
    begin = np.ones(len(first), np.bool_)
    begin[1:] = (look[1:] != look[:-1]) | (box_start[1:] - box_end[:-1] >= bin_ns) | (lane[1:] != lane[:-1])
    runs = np.flatnonzero(begin)
    run_last = np.append(runs[1:], len(first)) - 1
    counts = np.add.reduceat(last - first + 1, runs)
    boxes = Boxes(
        np.concatenate((starts[alone], box_start[runs])),
        np.concatenate((of.ends(alone), box_end[run_last])),
        np.concatenate((ids[alone], shown[runs])),
        np.concatenate((np.ones(len(alone), np.int32), counts.astype(np.int32))),
        np.concatenate((np.full(len(alone), LEVELS, np.uint8), level[runs])),
        len(alone),
    )
    return boxes, np.concatenate((alone_lane, lane[runs]))


def _single(of: Stack | Lane, alone: NDArray[np.intp]) -> Boxes:
    n = len(alone)
    return Boxes(
        of.start_ns[alone], of.ends(alone), of.ids[alone], np.ones(n, np.int32), np.full(n, LEVELS, np.uint8), n
    )


def _borders(lane: Lane, start_ns: float, end_ns: float, bin_ns: int) -> NDArray[np.intp]:
    """Positions in the lane's stack, ascending: two neighbours enclose the slices that start in the same bin.

    By whichever way is cheaper; empty where the lane has no slice in the window.
    """
    lo, hi = lane.window(start_ns, end_ns)
    if lo == hi:
        return np.zeros(0, np.intp)
    starts, at = lane.start_ns[lo:hi], lane.offset + lo
    first_bin = int(start_ns // bin_ns)
    bins = int(end_ns // bin_ns) - first_bin + 1
    border: NDArray[np.intp]
    if hi - lo <= bins:
        number = starts // bin_ns
        border = np.flatnonzero(number[1:] != number[:-1]) + 1
    else:
        border = np.searchsorted(starts, np.arange(first_bin, first_bin + bins, dtype=np.int64) * bin_ns)
    return np.concatenate(([at], border + at, [lane.offset + hi]))


def coverage(lane: Lane, edges_ns: I64) -> F64:
    """Share of each bin ``[edges[i], edges[i + 1])`` that the lane's slices cover: float64[n - 1] in 0..1.

    O(bins log n): interpolates the running sum of durations, exact for slices that do not overlap.
    """
    if not len(lane) or len(edges_ns) < 2:
        return np.zeros(max(len(edges_ns) - 1, 0))
    return share_between(covered_before(lane, edges_ns), edges_ns)


def covered_before(lane: Lane, times_ns: I64) -> F64:
    """Time that the slices of a lane (not empty) cover before each of some times, ns, up to a constant: float64[n]."""
    position = np.searchsorted(lane.start_ns, times_ns, "right")
    before = np.maximum(position - 1, 0)
    total = lane.covered_ns[before].astype(np.float64)
    inside = np.clip(times_ns - lane.start_ns[before], 0, lane.covered_ns[before + 1] - lane.covered_ns[before])
    return np.asarray(total + np.where(position > 0, inside, 0))


def share_between(covered_ns: F64, edges_ns: I64) -> F64:
    """Share of each bin that is covered: float64[n - 1] in 0..1, from what `covered_before` says of its edges."""
    return np.asarray(np.clip(np.diff(covered_ns) / np.maximum(np.diff(edges_ns), 1), 0.0, 1.0))
