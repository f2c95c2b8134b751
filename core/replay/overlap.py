"""The graph with some copies on a stream of their own, as a prefetcher would put them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from core import sets
from core.kinds import SyncKind
from core.replay.graph import Graph, group_pieces
from core.replay.waits import Waits
from core.replay.work import NEVER, Work
from core.tables import Bool


def overlapped(graph: Graph, moved: Bool, kinds: np.ndarray) -> Graph:
    """Return a graph in which some pieces have left their streams.

    Nothing waits for them any more but what waits for the whole device: the data are needed a step later.

    Parameters
    ----------
    moved
        Pieces that go to the copy stream of their device.
    kinds
        `SyncKind` of each wait, -1 for others.
    """
    work = _with_copy_streams(graph.work, moved)
    group_block = np.arange(graph.block_count).repeat(np.diff(graph.first_group))
    pieces = np.arange(len(work))
    groups = group_pieces(work, group_block[graph.group_of], pieces, graph.block_count)
    # A stream that waited for a copy waits for what was before it on the stream that it has left.
    floor_on = _before_on_stream(graph.work, moved)[graph.floor_on]
    floor_piece, floor_on = graph.floor_piece[floor_on >= 0], floor_on[floor_on >= 0].astype(np.int32)
    return replace(
        graph,
        work=work,
        waits=_repointed(graph.waits, graph.work, work, moved, kinds),
        first_group=groups[0],
        group_stream=groups[1],
        first_piece=groups[2],
        pieces=groups[3],
        group_of=groups[4],
        floor_piece=floor_piece,
        floor_on=floor_on,
        floor_group=groups[4][floor_piece],
        floor_dep=groups[4][floor_on],
    )


def _with_copy_streams(work: Work, moved: Bool) -> Work:
    devices, _, device_of = sets.grouped(work.stream_device)
    own = len(work.stream_track) + device_of[work.stream]
    return replace(
        work,
        stream=np.where(moved, own, work.stream).astype(np.int32),
        latency_ns=np.where(moved, np.minimum(work.latency_ns, work.typical_ns), work.latency_ns),
        gap_ns=np.where(moved, 0, work.gap_ns),
        stream_track=np.concatenate((work.stream_track, np.full(len(devices), -1))).astype(np.int32),
        stream_device=np.concatenate((work.stream_device, devices)).astype(np.int32),
        free_ns=np.append(work.free_ns, np.full(len(devices), NEVER)),
    )


def _before_on_stream(work: Work, moved: Bool) -> np.ndarray:
    """Each piece itself or, for one that moves, the last piece before it on its stream that stays; -1 for none."""
    position = np.where(moved, -1, np.arange(len(work)))
    first = work.stream.searchsorted(work.stream)
    last = np.maximum.accumulate(position)
    return np.where(last >= first, last, -1)


def _repointed(waits: Waits, old: Work, work: Work, moved: Bool, kinds: np.ndarray) -> Waits:
    """Let what waits for a stream wait for what is left on it, and what waits for a device for its copies too."""
    wide = np.zeros(len(waits), dtype=bool)
    wide[waits.dep_of] = True
    wide &= (kinds == int(SyncKind.DEVICE)) | (kinds == int(SyncKind.ALLOC))
    instead = _before_on_stream(old, moved)[waits.dep_piece]
    kept = instead >= 0
    owner: list[np.ndarray] = [waits.dep_of[kept]]
    target: list[np.ndarray] = [instead[kept]]
    device_of_wait = np.full(len(waits), -1)
    device_of_wait[waits.dep_of] = work.stream_device[work.stream[waits.dep_piece]]
    for device in sets.distinct(work.stream_device):
        copies = (moved & (work.stream_device[work.stream] == device)).nonzero()[0]
        copies = copies[work.launch_ns[copies].argsort(kind="stable")]
        rows = (wide & (device_of_wait == device)).nonzero()[0]
        at = work.launch_ns[copies].searchsorted(waits.start_ns[rows]) - 1
        owner.append(rows[at >= 0])
        target.append(copies[at[at >= 0]])
    dep_of, dep_piece = np.concatenate(owner).astype(np.int32), np.concatenate(target).astype(np.int32)
    lag = np.concatenate((waits.dep_lag_ns[kept], np.zeros(len(dep_of) - np.count_nonzero(kept))))
    order = dep_of.argsort(kind="stable")
    # A copy that was the first work of its stream leaves nothing to wait for; the time of the wait is no host time yet.
    over = np.union1d(waits.over, waits.dep_of).astype(np.int32)
    return replace(waits, dep_of=dep_of[order], dep_piece=dep_piece[order], dep_lag_ns=lag[order], over=over)
