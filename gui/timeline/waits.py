"""Sync points and idle gaps as lanes, made once per table: the stages of a diagnosis mostly share theirs."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from core.figures.model import Figures, GapTable, SyncTable
from core.lanes import Lane, make_lane

HATCH_FROM_PX = 5  # narrower waits are plain
LABEL_FROM_PX = 60  # wider ones say how long they are

_syncs: WeakKeyDictionary[SyncTable, tuple[Lane, NDArray[np.uint8]]] = WeakKeyDictionary()
_calls: WeakKeyDictionary[SyncTable, tuple[NDArray[np.int32], NDArray[np.int32]]] = WeakKeyDictionary()
_gaps: WeakKeyDictionary[GapTable, dict[int, Lane]] = WeakKeyDictionary()


def sync_lane(figures: Figures) -> tuple[Lane, NDArray[np.uint8]]:
    """All sync points as a lane in time order (ids are rows of the sync table), and 1 for those that waited."""
    syncs = figures.syncs
    if syncs not in _syncs:
        order = np.argsort(syncs.wait_start_ns, kind="stable").astype(np.int32)
        start = syncs.wait_start_ns[order]
        lane = make_lane(order, start, start + np.maximum(syncs.wait_ns[order], 0))
        _syncs[syncs] = (lane, (syncs.wait_ns > 0).astype(np.uint8))
    return _syncs[syncs]


def waits_in(figures: Figures, ids: NDArray[np.int32]) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """Which of these slices wait: their positions, and the row of the sync table of each."""
    syncs = figures.syncs
    if syncs not in _calls:
        rows = np.flatnonzero(syncs.wait_ns > 0).astype(np.int32)
        rows = rows[np.argsort(syncs.slice_id[rows], kind="stable")]
        _calls[syncs] = (syncs.slice_id[rows].astype(np.int32), rows)
    calls, rows = _calls[syncs]
    if not len(calls) or not len(ids):
        return np.empty(0, np.intp), np.empty(0, np.int32)
    at = np.minimum(np.searchsorted(calls, ids), len(calls) - 1)
    hit = np.flatnonzero(calls[at] == ids)
    return hit, rows[at[hit]]


def gap_lane(figures: Figures, device: int) -> Lane:
    """Gaps of one device in time order; ids are rows of the gap table."""
    gaps = figures.gaps
    lanes = _gaps.setdefault(gaps, {})
    if device not in lanes:
        ids = np.flatnonzero(gaps.device == device).astype(np.int32)
        if _is_run(ids) and bool(np.all(gaps.start_ns[ids[0] + 1 : ids[-1] + 1] >= gaps.start_ns[ids[0] : ids[-1]])):
            mine = slice(int(ids[0]), int(ids[-1]) + 1)  # as they mostly stand in the table: nothing is copied
            lanes[device] = make_lane(ids, gaps.start_ns[mine], gaps.end_ns[mine])
        else:
            ids = ids[np.argsort(gaps.start_ns[ids], kind="stable")]
            lanes[device] = make_lane(ids, gaps.start_ns[ids], gaps.end_ns[ids])
    return lanes[device]


def _is_run(ids: NDArray[np.int32]) -> bool:
    """Whether ascending ids leave none out."""
    return len(ids) > 0 and int(ids[-1]) - int(ids[0]) == len(ids) - 1
