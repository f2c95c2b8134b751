"""What happened in a stretch of time: pure numpy over the tables, for the selection panel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.figures.model import Figures
from core.figures.stats import owners
from core.kinds import DEVICE_WORK, SliceKind, TrackKind
from core.tables import I32, I64, Bool
from core.trace import Trace


@dataclass(frozen=True)
class Totals:
    """One table: names, how often, total and self time inside the stretch (ns), and the longest slice of each."""

    name_id: I32
    kind: I32
    calls: I64
    total_ns: I64
    self_ns: I64
    longest: I32


@dataclass(frozen=True)
class RangeStats:
    """Figures of a stretch of time. None is unknown."""

    wall_ns: int
    busy_ns: int | None
    sync_wait_ns: int | None
    syncs: int
    slices: int
    copies: int
    copy_bytes: int
    copy_ns: int
    totals: Totals


def compute(trace: Trace, figures: Figures | None, start_ns: int, end_ns: int, tracks: tuple[int, ...]) -> RangeStats:
    """Figures of ``[start_ns, end_ns)``; slices that stick out are counted with the part inside.

    Parameters
    ----------
    tracks
        Only these; empty means all.
    """
    s = trace.slices
    mask = (s.start_ns < end_ns) & ((trace.end_ns > start_ns) | ((s.dur_ns == 0) & (s.start_ns >= start_ns)))
    if tracks:
        mask &= np.isin(s.track_id, tracks)
    ids = np.flatnonzero(mask).astype(np.int32)
    inside = np.minimum(trace.end_ns[ids], end_ns) - np.maximum(s.start_ns[ids], start_ns)
    device: Bool = np.isin(s.kind[ids], DEVICE_WORK)
    busy = _union(np.maximum(s.start_ns[ids][device], start_ns), np.minimum(trace.end_ns[ids][device], end_ns))
    copies = (s.kind[ids] == SliceKind.MEMCPY) & (s.copy_bytes[ids] >= 0)
    wait, syncs = _waits(trace, figures, start_ns, end_ns, tracks)
    knows_device = trace.has_device_work and (not tracks or bool((trace.tracks.device[list(tracks)] >= 0).any()))
    return RangeStats(
        wall_ns=end_ns - start_ns,
        busy_ns=busy if knows_device else None,
        sync_wait_ns=wait,
        syncs=syncs,
        slices=len(ids),
        copies=int(copies.sum()),
        copy_bytes=int(s.copy_bytes[ids[copies]].sum()),
        copy_ns=int(inside[copies].sum()),
        totals=_totals(trace, ids, inside),
    )


def _union(start: I64, end: I64) -> int:
    if not len(start):
        return 0
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    fresh = np.maximum(start, np.concatenate((start[:1], end[:-1])))
    return int(np.maximum(end - fresh, 0).sum())


def _waits(
    trace: Trace, figures: Figures | None, start_ns: int, end_ns: int, tracks: tuple[int, ...]
) -> tuple[int | None, int]:
    if figures is None:
        return None, 0
    t = figures.syncs
    part = np.minimum(t.wait_start_ns + t.wait_ns, end_ns) - np.maximum(t.wait_start_ns, start_ns)
    hit = (part > 0) | ((t.wait_ns == 0) & (t.wait_start_ns >= start_ns) & (t.wait_start_ns < end_ns))
    if tracks:
        hit &= np.isin(trace.slices.track_id[t.slice_id], tracks)
    return int(np.maximum(part, 0)[hit].sum()), int(hit.sum())


def _totals(trace: Trace, ids: I32, inside: I64) -> Totals:
    """Totals by (kind, name), largest self time first; a name inside itself counts once in the total."""
    s = trace.slices
    own = inside.copy()
    parent = s.parent_id[ids]
    at = np.searchsorted(ids, parent)
    known = (parent >= 0) & (at < len(ids))
    known[known] = ids[at[known]] == parent[known]
    np.subtract.at(own, at[known], inside[known])
    calls = np.flatnonzero((parent < 0) & (trace.tracks.kind[s.track_id[ids]] == TrackKind.CPU_OPS))
    for holder in owners(trace, ids[calls]):
        row = np.minimum(np.searchsorted(ids, holder), max(len(ids) - 1, 0))
        held = (holder >= 0) & (ids[row] == holder)
        cut = np.minimum(trace.end_ns[holder[held]], trace.end_ns[ids[calls[held]]]) - s.start_ns[ids[calls[held]]]
        np.subtract.at(own, row[held], np.clip(cut, 0, inside[calls[held]]))
    nested = np.zeros(len(ids), np.bool_)
    nested[known] = s.name_id[parent[known]] == s.name_id[ids[known]]
    key = s.name_id[ids].astype(np.int64) * 64 + s.kind[ids]
    groups, group = np.unique(key, return_inverse=True)
    total = np.zeros(len(groups), np.int64)
    np.add.at(total, group, np.where(nested, 0, inside))
    own_sum = np.zeros(len(groups), np.int64)
    np.add.at(own_sum, group, np.maximum(own, 0))
    longest = np.full(len(groups), -1, np.int32)
    by_length = np.argsort(inside, kind="stable")
    longest[group[by_length]] = ids[by_length]  # the last write is the longest
    order = np.argsort(-own_sum, kind="stable")
    return Totals(
        (groups // 64).astype(np.int32)[order],
        (groups % 64).astype(np.int32)[order],
        np.bincount(group, minlength=len(groups)).astype(np.int64)[order],
        total[order],
        own_sum[order],
        longest[order],
    )
