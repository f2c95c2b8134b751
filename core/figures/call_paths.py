"""Slices of CPU threads as one tree: Python frames, ranges, operators and calls of a thread, nested in each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from core.figures.lookup import View
from core.kinds import SliceKind, TrackKind
from core.source_frames import is_launcher_frame, is_user_frame
from core.tables import I32, I64, Bool
from core.trace import Trace

# Where two slices have the same times, the one of the earlier kind of track is outside.
_OUTSIDE_FIRST = (TrackKind.CPU_PYTHON, TrackKind.CPU_RANGES, TrackKind.CPU_OPS)
_ROUNDING_NS = 1000  # a child outlasts its parent by so much at most (see `core.tables.SliceTable`)
_MODULE = "nn.Module: "


class Layers(IntEnum):
    """Which slices a call path is made of; those left out hand what they call to what called them."""

    ALL = 0
    OWN = 1  # of the Python frames only the user's own, and modules
    NO_PYTHON = 2


@dataclass(frozen=True, eq=False)
class CallTree:
    """Rows are slices, in order of (thread, start, -end): a parent comes before its children.

    ``parent`` is a row, -1 for those that nothing encloses; ``depth`` counts the rows above.
    """

    slice_id: I32
    thread: I32
    parent: I64
    depth: I64


def call_tree(view: View, threads: Sequence[int], layers: Layers, start_ns: int, end_ns: int) -> CallTree:
    """Return the tree of what ran on some threads in ``[start_ns, end_ns)``; steps are no part of it.

    A slice belongs to the innermost one of its thread that encloses it, whatever track that is on.
    """
    trace = view.trace
    ids, order_of_kind = _chosen(view, threads, layers, start_ns, end_ns)
    slices, end = trace.slices, trace.end_ns
    thread = view.thread[ids]
    order = np.lexsort((order_of_kind, -end[ids], slices.start_ns[ids], thread))
    ids, thread, order_of_kind = ids[order], thread[order], order_of_kind[order]
    own = _own_parent(trace, ids)
    parent = own.copy()
    for kind in range(len(_OUTSIDE_FIRST)):
        found = _enclosing(trace, ids, thread, order_of_kind, kind, own)
        np.maximum(parent, found, out=parent, where=order_of_kind != kind)
    return CallTree(ids, thread, parent, _depth(parent))


def python_names(trace: Trace) -> list[int]:
    """Distinct name ids of Python slices."""
    seen = np.zeros(len(trace.strings) + 1, dtype=bool)  # the last entry is for no name
    seen[trace.slices.name_id[trace.slices.kind == int(SliceKind.PYTHON)]] = True
    found: list[int] = seen[:-1].nonzero()[0].tolist()
    return found


def own_code(trace: Trace) -> Bool:
    """bool[n_strings + 1]: the name is a frame of the user's own code or a module (the last entry is for no name)."""
    found = np.zeros(len(trace.strings) + 1, dtype=bool)
    for name_id in python_names(trace):
        name = trace.strings[name_id]
        found[name_id] = name.startswith(_MODULE) or is_user_frame(name)
    return found


def _chosen(view: View, threads: Sequence[int], layers: Layers, start_ns: int, end_ns: int) -> tuple[I32, I64]:
    """Slices that are part of the tree, and for each the place of its kind of track in `_OUTSIDE_FIRST`."""
    trace, tracks = view.trace, view.trace.tracks
    ids: list[I32] = []
    places: list[I64] = []
    foreign = _foreign(trace, layers)
    for track in (np.isin(tracks.thread_id, threads) & (tracks.thread_id >= 0)).nonzero()[0].tolist():
        kind = TrackKind(int(tracks.kind[track]))
        if kind not in _OUTSIDE_FIRST or (kind is TrackKind.CPU_PYTHON and layers is Layers.NO_PYTHON):
            continue
        rows = np.arange(tracks.first_id[track], tracks.end_id[track], dtype=np.int32)
        keep = view.valid[rows] & (trace.slices.kind[rows] != int(SliceKind.STEP))
        keep &= (trace.slices.start_ns[rows] < end_ns) & (trace.end_ns[rows] > start_ns)
        if kind is TrackKind.CPU_PYTHON:
            keep &= ~foreign[trace.slices.name_id[rows]] | (trace.slices.kind[rows] != int(SliceKind.PYTHON))
        ids.append(rows[keep])
        places.append(np.full(int(keep.sum()), _OUTSIDE_FIRST.index(kind)))
    if not ids:
        return np.zeros(0, np.int32), np.zeros(0, np.int64)
    return np.concatenate(ids), np.concatenate(places).astype(np.int64)


def _foreign(trace: Trace, layers: Layers) -> Bool:
    """bool[n_strings + 1]: names of Python frames that are left out. What started the script always is."""
    if layers is Layers.OWN:
        return ~own_code(trace)
    found = np.zeros(len(trace.strings) + 1, dtype=bool)
    found[[i for i in python_names(trace) if is_launcher_frame(trace.strings[i])]] = True
    return found


def _own_parent(trace: Trace, ids: I32) -> I64:
    """Row of the innermost slice of the same track around each that is in the tree, -1 none."""
    row_of = np.full(len(trace.slices) + 1, -1, dtype=np.int64)
    row_of[ids] = np.arange(len(ids))
    at = trace.slices.parent_id[ids].astype(np.int64)
    todo = ((at >= 0) & (row_of[at] < 0)).nonzero()[0]
    while len(todo):
        at[todo] = trace.slices.parent_id[at[todo]]
        todo = todo[(at[todo] >= 0) & (row_of[at[todo]] < 0)]
    return np.where(at >= 0, row_of[at], -1)


def _enclosing(trace: Trace, ids: I32, thread: I32, place: I64, kind: int, own: I64) -> I64:
    """Row of the innermost slice on the thread's track of another kind that encloses each row, -1 none."""
    at = np.maximum.accumulate(np.where(place == kind, np.arange(len(ids)), -1)) if len(ids) else own
    start, end = trace.slices.start_ns[ids], trace.end_ns[ids]
    known = (at >= 0) & (place != kind)
    known[known] = thread[at[known]] == thread[known]
    at = np.where(known, at, -1)
    todo = (at >= 0).nonzero()[0]
    while len(todo):
        around = at[todo]
        misses = (end[around] < end[todo] - _ROUNDING_NS) | ((end[around] <= start[todo]) & (end[around] < end[todo]))
        todo = todo[misses]
        at[todo] = own[at[todo]]
        todo = todo[at[todo] >= 0]
    return at


def _depth(parent: I64) -> I64:
    """Rows above each, by jumping twice as far in each round."""
    depth = (parent >= 0).astype(np.int64)
    jump = parent.copy()
    while (jump >= 0).any():
        on = (jump >= 0).nonzero()[0]
        depth[on] += depth[jump[on]]
        jump[on] = jump[jump[on]]
    return depth
