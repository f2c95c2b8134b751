"""Flame graphs: paths merged over tracks, times that add up, and the totals of the tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.errors import Cancelled
from core.figures.call_paths import Layers
from core.figures.compute import compute_figures
from core.figures.flame import FlameGraph, flame_graph
from core.importing import open_trace
from core.kinds import DEVICE_WORK, SliceKind
from core.trace import Trace
from tests.shared import SHARED, needs_shared
from tests.trace_builder import TraceBuilder


def paths(trace: Trace, graph: FlameGraph) -> dict[str, tuple[int, int]]:
    """Path -> (total us, calls)."""
    found: dict[str, tuple[int, int]] = {}
    names = [trace.strings[int(i)] if i >= 0 else "" for i in graph.name_id]
    for node in range(1, len(graph)):
        chain = [names[i] for i in (*graph.ancestors(node), node)][1:]
        found["/".join(chain)] = (int(graph.total_ns[node]) // 1000, int(graph.calls[node]))
    return found


def mixed() -> TraceBuilder:
    """Python over a range over operators, twice; the frame of the range's own enter and exit cross it."""
    made = TraceBuilder(with_stack=1)
    made.python("train.py(1): main", 0, 1000)
    for at in (0, 500):
        made.python("torch/autograd/profiler.py(700): __enter__", at + 90, 20)
        made.range("loss", at + 100, 300)
        made.python("torch/nn/functional.py(20): nll", at + 150, 200)
        made.op("aten::mm", at + 160, 100).op("aten::empty", at + 170, 10)
        made.launch("gemm", at=at + 200, call=10, start=at + 250, dur=40)
        made.python("torch/autograd/profiler.py(710): __exit__", at + 390, 30)
    return made


def test_paths_go_through_python_ranges_and_operators_alike() -> None:
    trace = mixed().build()
    found = paths(trace, flame_graph(trace, (0,)))
    under = "train.py(1): main/loss/torch/nn/functional.py(20): nll/aten::mm"
    assert found[under] == (200, 2)
    assert found[under + "/aten::empty"] == (20, 2)
    assert found[under + "/cudaLaunchKernel"] == (20, 2)
    assert found["train.py(1): main"] == (1000, 1)
    # The frames that open and close the range are not around it; each nanosecond counts once.
    assert found["train.py(1): main/torch/autograd/profiler.py(700): __enter__"] == (40, 2)
    assert found["train.py(1): main/loss"] == (580, 2)
    assert found["train.py(1): main/torch/autograd/profiler.py(710): __exit__"] == (40, 2)


def test_library_frames_hand_what_they_call_to_what_called_them() -> None:
    trace = mixed().build()
    assert paths(trace, flame_graph(trace, (0,), layers=Layers.OWN))["train.py(1): main/loss/aten::mm"] == (200, 2)
    assert paths(trace, flame_graph(trace, (0,), layers=Layers.NO_PYTHON))["loss/aten::mm"] == (200, 2)


def test_device_time_is_that_of_what_was_launched_below() -> None:
    trace = mixed().memset(900, 7).build()
    graph = flame_graph(trace, (0,), layers=Layers.NO_PYTHON, device=True)
    assert paths(trace, graph) == {"loss": (80, 2), "loss/aten::mm": (80, 2), "loss/aten::mm/gemm": (80, 2)}
    assert graph.unlinked_ns == 7000


def test_a_stretch_takes_the_part_inside() -> None:
    trace = mixed().build()
    graph = flame_graph(trace, (0,), layers=Layers.NO_PYTHON, start_ns=200_000, end_ns=600_000)
    found = paths(trace, graph)
    assert found["loss/aten::mm"] == (60, 1)
    assert found["loss"] == (200, 1)


def test_waits_are_summed_up_along_the_path() -> None:
    trace = mixed().build()
    waits = np.zeros(len(trace.slices), np.int64)
    waits[[i for i in range(len(waits)) if trace.name(i) == "cudaLaunchKernel"]] = 7000
    graph = flame_graph(trace, (0,), layers=Layers.NO_PYTHON, waits_ns=waits)
    assert graph.wait_ns[:3].tolist() == [14_000] * 3  # the whole, loss, mm
    assert sorted(graph.wait_ns[3:].tolist()) == [0, 14_000]  # empty, launch
    assert flame_graph(trace, (0,)).wait_ns.sum() == 0


def test_nodes_lie_inside_their_parents_the_widest_first() -> None:
    made = TraceBuilder(gpu=None)
    for k in range(40):
        made.op("outer", k * 100, 90).op(f"op{k % 7}", k * 100 + 1, 10 + k % 7).op(f"op{k % 3}", k * 100 + 40, 5)
    graph = flame_graph(made.build(), (0,))
    for node in range(len(graph)):
        below = list(graph.children(node))
        assert [graph.parent[c] for c in below] == [node] * len(below)
        ends = graph.x_ns[node] + np.cumsum([graph.total_ns[c] for c in below])
        assert [graph.x_ns[c] for c in below] == [graph.x_ns[node], *ends[:-1]][: len(below)]
        assert sorted(graph.total_ns[below], reverse=True) == list(graph.total_ns[below])
        assert graph.total_ns[node] == graph.self_ns[node] + sum(graph.total_ns[c] for c in below)


def test_the_longest_slice_of_a_path_is_remembered() -> None:
    trace = TraceBuilder(gpu=None).op("a", 0, 10).op("a", 20, 30).op("a", 60, 20).build()
    graph = flame_graph(trace, (0,))
    assert trace.slices.dur_ns[graph.longest[1]] == 30_000


def test_threads_are_kept_apart_even_where_they_share_a_name() -> None:
    trace = TraceBuilder(gpu=None).op("a", 0, 10, tid=1).op("a", 5, 30, tid=2).build()
    graph = flame_graph(trace, (0, 1))
    assert sorted(graph.total_ns[1:3].tolist()) == [10_000, 30_000]
    assert int(graph.total_ns[0]) == 40_000


def test_nothing_there_is_a_graph_of_nothing() -> None:
    trace = TraceBuilder(gpu=None).op("a", 0, 10).build()
    graph = flame_graph(trace, (0,), start_ns=20_000, end_ns=30_000)
    assert len(graph) == 1 and int(graph.total_ns[0]) == 0
    assert len(flame_graph(trace, ())) == 1


def test_it_can_be_called_off() -> None:
    def stop(fraction: float, text: str) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        flame_graph(mixed().build(), (0,), progress=stop)


@needs_shared
@pytest.mark.parametrize("name", ["d01_v100_resnet50_2021_nw0.json.gz", "d08_h100_bert_small_2025.json.gz"])
def test_totals_are_those_of_the_tables(name: str) -> None:
    trace = open_trace(SHARED / "traces" / name)
    figures = compute_figures(trace)
    everyone = tuple(range(len(trace.threads)))
    host = flame_graph(trace, everyone, layers=Layers.NO_PYTHON)
    ops = host.kind == SliceKind.CPU_OP
    own = np.bincount(host.name_id[ops], weights=host.self_ns[ops], minlength=len(trace.strings))
    listed = figures.operators
    assert host.cut == 0
    np.testing.assert_allclose(own[listed.name_id], listed.host_self_ns, atol=2000)  # rounding of crossing edges
    device = flame_graph(trace, everyone, layers=Layers.NO_PYTHON, device=True)
    work = np.isin(device.kind, DEVICE_WORK)
    sums = np.bincount(device.name_id[work], weights=device.self_ns[work], minlength=len(trace.strings))
    assert sums.sum() + device.unlinked_ns == figures.kernels.device_total_ns.sum()
    if not device.unlinked_ns:
        assert sums[figures.kernels.name_id].tolist() == figures.kernels.device_total_ns.tolist()


@needs_shared
def test_recursion_of_1500_calls() -> None:
    trace = open_trace(SHARED / "traces" / "m60_own_recursion_1500.json")
    graph = flame_graph(trace, (0,))
    assert graph.levels > 1500
    assert len(graph.ancestors(len(graph) - 1)) == graph.levels - 1


def test_the_graph_of_a_file_read_from_disk(tmp_path: Path) -> None:
    trace = mixed().build(tmp_path / "t.json")
    assert int(flame_graph(trace, (0,)).total_ns[0]) == 1_000_000
