"""Callers and callees of one function, merged from all places where it is called."""

from __future__ import annotations

from core.figures.flame import FlameGraph, flame_graph
from core.figures.sandwich import callees, callers
from core.trace import Trace
from tests.core.figures.test_flame import paths
from tests.trace_builder import TraceBuilder


def built() -> Trace:
    """``mm`` is called by ``linear`` (twice) and by ``attend``, and once by itself."""
    made = TraceBuilder()
    made.op("linear", 0, 100).op("mm", 10, 50).op("fill", 20, 10)
    made.op("attend", 200, 200).op("mm", 210, 100).op("mm", 220, 50).op("fill", 230, 5)
    made.op("linear", 500, 60).op("mm", 510, 30)
    return made.build()


def node_of(trace: Trace, graph: FlameGraph, name: str) -> int:
    return next(k for k in range(1, len(graph)) if trace.strings[int(graph.name_id[k])] == name)


def test_callees_are_those_of_all_calls_and_what_calls_itself_counts_once() -> None:
    trace = built()
    graph = flame_graph(trace, (0,))
    made = callees(graph, node_of(trace, graph, "mm"))
    assert int(made.total_ns[0]) == 180_000
    assert int(made.calls[0]) == 3
    assert paths(trace, made) == {"fill": (10, 1), "mm": (50, 1), "mm/fill": (5, 1)}
    assert int(made.self_ns.sum()) == 180_000


def test_callers_share_the_time_that_the_function_takes_below_them() -> None:
    trace = built()
    graph = flame_graph(trace, (0,))
    made = callers(graph, node_of(trace, graph, "mm"))
    assert int(made.total_ns[0]) == 180_000
    assert paths(trace, made) == {"attend": (100, 1), "linear": (80, 2)}
    below = callers(graph, node_of(trace, graph, "fill"))
    assert paths(trace, below)["mm"] == (15, 2)
    assert paths(trace, below)["mm/mm/attend"] == (5, 1)
    assert not len(callers(graph, node_of(trace, graph, "linear")).children(0))
