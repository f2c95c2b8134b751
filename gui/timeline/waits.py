"""Sync points and idle gaps as lanes, made once per analysis."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from core.figures.model import Figures
from core.lanes import Lane, make_lane

_syncs: WeakKeyDictionary[Figures, tuple[Lane, NDArray[np.uint8]]] = WeakKeyDictionary()
_gaps: WeakKeyDictionary[Figures, dict[int, Lane]] = WeakKeyDictionary()


def sync_lane(figures: Figures) -> tuple[Lane, NDArray[np.uint8]]:
    """All sync points as a lane in time order (ids are rows of the sync table), and 1 for those that waited."""
    if figures not in _syncs:
        syncs = figures.syncs
        order = np.argsort(syncs.wait_start_ns, kind="stable").astype(np.int32)
        start = syncs.wait_start_ns[order]
        lane = make_lane(order, start, start + np.maximum(syncs.wait_ns[order], 0))
        _syncs[figures] = (lane, (syncs.wait_ns > 0).astype(np.uint8))
    return _syncs[figures]


def gap_lane(figures: Figures, device: int) -> Lane:
    """Gaps of one device in time order; ids are rows of the gap table."""
    lanes = _gaps.setdefault(figures, {})
    if device not in lanes:
        ids = np.flatnonzero(figures.gaps.device == device).astype(np.int32)
        ids = ids[np.argsort(figures.gaps.start_ns[ids], kind="stable")]
        lanes[device] = make_lane(ids, figures.gaps.start_ns[ids], figures.gaps.end_ns[ids])
    return lanes[device]
