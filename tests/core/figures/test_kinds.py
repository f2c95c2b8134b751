"""Kinds of trace: each figure is right or unknown, never a 0 that was not measured."""

from __future__ import annotations

import pytest

from core.analysis import Analysis, analyze
from core.figures.shares import step_threads
from core.kinds import GapCause
from core.trace import Trace
from tests.trace_builder import TraceBuilder

STEP_US = 1000


def analysed(builder: TraceBuilder) -> tuple[Trace, Analysis]:
    trace = builder.build()
    return trace, analyze(trace)


def test_rocm_waits_in_its_copy():
    """``hipMemcpyWithStream`` under the category of CUDA's runtime blocks until its copy has ended."""
    builder = TraceBuilder(gpu="AMD Instinct MI300X")
    for i in range(4):
        at = i * STEP_US
        builder.step(i, at, STEP_US).op("aten::mm", at + 10, 20)
        builder.runtime("hipLaunchKernel", at + 12, 6, 2 * i + 1).kernel("Cijk_gemm", at + 30, 400, 2 * i + 1)
        builder.op("aten::item", at + 50, 420).runtime("hipMemcpyWithStream", at + 52, 400, 2 * i + 2)
        builder.memcpy("DtoH (Device -> Host)", at + 431, 5, 2 * i + 2)
    _, analysis = analysed(builder)
    summary = analysis.figures.summary
    assert summary.sync_points_per_step == 1
    assert summary.sync_wait_ns_per_step == pytest.approx(384_000, abs=3000)
    assert summary.gpu_busy_pct == pytest.approx(40.5, abs=0.1)
    assert summary.sustained_step_ns == pytest.approx(1e6, rel=0.01)


def test_device_work_alone_knows_the_device_and_nothing_of_the_host():
    builder = TraceBuilder()
    for i in range(20):
        builder.kernel("gemm", i * 100, 60)
    _, analysis = analysed(builder)
    summary = analysis.figures.summary
    assert summary.gpu_busy_pct == pytest.approx(100 * 1200 / 1960, abs=0.1)
    unknown = (summary.step_ns, summary.period_ns, summary.sustained_step_ns, summary.sync_points_per_step,
               summary.sync_wait_ns_per_step, summary.kernels_per_step)  # fmt: skip
    assert set(unknown) == {None}
    assert summary.verdict == "unknown"
    assert {k for k, ns in analysis.figures.budget.idle_by_cause_ns.items() if ns} == {GapCause.UNKNOWN}


def test_calls_and_device_work_without_operators():
    builder = TraceBuilder()
    for i in range(20):
        builder.launch("gemm", at=i * 100, call=5, start=i * 100 + 8, dur=60)
    _, analysis = analysed(builder)
    summary = analysis.figures.summary
    assert summary.gpu_busy_pct == pytest.approx(100 * 1200 / 1968, abs=0.1)
    assert (summary.step_ns, summary.sustained_step_ns) == (None, None)
    assert summary.verdict == "host_bound"


def test_steps_without_device_work_are_no_idle_device():
    builder = TraceBuilder(gpu=None)
    for i in range(4):
        builder.step(i, i * STEP_US, STEP_US).op("aten::mm", i * STEP_US + 10, 900)
    _, analysis = analysed(builder)
    summary = analysis.figures.summary
    assert (summary.gpu_busy_pct, summary.kernel_busy_pct, summary.device_step_ns, summary.period_ns) == (None,) * 4
    assert analysis.figures.budget.busy_ns is None
    assert analysis.figures.step_figures.gpu_busy_ns.tolist() == [-1] * 4
    assert summary.sustained_step_ns == pytest.approx(1e6, rel=0.01)


def test_two_threads_with_steps_at_once():
    """The slower loop sets the pace of the pair, and each thread has its own mean."""
    builder = TraceBuilder()
    for i in range(5):
        builder.step(i, i * 1000, 1000, tid=1).step(i, i * 1500 + 50, 1500, tid=2)
        builder.launch("k", at=i * 1000 + 10, call=5, start=i * 1000 + 20, dur=100, tid=1, stream=7)
        builder.launch("k", at=i * 1500 + 60, call=5, start=i * 1500 + 170, dur=100, tid=2, stream=9)
    trace, analysis = analysed(builder)
    assert [one.step_ns for one in step_threads(trace, analysis.figures)] == [1e6, 1.5e6]
    assert analysis.figures.summary.sustained_step_ns == pytest.approx(1.5e6, rel=0.01)
    budget = analysis.figures.budget
    assert budget.busy_ns is not None
    assert budget.period_ns == budget.busy_ns + sum(budget.idle_by_cause_ns.values())


def test_one_launch_of_a_graph_owns_hundreds_of_kernels():
    builder = TraceBuilder()
    for i in range(4):
        at = i * STEP_US
        builder.step(i, at, STEP_US).runtime("cudaGraphLaunch", at + 10, 20, i + 1)
        for k in range(300):
            builder.kernel(f"node_{k % 9}", at + 40 + k * 2, 1.5, i + 1)
    _, analysis = analysed(builder)
    summary = analysis.figures.summary
    assert summary.kernels_per_step == 300
    assert analysis.figures.extra["launches"].tolist() == [4.0]
    assert summary.gpu_busy_pct == pytest.approx(45.0, abs=0.1)
    assert summary.period_ns == pytest.approx(1e6, rel=0.001)
    assert summary.sustained_step_ns == pytest.approx(1e6, rel=0.01)


def test_device_work_of_the_step_before_the_window_belongs_to_no_step():
    """It keeps the device busy, and is in no step's kernels, device step or period."""
    builder = TraceBuilder().kernel("before", -20, 320)
    for i in range(4):
        at = i * STEP_US
        builder.step(i, at, STEP_US).op("aten::mm", at + 20, 30)
        builder.launch("gemm", at=at + 25, call=5, start=at + 400, dur=200)
    _, analysis = analysed(builder)
    figures = analysis.figures
    assert figures.step_figures.kernels.tolist() == [1] * 4
    assert figures.summary.device_step_ns == pytest.approx(200_000)
    assert figures.summary.period_ns == pytest.approx(1e6)
    assert figures.summary.gpu_busy_pct == pytest.approx(100 * (800 + 300) / 4000, abs=0.1)
    assert figures.step_figures.gpu_busy_ns.tolist() == [500_000, 200_000, 200_000, 200_000]


def test_no_steps_at_all_leave_the_figures_of_a_step_unknown():
    builder = TraceBuilder()
    for i in range(20):
        builder.op("aten::mm", i * 100, 40).launch("gemm", at=i * 100 + 5, call=5, start=i * 100 + 20, dur=50)
    _, analysis = analysed(builder)
    summary = analysis.figures.summary
    assert (summary.steps, summary.step_ns, summary.sustained_step_ns, summary.period_ns) == (0, None, None, None)
    assert summary.sync_points_per_step is None
    assert summary.gpu_busy_pct == pytest.approx(100 * 1000 / 1970, abs=0.1)
