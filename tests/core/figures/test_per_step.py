"""Time of one name in each step."""

from __future__ import annotations

from core.figures.compute import compute_figures
from core.figures.per_step import per_step
from tests.trace_builder import TraceBuilder, rows


def test_each_step_has_its_own_time() -> None:
    made = TraceBuilder()
    for k, long in enumerate((10, 40, 20)):
        made.step(k, k * 1000, 900)
        made.op("aten::mm", k * 1000 + 10, long + 20).op("aten::mm", k * 1000 + 12, 5).op("aten::mm", k * 1000 + 300, 7)
        # The kernel runs in the next step: it belongs to the one that launched it.
        made.launch("gemm", at=k * 1000 + 15, call=2, start=k * 1000 + 1100, dur=long)
    made.op("aten::mm", 5000, 100)
    trace = made.build()
    figures = compute_figures(trace)
    ops = per_step(trace, figures, rows(trace, "aten::mm")[0])
    assert (ops.time_ns // 1000).tolist() == [37, 67, 47]  # what is inside itself counts once
    assert ops.calls.tolist() == [3, 3, 3]
    assert [trace.slices.dur_ns[i] // 1000 for i in ops.longest] == [30, 60, 40]
    work = per_step(trace, figures, rows(trace, "gemm")[0])
    assert (work.time_ns // 1000).tolist() == [10, 40, 20]
    assert work.counted.tolist() == figures.step_figures.counted.tolist()


def test_a_step_without_it_is_nothing() -> None:
    trace = TraceBuilder(gpu=None).step(0, 0, 100).step(1, 200, 100).op("aten::mm", 210, 50).build()
    found = per_step(trace, compute_figures(trace), rows(trace, "aten::mm")[0])
    assert found.time_ns.tolist() == [0, 50_000] and found.longest[0] == -1
