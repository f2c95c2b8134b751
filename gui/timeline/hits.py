"""Search hits as lanes, so that millions of them cost no more to draw than the pixels they stand on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.lanes import EMPTY_LANE, Lane, make_lane
from core.tables import I32
from core.trace import Trace


class HitLanes:
    """Hits of one search, split by track and depth when a row first needs them."""

    def __init__(self, trace: Trace, hits: I32) -> None:
        self._trace = trace
        self.hits = hits  # kept, so that its identity is not given to another array
        self._ids = np.sort(hits)  # tracks are contiguous runs of slice ids
        self._lanes: dict[tuple[int, int], Lane] = {}
        self._pixels: tuple[tuple[float, float, int], NDArray[np.float64]] | None = None

    def lane(self, track_id: int, depth: int) -> Lane:
        """Hits of a track at a depth."""
        key = (track_id, depth)
        if key not in self._lanes:
            self._lanes[key] = self._make(track_id, depth)
        return self._lanes[key]

    def _make(self, track_id: int, depth: int) -> Lane:
        tracks, slices = self._trace.tracks, self._trace.slices
        bounds = np.array([tracks.first_id[track_id], tracks.end_id[track_id]], self._ids.dtype)
        a, b = np.searchsorted(self._ids, bounds)
        ids = self._ids[a:b]
        ids = ids[slices.depth[ids] == depth]
        return make_lane(ids, slices.start_ns[ids], self._trace.end_ns[ids]) if len(ids) else EMPTY_LANE

    def pixels(self, first_ns: float, span_ns: float, width_px: int) -> NDArray[np.float64]:
        """Pixel columns of the whole trace in which hits begin: float64[k], ascending."""
        key = (first_ns, span_ns, width_px)
        if self._pixels is None or self._pixels[0] != key:
            column = (self._trace.slices.start_ns[self.hits] - first_ns) / span_ns * width_px
            found = np.zeros(max(width_px, 1) + 1, np.bool_)
            found[np.clip(column, 0, width_px).astype(np.int64)] = True
            self._pixels = (key, np.flatnonzero(found).astype(np.float64))
        return self._pixels[1]


_latest: list[HitLanes] = []


def hit_lanes(trace: Trace, hits: I32) -> HitLanes:
    """Lanes of the hits of the latest few searches."""
    for kept in _latest:
        if kept.hits is hits:
            return kept
    made = HitLanes(trace, hits)
    _latest.insert(0, made)
    del _latest[4:]
    return made
