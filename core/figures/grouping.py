"""Totals of operators by name and shapes, line or stack, and of device work by name and operator."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import orjson

from core.figures.call_paths import python_names
from core.figures.lookup import NEVER, View, innermost, thread_tracks, view_of
from core.figures.model import StatTable
from core.figures.stats import device_time_on_tracks, outermost_of_name, self_time
from core.importing.bulk import event_texts
from core.kinds import SliceKind, TrackKind
from core.source_frames import is_user_frame, parse_old_stack
from core.tables import I32, I64, Bool
from core.trace import Trace

STACK_FRAMES = 5  # of the user's own, innermost first
_DIMS = re.compile(rb'"Input [Dd]ims"\s*:\s*"?(\[[\[\]\d,\s-]*\])')
_STACK = re.compile(rb'"Call stack"\s*:\s*("(?:[^"\\]|\\.)*")')
_SCALARS_AT_END = re.compile(r"(, \[\])+$")

Progress = Callable[[float, str], None]


@dataclass(frozen=True, eq=False)
class Grouped:
    """A `StatTable` with several rows for a name: row ``i`` is of ``labels[label_id[i]]`` (-1: not recorded).

    ``known`` says whether any slice has a label: without, the trace does not tell. ``backward`` marks labels that were
    taken over from the forward pass. Totals of a name add up to those of the table by name.
    """

    stats: StatTable
    label_id: I32
    labels: tuple[str, ...]
    known: bool
    backward: Bool


def operators_by_shapes(trace: Trace, progress: Progress = lambda fraction, text: None) -> Grouped:
    """Operators by name and shapes of their inputs, as ``key_averages(group_by_input_shape=True)`` groups them.

    Raises
    ------
    TraceError, core.errors.Cancelled
        See `core.importing.bulk.event_texts`: the shapes are read from the file.
    """
    view = view_of(trace)
    ids = view.by_kind(SliceKind.CPU_OP)
    label_of, texts = np.full(len(ids), -1, np.int32), dict[bytes, int]()
    if trace.meta.record_shapes is not False:
        for place, text in event_texts(trace, ids, progress):
            found = _DIMS.search(text)
            if found is not None:
                label_of[place] = texts.setdefault(found[1], len(texts))
    label_of, labels = _written_alike(label_of, [shapes(text) for text in texts])
    return _operators(view, ids, label_of, labels)


def shapes(text: bytes) -> str:
    """Input shapes as they are shown: ``[4, 8], [8, 2]``; scalars at the end are left out, a single one is ``[]``."""
    try:
        dims = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text.decode("utf-8", "replace")
    written = ", ".join(str(d) for d in dims)
    return _SCALARS_AT_END.sub("", written)


def operators_by_line(trace: Trace, progress: Progress = lambda fraction, text: None, *, frames: int = 1) -> Grouped:
    """Operators by name and the innermost of the user's own frames that they were called from.

    Parameters
    ----------
    frames
        With more than one, that many frames, innermost first (``group_by_stack_n``).

    Notes
    -----
    Operators of the backward pass, which a thread without Python runs, have the line of their forward operator.
    """
    view = view_of(trace)
    ids = view.by_kind(SliceKind.CPU_OP)
    progress(0.05, "")
    if (trace.slices.kind == int(SliceKind.PYTHON)).any():
        frame = _own_frame(view, ids)
        progress(0.4, "")
        label_of, labels = _chains(trace, frame, frames)
        progress(0.7, "")
    else:
        label_of, labels = _old_stacks(trace, ids, frames, progress)
    backward = _lend(trace, ids, label_of)
    return _operators(view, ids, label_of, labels, backward)


def device_work_by_operator(trace: Trace, progress: Progress = lambda fraction, text: None) -> Grouped:
    """Kernels, copies and memsets by name and the innermost operator that launched them."""
    view = view_of(trace)
    op = trace.links.op_of[view.work]
    label_of = np.where(op >= 0, trace.slices.name_id[op], -1)
    used, inverse = np.unique(label_of, return_inverse=True)
    labels = tuple(trace.strings[i] for i in used.tolist() if i >= 0)
    label_of = (inverse - int(bool(len(used)) and used[0] < 0)).astype(np.int32)
    return device_work(view, label_of, labels)


def device_work(view: View, label_of: I32, labels: tuple[str, ...]) -> Grouped:
    """Totals of device work by name and label; ``label_of`` int32[k] goes with ``view.work``."""
    dur = view.trace.slices.dur_ns[view.work]
    nothing, all_of_it = np.zeros(len(dur), np.int64), np.ones(len(dur), bool)
    return _grouped(view.trace, view.work, label_of, labels, (nothing, nothing, dur, dur), all_of_it, None)


def _operators(view: View, ids: I32, label_of: I32, labels: tuple[str, ...], backward: Bool | None = None) -> Grouped:
    outer, adds = outermost_of_name(view, ids)
    own = device_time_on_tracks(view)
    before = np.concatenate(([0], own.cumsum()))
    end = np.maximum(view.trace.slices.subtree_end[ids], ids + 1)
    values = (adds, self_time(view)[ids], np.where(outer, before[end] - before[ids], 0), own[ids])
    return _grouped(view.trace, ids, label_of, labels, values, outer, backward)


def _grouped(
    trace: Trace,
    ids: I32,
    label_of: I32,
    labels: tuple[str, ...],
    values: tuple[I64, I64, I64, I64],
    outer: Bool,
    backward: Bool | None,
) -> Grouped:
    """Sum ``values`` (host total, host self, device total, device self, ns) by name and label."""
    mark = np.zeros(len(ids), np.int64) if backward is None else backward.astype(np.int64)
    key = (trace.slices.name_id[ids].astype(np.int64) * (len(labels) + 1) + label_of + 1) * 2 + mark
    groups, first, group = np.unique(key, return_index=True, return_inverse=True)
    sums = [np.bincount(group, weights=v, minlength=len(groups)).astype(np.int64) for v in values]
    dur = trace.slices.dur_ns[ids]
    shortest, longest = np.full(len(groups), NEVER), np.zeros(len(groups), np.int64)
    np.minimum.at(shortest, group, dur)
    np.maximum.at(longest, group, dur)
    example = np.zeros(len(groups), np.int32)
    by_length = dur.argsort(kind="stable")
    example[group[by_length]] = ids[by_length]  # the last one written is the longest
    order = (-np.maximum(sums[0], sums[2])).argsort(kind="stable")
    stats = StatTable(
        name_id=trace.slices.name_id[ids][first][order],
        calls=np.bincount(group, minlength=len(groups)).astype(np.int64)[order],
        host_total_ns=sums[0][order],
        host_self_ns=sums[1][order],
        device_total_ns=sums[2][order],
        device_self_ns=sums[3][order],
        min_ns=shortest[order],
        max_ns=longest[order],
        first_slice=example[order],
    )
    return Grouped(stats, label_of[first][order], labels, bool((label_of >= 0).any()), mark[first][order] > 0)


def _own_frame(view: View, ids: I32) -> I32:
    """Innermost Python slice of the user's own code around each slice, -1 none: int32[k]."""
    trace, slices = view.trace, view.trace.slices
    track = thread_tracks(trace, TrackKind.CPU_PYTHON)[view.thread[ids]]
    at = innermost(trace, track, slices.start_ns[ids], (SliceKind.PYTHON,))
    own = np.zeros(len(trace.strings) + 1, bool)
    own[[i for i in python_names(trace) if is_user_frame(trace.strings[i])]] = True
    todo = ((at >= 0) & ~own[slices.name_id[at]]).nonzero()[0]
    while len(todo):
        at[todo] = slices.parent_id[at[todo]]
        todo = todo[(at[todo] >= 0) & ~own[slices.name_id[at[todo]]]]
    return at


def _lend(trace: Trace, ids: I32, label_of: I32) -> Bool:
    """Give slices without a label that of their forward operator; tells for each whether it was lent."""
    label = np.full(len(trace.slices) + 1, -1, np.int32)
    label[ids] = label_of
    lent = (label_of < 0) & (label[_forward_of(trace, ids)] >= 0)
    label_of[lent] = label[_forward_of(trace, ids[lent])]
    return lent


def _forward_of(trace: Trace, ids: I32) -> I32:
    """Forward operator of each slice or of the innermost one around it that has one, -1 none: int32[k]."""
    links = trace.links
    forward = np.full(len(trace.slices) + 1, -1, np.int32)
    forward[links.backward] = links.forward
    at = ids.copy()
    todo = (forward[at] < 0).nonzero()[0]
    while len(todo):
        at[todo] = trace.slices.parent_id[at[todo]]
        todo = todo[(at[todo] >= 0) & (forward[at[todo]] < 0)]
    return np.where(at >= 0, forward[at], -1).astype(np.int32)


def _chains(trace: Trace, frame: I32, frames: int) -> tuple[I32, tuple[str, ...]]:
    """Label of each frame: its name, and those of the user's own frames around it, innermost first."""
    used, inverse = np.unique(frame, return_inverse=True)
    known: dict[tuple[str, ...], int] = {}
    label_of_used = np.full(len(used), -1, np.int32)
    for k, at in enumerate(used.tolist()):
        chain: list[str] = []
        while at >= 0 and len(chain) < frames:
            name = trace.name(at)
            if is_user_frame(name):
                chain.append(name)
            at = int(trace.slices.parent_id[at])
        if chain:
            label_of_used[k] = known.setdefault(tuple(chain), len(known))
    return _written_alike(label_of_used[inverse], [" ← ".join(chain) for chain in known])


def _old_stacks(trace: Trace, ids: I32, frames: int, progress: Progress) -> tuple[I32, tuple[str, ...]]:
    """Labels from the ``Call stack`` that torch 1.8 to 1.11 wrote on operators."""
    label_of, texts = np.full(len(ids), -1, np.int32), dict[bytes, int]()
    for place, text in event_texts(trace, ids, progress):
        found = _STACK.search(text)
        if found is not None:
            label_of[place] = texts.setdefault(found[1], len(texts))
    return _written_alike(label_of, [_own_of_old(text, frames) for text in texts])


def _own_of_old(text: bytes, frames: int) -> str:
    try:
        stack = str(orjson.loads(text))
    except orjson.JSONDecodeError:
        return ""
    names = (f"{f.file}({f.line}): {f.function}" for f in parse_old_stack(stack))
    return " ← ".join([name for name in names if is_user_frame(name)][:frames])


def _written_alike(label_of: I32, texts: list[str]) -> tuple[I32, tuple[str, ...]]:
    """Give labels that read the same one number; those that read "" are none."""
    known: dict[str, int] = {}
    new = np.asarray([known.setdefault(text, len(known)) if text else -1 for text in texts] + [-1], np.int32)
    return new[label_of], tuple(known)
