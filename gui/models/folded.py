"""A flame graph as folded stacks, the text that Brendan Gregg's ``flamegraph.pl``, speedscope and others read."""

from __future__ import annotations

import numpy as np

from core.figures.flame import FlameGraph
from gui.models.flame_query import FlameWords


def folded(words: FlameWords, graph: FlameGraph) -> str:
    """One line per call path with time of its own: names from the outermost on, ``;`` between them, and microseconds.

    Names are whole; what would break the format in one (``;`` and line ends) is replaced. Paths of less than half a
    microsecond of their own are left out, as a count of 0 says nothing.
    """
    paths = [""] * len(graph)
    lines = []
    counts = np.round(graph.self_ns / 1000).astype(np.int64)
    for node in range(1, len(graph)):
        above = paths[int(graph.parent[node])]
        name = " ".join(words.full(node).replace(";", ",").split()) or "?"
        paths[node] = f"{above};{name}" if above else name
        if counts[node] > 0:
            lines.append(f"{paths[node]} {counts[node]}")
    return "".join(line + "\n" for line in lines)
