"""The busy time of the budget splits into computing, communication alone and copies alone, and adds up."""

from __future__ import annotations

import pytest

from core.figures.busy_parts import busy_parts
from core.figures.compute import compute_figures
from core.importing import open_trace
from tests.shared import TRACES, needs_shared
from tests.trace_builder import TraceBuilder


def device_trace():
    """Kernel 0-40 us, a collective 30-70 (30 alone), a copy 65-90 (20 alone), idle up to 100, a kernel 100-101."""
    builder = TraceBuilder().kernel("gemm", 0, 40, 1, stream=7)
    builder.kernel("ncclDevKernel_AllReduce_Sum_f32", 30, 40, 2, stream=20)
    builder.memcpy("HtoD (Pinned -> Device)", 65, 25, 3, stream=22)
    return builder.kernel("gemm", 100, 1, 4, stream=7)


def test_parts_add_up_to_the_busy_time():
    figures = compute_figures(device_trace().build())
    parts = busy_parts(figures)
    assert sum(parts.values()) == pytest.approx(figures.budget.busy_ns)
    assert parts["communication_only"] == pytest.approx(30_000, abs=1)
    assert parts["copies_only"] == pytest.approx(20_000, abs=1)
    assert parts["computing"] == pytest.approx(41_000, abs=1)


def test_nothing_is_split_off_where_only_kernels_ran():
    figures = compute_figures(TraceBuilder().op("aten::mm", 0, 5).build())
    assert busy_parts(figures) in ({}, {"busy": 0.0})


@needs_shared
@pytest.mark.parametrize("path", sorted(TRACES.glob("d*.json*")), ids=lambda p: p.name[:3])
def test_parts_of_real_traces_add_up(path):
    figures = compute_figures(open_trace(path))
    if figures.budget.busy_ns:
        assert sum(busy_parts(figures).values()) == pytest.approx(figures.budget.busy_ns, abs=1)
