"""A flame graph: what ran, merged by call path, the costliest first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from core.figures.call_paths import CallTree, Layers, call_tree
from core.figures.lookup import View, view_of
from core.tables import I32, I64, U8, Table
from core.trace import Trace

ROOT_KIND, THREAD_KIND = 255, 254  # nodes that are no slices
CUT_PER_MILLION = 1  # of the whole: smaller nodes are left out, their time stays in those that called them
_EVERY = 64  # levels between two looks at whether it was called off

Progress = Callable[[float, str], None]


@dataclass(frozen=True, eq=False)
class FlameGraph(Table):
    """Nodes level by level, on a level from left to right: node 0 is the whole.

    ``x_ns`` is where a node begins, in nanoseconds of merged time from the left; it is ``total_ns`` wide, its children
    begin where it does, the widest first, and its ``self_ns`` is what they leave at the right. ``level_first`` bounds
    the levels: nodes of level ``k`` are ``[level_first[k], level_first[k + 1])``.
    """

    name_id: I32  # -1 for the whole and for threads without a name
    kind: U8  # SliceKind, ROOT_KIND or THREAD_KIND
    parent: I32
    total_ns: I64
    self_ns: I64
    calls: I64
    longest: I32  # longest slice of the node, -1 none
    x_ns: I64
    wait_ns: I64  # of the total: waiting for a device; 0 where waits were not asked for
    level_first: I64
    cut: int  # nodes left out, being narrower than a millionth of the whole
    unlinked_ns: int  # device time without a launch in the trace: in no node (only where device time is measured)

    @property
    def levels(self) -> int:
        """Levels, that of the whole included."""
        return len(self.level_first) - 1

    def level_of(self, node: int) -> int:
        """Level of a node."""
        return int(self.level_first.searchsorted(node, side="right")) - 1

    def ancestors(self, node: int) -> list[int]:
        """Nodes above one, the whole first."""
        chain: list[int] = []
        at = int(self.parent[node])
        while at >= 0:
            chain.append(at)
            at = int(self.parent[at])
        return chain[::-1]

    def children(self, node: int) -> range:
        """Nodes directly below one, the widest first."""
        level = self.level_of(node) + 1
        if level >= self.levels:
            return range(0)
        first, end = int(self.level_first[level]), int(self.level_first[level + 1])
        a, b = self.parent[first:end].searchsorted((node, node + 1))
        return range(first + int(a), first + int(b))


def flame_graph(
    trace: Trace,
    threads: Sequence[int],
    *,
    layers: Layers = Layers.ALL,
    device: bool = False,
    start_ns: int | None = None,
    end_ns: int | None = None,
    waits_ns: I64 | None = None,
    progress: Progress = lambda fraction, text: None,
) -> FlameGraph:
    """Merge what ran on some threads by call path.

    Parameters
    ----------
    threads
        Rows of the thread table. With several, each is a node of its own.
    layers
        Which slices make up a path.
    device
        Widths are the device time launched below a node instead of its time on the CPU.
    start_ns, end_ns
        Only this stretch: of slices that stick out, the part inside; of device work, what was launched in it.
    waits_ns
        int64[n_slices]: how long each slice itself waits for a device.
    progress
        Called with a fraction now and then; may raise `core.errors.Cancelled`.

    Notes
    -----
    Each nanosecond of a thread counts once: where slices cross each other, the later one has what the earlier leaves.
    """
    view = view_of(trace)
    low, high = trace.extent_ns
    low, high = low if start_ns is None else start_ns, high + 1 if end_ns is None else end_ns
    progress(0.05, "")
    tree = call_tree(view, threads, layers, low, high)
    progress(0.4, "")
    unlinked = 0
    if device:
        rows, unlinked = _device_rows(view, tree, threads, low, high)
    else:
        rows = _host_rows(trace, tree, low, high, waits_ns)
    progress(0.5, "")
    return _merged(trace, _under_roots(trace, rows, threads), unlinked, progress)


@dataclass(frozen=True, eq=False)
class _Rows:
    """What is merged: one row per slice; a parent's depth is one less than its children's."""

    slice_id: I32
    name_id: I64
    kind: I64
    parent: I64
    depth: I64
    thread: I32
    self_ns: I64
    wait_ns: I64  # of self_ns


def _host_rows(trace: Trace, tree: CallTree, low: int, high: int, waits_ns: I64 | None) -> _Rows:
    slices = trace.slices
    lo = np.maximum(slices.start_ns[tree.slice_id], low)
    hi = np.minimum(trace.end_ns[tree.slice_id], high)
    key = np.where(tree.parent >= 0, tree.parent, -1 - tree.thread.astype(np.int64))
    for rows in _levels(tree.depth):
        above = tree.parent[rows]
        if above[0] >= 0:
            lo[rows] = np.clip(lo[rows], lo[above], hi[above])
            hi[rows] = np.clip(hi[rows], lo[above], hi[above])
        lo[rows] = _after_siblings(key[rows], lo[rows], hi[rows])
        hi[rows] = np.maximum(hi[rows], lo[rows])
    dur = hi - lo
    inside = tree.parent >= 0
    self_ns = dur.copy()
    np.subtract.at(self_ns, tree.parent[inside], dur[inside])
    name, kind = slices.name_id[tree.slice_id].astype(np.int64), slices.kind[tree.slice_id].astype(np.int64)
    wait = np.zeros(len(dur), np.int64) if waits_ns is None else np.minimum(waits_ns[tree.slice_id], self_ns)
    return _Rows(tree.slice_id, name, kind, tree.parent, tree.depth, tree.thread, self_ns, wait)


def _levels(depth: I64) -> list[I64]:
    """Rows of each depth, in their order."""
    order = depth.argsort(kind="stable")
    if not len(depth):
        return []
    return np.split(order, depth[order].searchsorted(np.arange(1, int(depth.max()) + 1)))


def _after_siblings(group: I64, lo: I64, hi: I64) -> I64:
    """Start of each interval, moved to the end of the earlier ones of its group that reach into it."""
    order = np.lexsort((lo, group))
    group, lo, hi = group[order], lo[order], hi[order]
    heads = np.append(True, group[1:] != group[:-1]).nonzero()[0]
    number = np.arange(len(heads)).repeat(np.diff(np.append(heads, len(group))))
    base = lo[heads][number]
    # Lifting each group above all before it lets one running maximum serve for all groups.
    height = np.maximum.reduceat(hi - base, heads) + 1
    lift = np.concatenate(([0], height.cumsum()[:-1]))[number]
    reach = np.maximum.accumulate(hi - base + lift)
    before = np.concatenate(([0], reach[:-1])) - lift + base
    before[heads] = lo[heads]
    moved = np.empty_like(lo)
    moved[order] = np.maximum(lo, before)
    return moved


def _device_rows(view: View, tree: CallTree, threads: Sequence[int], low: int, high: int) -> tuple[_Rows, int]:
    """Rows of the tree without times, and the device work below them; and the time of work that nothing launched."""
    trace, slices, links = view.trace, view.trace.slices, view.trace.links
    row_of = np.full(len(slices) + 1, -1, dtype=np.int64)
    row_of[tree.slice_id] = np.arange(len(tree.slice_id))
    launch = links.launch_of[view.work]
    at = slices.start_ns[launch]
    inside = (launch >= 0) & (at >= low) & (at < high) & np.isin(view.thread[launch], threads)
    lost = (launch < 0) & (slices.start_ns[view.work] < high) & (trace.end_ns[view.work] > low)
    known = inside & (row_of[launch] >= 0)
    unlinked = int(slices.dur_ns[view.work[lost | (inside & ~known)]].sum())
    work, call = view.work[known], row_of[launch[known]]
    above = np.where(tree.parent[call] >= 0, tree.parent[call], call)  # the call itself would be in every path
    ids = np.concatenate((tree.slice_id, work)).astype(np.int32)
    rows = _Rows(
        ids,
        slices.name_id[ids].astype(np.int64),
        slices.kind[ids].astype(np.int64),
        np.concatenate((tree.parent, above)),
        np.concatenate((tree.depth, tree.depth[above] + 1)),
        np.concatenate((tree.thread, tree.thread[call])),
        np.concatenate((np.zeros(len(tree.slice_id), np.int64), slices.dur_ns[work])),
        np.zeros(len(ids), np.int64),
    )
    return rows, unlinked


def _under_roots(trace: Trace, rows: _Rows, threads: Sequence[int]) -> _Rows:
    """Put the whole above all rows and, where there are several threads, one row for each."""
    many = list(threads) if len(threads) > 1 else []
    shift = 1 + len(many)
    place = np.zeros(len(trace.threads) + 1, dtype=np.int64)
    place[many] = np.arange(1, shift)
    heads = np.zeros(shift, dtype=np.int64)
    heads[0] = -1
    names = [-1, *(int(trace.threads.name_id[t]) for t in many)]
    kinds = [ROOT_KIND, *([THREAD_KIND] * len(many))]
    parent = np.where(rows.parent >= 0, rows.parent + shift, place[rows.thread])
    return _Rows(
        np.concatenate((np.full(shift, -1), rows.slice_id)).astype(np.int32),
        np.concatenate((names, rows.name_id)),
        np.concatenate((kinds, rows.kind)),
        np.concatenate((heads, parent)),
        np.concatenate(([0] + [1] * len(many), rows.depth + (2 if many else 1))),
        np.concatenate((np.asarray([-1, *many], np.int32), rows.thread)),
        np.concatenate((np.zeros(shift, np.int64), rows.self_ns)),
        np.concatenate((np.zeros(shift, np.int64), rows.wait_ns)),
    )


def _merged(trace: Trace, rows: _Rows, unlinked: int, progress: Progress) -> FlameGraph:
    """Merge rows of one name and kind whose parents were merged, level by level; then lay the nodes out."""
    node_of = np.zeros(len(rows.parent), dtype=np.int64)
    # Threads may share a name: each keeps a node of its own.
    code = np.where(rows.kind == THREAD_KIND, -2 - rows.thread.astype(np.int64), (rows.name_id + 1) * 256 + rows.kind)
    _, code = np.unique(code, return_inverse=True)
    width = int(code.max()) + 1
    parents: list[I64] = []
    first_rows: list[I64] = []
    bounds = [0]
    levels = _levels(rows.depth)
    for number, here in enumerate(levels):
        above = node_of[rows.parent[here]] if number else np.full(len(here), 0)
        _, first, inverse = np.unique(above * width + code[here], return_index=True, return_inverse=True)
        node_of[here] = bounds[-1] + inverse
        parents.append(above[first] if number else np.full(len(first), -1))
        first_rows.append(here[first])
        bounds.append(bounds[-1] + len(first))
        if number % _EVERY == 0:
            progress(0.5 + 0.4 * number / len(levels), "")
    parent, example = np.concatenate(parents), np.concatenate(first_rows)
    count = len(parent)
    own = np.zeros(count, dtype=np.int64)
    np.add.at(own, node_of, rows.self_ns)
    total, wait = own.copy(), np.zeros(count, dtype=np.int64)
    np.add.at(wait, node_of, rows.wait_ns)
    for a, b in zip(reversed(bounds[1:-1]), reversed(bounds[2:]), strict=True):
        np.add.at(total, parent[a:b], total[a:b])
        np.add.at(wait, parent[a:b], wait[a:b])
    longest = np.full(count, -1, dtype=np.int32)
    dur = np.where(rows.slice_id >= 0, trace.slices.dur_ns[rows.slice_id], -1) if len(trace.slices) else rows.self_ns
    by_length = dur.argsort(kind="stable")
    longest[node_of[by_length]] = rows.slice_id[by_length]
    calls = np.bincount(node_of, minlength=count)
    columns = (rows.name_id[example], rows.kind[example], total, own, calls, longest.astype(np.int64), wait)
    progress(0.95, "")
    return laid_out(parent, bounds, columns, unlinked)


def laid_out(parent: I64, bounds: list[int], columns: tuple[I64, ...], unlinked: int) -> FlameGraph:
    """Order the nodes of each level below their parents, the widest first; narrow ones are left out."""
    name, kind, total, own, calls, longest, wait = columns
    keep = total * (1_000_000 // CUT_PER_MILLION) >= max(int(total[0]), 1)
    keep[0] = True
    place = np.full(len(parent), -1, dtype=np.int64)  # of a node in the new order
    x = np.zeros(len(parent), dtype=np.int64)
    order: list[I64] = []
    level_first = [0]
    for a, b in zip(bounds, bounds[1:], strict=False):
        nodes = a + keep[a:b].nonzero()[0]
        if not len(nodes):
            break
        above = place[parent[nodes]] if a else np.zeros(len(nodes), np.int64)
        nodes = nodes[np.lexsort((name[nodes], -total[nodes], above))]
        place[nodes] = level_first[-1] + np.arange(len(nodes))
        if a:
            before = np.concatenate(([0], total[nodes].cumsum()[:-1]))
            group = parent[nodes]
            heads = np.append(True, group[1:] != group[:-1]).nonzero()[0]
            lift = before[heads].repeat(np.diff(np.append(heads, len(nodes))))
            x[nodes] = x[group] + before - lift
        order.append(nodes)
        level_first.append(level_first[-1] + len(nodes))
    chosen = np.concatenate(order)
    return FlameGraph(
        name_id=name[chosen].astype(np.int32),
        kind=kind[chosen].astype(np.uint8),
        parent=np.where(parent[chosen] >= 0, place[parent[chosen]], -1).astype(np.int32),
        total_ns=total[chosen],
        self_ns=own[chosen],
        calls=calls[chosen].astype(np.int64),
        longest=longest[chosen].astype(np.int32),
        x_ns=x[chosen],
        wait_ns=wait[chosen],
        level_first=np.asarray(level_first, np.int64),
        cut=int((~keep & (total > 0)).sum()),
        unlinked_ns=unlinked,
    )
