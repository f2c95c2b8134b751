"""Callers and callees of one function: all its calls in a flame graph, merged in both directions."""

from __future__ import annotations

import numpy as np

from core.figures.flame import THREAD_KIND, FlameGraph, laid_out
from core.tables import I64


class _Levels:
    """Nodes of a new graph, level by level, merged by name and kind below the same node."""

    def __init__(self, graph: FlameGraph) -> None:
        self._graph = graph
        self._named: list[I64] = []
        self._parents: list[I64] = []
        self._sums: list[tuple[I64, I64, I64]] = []
        self.bounds = [0]

    def add(self, above: I64, named: I64, weighed: I64) -> I64:
        """Add rows below nodes, called like ``named`` and as heavy as ``weighed``; returns the node of each."""
        graph = self._graph
        _, code = np.unique((graph.name_id[named].astype(np.int64) + 1) * 256 + graph.kind[named], return_inverse=True)
        _, first, inverse = np.unique(above * (len(named) + 1) + code, return_index=True, return_inverse=True)
        columns = graph.total_ns, graph.calls, graph.wait_ns
        sums = [np.zeros(len(first), np.int64) for _ in columns]
        for summed, column in zip(sums, columns, strict=True):
            np.add.at(summed, inverse, column[weighed])
        self._sums.append((sums[0], sums[1], sums[2]))
        self._named.append(named[first])
        self._parents.append(above[first])
        self.bounds.append(self.bounds[-1] + len(first))
        nodes: I64 = self.bounds[-2] + inverse
        return nodes

    def graph(self) -> FlameGraph:
        """Return the new graph; what no node below has is a node's own."""
        old, named, parent = self._graph, np.concatenate(self._named), np.concatenate(self._parents)
        total, calls, wait = (np.concatenate(column) for column in zip(*self._sums, strict=True))
        own = total.copy()
        np.subtract.at(own, parent[1:], total[1:])
        name, kind, longest = (column[named].astype(np.int64) for column in (old.name_id, old.kind, old.longest))
        return laid_out(parent, self.bounds, (name, kind, total, own, calls, longest, wait), 0)


def _outermost(graph: FlameGraph, node: int) -> I64:
    """Nodes of the same function as a node that lie below none of them: what calls itself counts once."""
    same = (graph.name_id == graph.name_id[node]) & (graph.kind == graph.kind[node])
    under = np.zeros(len(graph), bool)
    for level in range(1, graph.levels):
        a, b = int(graph.level_first[level]), int(graph.level_first[level + 1])
        under[a:b] = (under | same)[graph.parent[a:b]]
    found: I64 = (same & ~under).nonzero()[0].astype(np.int64)
    return found


def callees(graph: FlameGraph, node: int) -> FlameGraph:
    """What a function calls, from all places where it is called: it is the whole of the new graph."""
    made, here = _Levels(graph), _outermost(graph, node)
    below = np.full(len(graph), -1, np.int64)  # levels below the function, -1 elsewhere
    below[here] = 0
    for level in range(1, graph.levels):
        a, b = int(graph.level_first[level]), int(graph.level_first[level + 1])
        above = below[graph.parent[a:b]]
        below[a:b] = np.where(above >= 0, above + 1, below[a:b])
    order = below.argsort(kind="stable")
    parts = np.split(order, below[order].searchsorted(np.arange(int(below.max()) + 1)))[1:]
    nodes = np.full(len(graph), -1, np.int64)
    for depth, rows in enumerate(parts):
        nodes[rows] = made.add(nodes[graph.parent[rows]] if depth else np.full(len(rows), -1, np.int64), rows, rows)
    return made.graph()


def callers(graph: FlameGraph, node: int) -> FlameGraph:
    """What calls a function: it is the whole of the new graph, and below it stand its callers, with its time there."""
    made, weighed = _Levels(graph), _outermost(graph, node)
    at, nodes = weighed, made.add(np.full(len(weighed), -1, np.int64), weighed, weighed)
    while True:
        above = graph.parent[at].astype(np.int64)
        kept = (above >= 0) & (graph.kind[above] < THREAD_KIND)
        if not kept.any():
            return made.graph()
        at, weighed = above[kept], weighed[kept]
        nodes = made.add(nodes[kept], at, weighed)
