"""Totals by name: operators, device work, ranges, modules, Python functions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core import sets
from core.figures.lookup import NEVER, View, distinct, innermost, thread_tracks
from core.figures.model import StatTable
from core.kinds import SliceKind, TrackKind
from core.tables import I32, I64, Bool
from core.trace import Trace

_NO_OVERFLOW = 2.0**62
_PART = 1 << 16
_FEW_NAMES = (1 << 16) - 1  # that fit in 16 bits, with one number left for "none"
_MOST_STRETCHES = 16


def self_time(view: View) -> I64:
    """Duration of each slice minus what its direct children cover: int64[n_slices], ns, >= 0.

    Children lie on the same track; those of a range, a step or a Python frame are also the outermost operators and
    calls of its thread that begin in it and in nothing nested in it. They count as far as they lie inside their parent,
    and children that cross each other count once.
    """
    own = _without_children(view) if view.is_neat else _without_any_children(view)
    calls = outermost_calls(view.trace)
    calls = calls[view.valid[calls]]
    for parent in owners(view.trace, calls):
        _take_calls(view, own, calls[parent >= 0], parent[parent >= 0])
    return np.maximum(own, 0, out=own)


def _without_any_children(view: View) -> I64:
    """Return the same for any table: children that cross each other count once, each as far as its parent reaches."""
    slices, end = view.trace.slices, view.trace.end_ns
    own = slices.dur_ns.copy()
    for rows in _families(slices.parent_id):
        above = slices.parent_id[rows]
        child = (((above >= 0) & view.valid[rows]).nonzero()[0] + rows.start).astype(np.int32)
        if not len(child):
            continue
        child = child[slices.parent_id[child].argsort(kind="stable")]  # preorder: children of one parent by start
        parent = slices.parent_id[child]
        start = slices.start_ns[child] - slices.start_ns[parent]
        stop = np.minimum(end[child], end[parent]) - slices.start_ns[parent]
        heads = sets.changes(parent).nonzero()[0]
        own[parent[heads]] -= np.add.reduceat(_uncovered(parent, start, stop), heads)
    return own


def _without_children(view: View) -> I64:
    """Duration of each slice minus its direct children's, where all slices nest (`View.is_neat`), ns."""
    slices = view.trace.slices
    own = slices.dur_ns.copy()
    for first in range(0, len(slices), _PART):
        above = slices.parent_id[first : first + _PART]
        nested = (above >= 0).nonzero()[0]
        np.subtract.at(own, above[nested], slices.dur_ns[first : first + _PART][nested])
    return own


def _take_calls(view: View, own: I64, calls: I32, parent: I32) -> None:
    """Set the self time of those that calls begin in; a frame that a call runs is time of the call."""
    slices, end = view.trace.slices, view.trace.end_ns
    with_calls = np.zeros(len(slices) + 1, dtype=bool)  # a parent of -1 has the last place
    with_calls[parent] = True
    child = (with_calls[slices.parent_id] & view.valid).nonzero()[0].astype(np.int32)
    parent, child = np.concatenate((slices.parent_id[child], parent)), np.concatenate((child, calls))
    order = np.lexsort((slices.start_ns[child], parent))
    parent, child = parent[order], child[order]
    start = slices.start_ns[child] - slices.start_ns[parent]
    stop = np.minimum(end[child], end[parent]) - slices.start_ns[parent]
    heads = sets.changes(parent).nonzero()[0]
    if len(heads):
        own[parent[heads]] = slices.dur_ns[parent[heads]] - np.add.reduceat(_uncovered(parent, start, stop), heads)


def outermost_calls(trace: Trace) -> I32:
    """Operators and runtime calls of all threads that lie in no other one: int32[k], ascending."""
    tracks, found = trace.tracks, [np.zeros(0, np.int64)]
    for track in (tracks.kind == int(TrackKind.CPU_OPS)).nonzero()[0].tolist():
        first, last = int(tracks.first_id[track]), int(tracks.end_id[track])
        found.append((trace.slices.parent_id[first:last] < 0).nonzero()[0] + first)
    return np.sort(np.concatenate(found)).astype(np.int32)


def owners(trace: Trace, calls: I32) -> tuple[I32, I32]:
    """Innermost range or step, and innermost Python frame, of the thread of each call, in which it begins: -1 for none.

    Parameters
    ----------
    calls
        int32[k], slices of CPU threads.
    """
    thread, at = trace.tracks.thread_id[trace.slices.track_id[calls]], trace.slices.start_ns[calls]
    ranges = innermost(trace, thread_tracks(trace, TrackKind.CPU_RANGES)[thread], at, (SliceKind.RANGE, SliceKind.STEP))
    frames = innermost(trace, thread_tracks(trace, TrackKind.CPU_PYTHON)[thread], at, (SliceKind.PYTHON,))
    return ranges, frames


def _families(parent_id: I32) -> Iterator[slice]:
    """Cut rows into stretches that hold all children of their rows, as each row needs half a dozen columns meanwhile.

    Slices that cross each other are the reason to look further than to the next root.
    """
    count = len(parent_id)
    lowest = np.where(parent_id < 0, np.int32(count), parent_id)
    np.minimum.accumulate(lowest[::-1], out=lowest[::-1])  # the first row that has a child from here on
    safe = (lowest >= np.arange(count, dtype=np.int32)).nonzero()[0]
    first = 0
    while first < count:
        at = int(safe.searchsorted(first + _PART))
        last = int(safe[at]) if at < len(safe) else count
        yield slice(first, last)
        first = last


def _parts(group: NDArray[Any]) -> Iterator[slice]:
    """Cut ascending groups into stretches of whole groups, as each row needs half a dozen columns meanwhile."""
    first = 0
    while first < len(group):
        last = min(first + _PART, len(group))
        last += int(group[last:].searchsorted(group[last - 1], side="right"))
        yield slice(first, last)
        first = last


def _uncovered(group: I64 | I32, start: I64, stop: I64) -> I64:
    """Part of each interval that no earlier interval of its group covers, ns; groups are contiguous, starts ascend."""
    if not len(group):
        return np.zeros(0, dtype=np.int64)
    head = sets.changes(group)
    stop = np.maximum(stop, 0)
    result: I64 = np.maximum(stop - np.maximum(start, _reached(head, stop)), 0)
    return result


def _reached(head: Bool, stop: I64) -> I64:
    """Furthest end (none below 0) among the earlier intervals of each one's group, 0 for the first of a group."""
    heads = head.nonzero()[0]
    height = np.maximum.reduceat(stop, heads) + 1
    if float(height.sum(dtype=np.float64)) < _NO_OVERFLOW:
        # Lifting each group above all before it lets one running maximum serve for all groups.
        lift = np.concatenate(([0], height.cumsum()[:-1]))[head.cumsum() - 1]
        reach = np.maximum.accumulate(stop + lift) - lift
    else:  # a stray clock stretched the trace over decades
        reach = np.empty_like(stop)
        for first, last in zip(heads, np.append(heads[1:], len(stop)), strict=True):
            np.maximum.accumulate(stop[first:last], out=reach[first:last])
    before = np.concatenate(([0], reach[:-1]))
    before[heads] = 0
    return before


def outermost_of_name(view: View, ids: I32) -> tuple[Bool, I64]:
    """For slices grouped by (name, track): is no slice of that name around it, and the time it adds to their union.

    Recursion is the reason: a function that calls itself spends its time once.
    """
    slices, end = view.trace.slices, view.trace.end_ns
    base = int(slices.start_ns[ids].min()) if len(ids) else 0
    adds = np.zeros(len(ids), dtype=np.int64)
    outer = np.zeros(len(ids), dtype=bool)
    for first, last in _stretches(view, ids):
        order, key = _by_name(view, ids[first:last])
        order += first
        for rows in _parts(key):
            part = order[rows]
            here = ids[part]
            start, stop = slices.start_ns[here] - base, np.maximum(end[here] - base, 0)
            head = sets.changes(key[rows])
            reached = _reached(head, stop)
            outer[part] = head | (start >= reached)
            adds[part] = np.maximum(stop - np.maximum(start, reached), 0)
    return outer, adds


def _stretches(view: View, ids: I32) -> list[tuple[int, int]]:
    """Cut ascending rows into those of each track where that is worth its while, else leave them whole."""
    if len(ids) < _PART:
        return [(0, len(ids))]
    tracks = view.trace.tracks
    borders = sets.distinct(ids.searchsorted(np.append(tracks.first_id, tracks.end_id)))
    if len(borders) > _MOST_STRETCHES:
        return [(0, len(ids))]
    return list(pairwise(borders.tolist()))


def _by_name(view: View, ids: I32) -> tuple[I32, NDArray[Any]]:
    """Order by (name, track), rows of one track and name as they are: preorder, so that starts ascend; and the keys."""
    slices = view.trace.slices
    name, track = slices.name_id[ids], slices.track_id[ids]
    if len(ids) >= _PART and len(view.trace.strings) < _FEW_NAMES and bool((track == track[0]).all()):
        key: NDArray[Any] = name.astype(
            np.uint16
        )  # so short numbers are sorted by their digits, in a tenth of the time
    else:
        key = name.astype(np.int64)
        key *= len(view.trace.tracks) + 1
        key += track
    order = key.argsort(kind="stable").astype(np.int32)
    return order, key[order]


def device_time_on_tracks(view: View) -> I64:
    """Device time charged to each CPU slice itself: to the innermost operator above the launch, else to the launch.

    int64[n_slices], ns. Summed over a subtree it is the device time launched below a slice of the operator tracks.
    """
    links = view.trace.links
    valid = view.valid[links.launched]
    work, by = links.launched.compress(valid), links.launched_by.compress(valid)
    op = links.op_of[work]
    owner = np.where(op >= 0, op, by)
    sums = np.zeros(len(view.trace.slices), dtype=np.int64)
    np.add.at(sums, owner, view.trace.slices.dur_ns[work])
    return sums


def _no_stats() -> StatTable:
    ids, ns = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64)
    return StatTable(
        name_id=ids,
        calls=ns,
        host_total_ns=ns,
        host_self_ns=ns,
        device_total_ns=ns,
        device_self_ns=ns,
        min_ns=ns,
        max_ns=ns,
        first_slice=ids,
    )


def table(
    view: View,
    ids: I32,
    self_ns: I64,
    device_total: I64,
    device_self: I64,
    outermost: tuple[Bool, I64] | None = None,
) -> StatTable:
    """Aggregate slices by name.

    Parameters
    ----------
    ids
        int32[k], slices to aggregate.
    self_ns, device_total, device_self
        int64[k], ns, per entry of ``ids``. Totals of recursive calls are taken from the outermost one only.
    outermost
        As of `outermost_of_name`, where it is known.
    """
    slices = view.trace.slices
    if not len(ids):
        return _no_stats()
    names, group = _grouped(slices.name_id[ids], len(view.trace.strings))

    def total(values: I64) -> I64:
        return np.bincount(group, weights=values, minlength=len(names)).astype(np.int64)

    outer, adds = outermost_of_name(view, ids) if outermost is None else outermost
    host, device = total(adds), total(device_total if outer.all() else np.where(outer, device_total, 0))
    del outer, adds
    dur = slices.dur_ns[ids]
    shortest = np.full(len(names), NEVER)
    longest = np.zeros(len(names), dtype=np.int64)
    np.minimum.at(shortest, group, dur)
    np.maximum.at(longest, group, dur)
    example = np.zeros(len(names), dtype=np.int32)
    at_most = (dur == longest[group]).nonzero()[0][::-1]  # reversed: the first of equals is written last
    example[group[at_most]] = ids[at_most]
    order = (-np.maximum(host, device)).argsort(kind="stable")
    return StatTable(
        name_id=names[order].astype(np.int32),
        calls=np.bincount(group, minlength=len(names)).astype(np.int64)[order],
        host_total_ns=host[order],
        # Slices of one name that cross each other share time that each of them spends itself: it is counted once.
        host_self_ns=np.minimum(total(self_ns), host)[order],
        device_total_ns=device[order],
        device_self_ns=total(device_self)[order],
        min_ns=shortest[order],
        max_ns=longest[order],
        first_slice=example[order],
    )


def _grouped(name_id: I32, strings: int) -> tuple[I64, I64]:
    """Distinct name ids (ascending), and the group of each entry: as ``np.unique`` with its inverse, without sorting.

    A slice without a name (-1) has the last place of the look-up table.
    """
    seen = np.zeros(strings + 1, dtype=bool)
    seen[name_id] = True
    names = seen.nonzero()[0]
    group_of = np.zeros(strings + 1, dtype=np.int64)
    group_of[names] = np.arange(len(names))
    return np.where(names == strings, -1, names), group_of[name_id]


def operator_stats(view: View, self_ns: I64) -> StatTable:
    """Operators: device time is that of all work launched below (total) or with no operator between (self)."""
    ids = view.by_kind(SliceKind.CPU_OP)
    own = device_time_on_tracks(view)
    device_self = own[ids]
    upto = own.cumsum(out=own)  # each row's own included
    total = upto[np.maximum(view.trace.slices.subtree_end[ids] - 1, ids)]
    total -= upto[ids]
    total += device_self
    del own, upto  # what is as long as the trace is let go before the table is made
    return table(view, ids, self_ns[ids], total, device_self)


def device_stats(view: View) -> StatTable:
    """Kernels, copies and memsets. They spend no time on the host: those columns are 0."""
    ids = view.work
    dur = view.trace.slices.dur_ns[ids]
    none = np.zeros(len(ids), np.int64)
    spent = np.bincount(view.trace.slices.name_id[ids] + 1, weights=dur)
    alike = len(sets.distinct(spent[spent > 0])) < np.count_nonzero(spent) or bool((dur == 0).any())
    # Only where two names took equally long does it matter which of them overlaps itself less.
    result = table(view, ids, none, dur, dur, None if alike else (np.ones(len(ids), dtype=bool), none))
    order = (-result.device_self_ns).argsort(kind="stable")
    return StatTable(
        name_id=result.name_id[order],
        calls=result.calls[order],
        host_total_ns=np.zeros(len(order), dtype=np.int64),
        host_self_ns=np.zeros(len(order), dtype=np.int64),
        # Work of one name may overlap itself on several streams: the sum of durations, as all profilers count it.
        device_total_ns=result.device_self_ns[order],
        device_self_ns=result.device_self_ns[order],
        min_ns=result.min_ns[order],
        max_ns=result.max_ns[order],
        first_slice=result.first_slice[order],
    )


def thread_stats(view: View, self_ns: I64, kind: SliceKind, track: TrackKind, *classes: Bool) -> tuple[StatTable, ...]:
    """Ranges, modules or Python functions: device time is that of the work launched by their thread meanwhile.

    Work that another thread launches for them (the backward pass of a module) is not theirs. Returns one table for
    each class of names; a single one of all names when none is given.
    """
    ids = view.by_kind(kind)
    total, own = _launched_meanwhile(view, ids, kind, track)
    if not classes:
        return (table(view, ids, self_ns[ids], total, own),)
    name = view.trace.slices.name_id[ids]
    masks = [only[name] & (name >= 0) if len(only) else np.zeros(len(ids), dtype=bool) for only in classes]
    return tuple(table(view, ids[keep], self_ns[ids[keep]], total[keep], own[keep]) for keep in masks)


def _found_before(values: I64, time_ns: I64) -> I64:
    """How many of ascending values lie before each instant: the fewer are looked up among the others if both ascend."""
    if 4 * len(values) > len(time_ns) or not bool((time_ns[1:] >= time_ns[:-1]).all()):
        return values.searchsorted(time_ns, side="left")
    found = np.bincount(time_ns.searchsorted(values, side="right"), minlength=len(time_ns) + 1)
    return found[:-1].cumsum(out=found[:-1])


def _launched_meanwhile(view: View, ids: I32, kind: SliceKind, track: TrackKind) -> tuple[I64, I64]:
    """Device time launched by the thread of each slice while it ran, and while it was the innermost of its kind."""
    links, slices = view.trace.links, view.trace.slices
    total = np.zeros(len(ids), dtype=np.int64)
    own = np.zeros(len(ids), dtype=np.int64)
    good = view.valid[links.launched]
    work, by = links.launched[good], links.launched_by[good]
    if not len(work) or not len(ids):
        return total, own
    thread, at = view.thread[by], slices.start_ns[by]
    order = np.lexsort((at, thread))
    work, thread, at = work[order], thread[order], at[order]
    before = np.concatenate(([0], slices.dur_ns[work].cumsum()))
    of = view.thread[ids]
    threads = distinct(of) if int(of.min()) >= 0 else sets.distinct(of).tolist()
    for one in threads:
        a, b = thread.searchsorted(one, side="left"), thread.searchsorted(one, side="right")
        mine: Any = slice(None) if len(threads) == 1 else (of == one).nonzero()[0]
        low = a + _found_before(at[a:b], slices.start_ns[ids[mine]])
        high = a + at[a:b].searchsorted(view.trace.end_ns[ids[mine]], side="left")
        total[mine] = before[high] - before[low]
    inner = innermost(view.trace, thread_tracks(view.trace, track)[thread], at, (kind,))
    sums = np.zeros(len(slices), dtype=np.int64)
    within = (inner >= 0).nonzero()[0]
    np.add.at(sums, inner[within], slices.dur_ns[work[within]])
    return total, sums[ids]
