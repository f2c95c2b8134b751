"""Whatever is in a trace: figures come out, they add up, and nothing is negative or above the whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import Cancelled
from core.figures.compute import compute_figures
from tests.trace_builder import TraceBuilder

at = st.integers(0, 400)
length = st.integers(0, 120)
thread = st.sampled_from([100, 200])
stream = st.sampled_from([7, 9])
device = st.sampled_from([0, 1])
HOST_NAMES = [
    "aten::mm",
    "c10d::barrier",
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
    "Optimizer.step#SGD.step",
    "train_step",
    "nccl:all_reduce",
    "gloo:all_reduce",
]
CALLS = [
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cudaMalloc",
    "cudaEventSynchronize",
    "cudaMemcpy",
    "cudaFree",
]
event = st.one_of(
    st.tuples(st.just("op"), st.sampled_from(HOST_NAMES), at, length, thread),
    st.tuples(st.just("range"), st.sampled_from(HOST_NAMES), at, length, thread),
    st.tuples(st.just("python"), st.sampled_from(["a.py(1): f", "nn.Module: Net_0", "Python GC"]), at, length, thread),
    st.tuples(st.just("runtime"), st.sampled_from(CALLS), at, length, thread),
    st.tuples(st.just("step"), st.integers(0, 4), at, length, thread),
    st.tuples(st.just("launch"), at, length, at, length, thread, stream, device),
    st.tuples(st.just("copy"), st.sampled_from(["HtoD (Pageable -> Device)", "DtoH (Device -> Pinned)"]), at, length),
    st.tuples(st.just("kernel"), st.sampled_from(["k", "ncclDevKernel_AllReduce_Sum"]), at, length, stream, device),
    st.tuples(st.just("memory"), at, st.integers(-50, 50)),
)


def build(events):
    builder = TraceBuilder()
    for kind, *rest in events:
        if kind in ("op", "range", "python"):
            name, ts, dur, tid = rest
            getattr(builder, kind)(name, ts, dur, tid)
        elif kind == "runtime":
            name, ts, dur, tid = rest
            builder.runtime(name, ts, dur, tid=tid)
        elif kind == "step":
            number, ts, dur, tid = rest
            builder.step(number, ts, dur, tid)
        elif kind == "launch":
            call_at, call, start, dur, tid, on_stream, on_device = rest
            builder.launch("k", call_at, call, start, dur, tid, on_stream, on_device)
        elif kind == "copy":
            name, ts, dur = rest
            builder.copy(name, ts, dur, ts + 2, dur)
        elif kind == "kernel":
            name, ts, dur, on_stream, on_device = rest
            builder.kernel(name, ts, dur, stream=on_stream, device=on_device)
        else:
            ts, size = rest
            builder.memory(ts, size, allocated=100 + size)
    return builder.build()


def test_a_budget_without_busy_time_adds_up_to_the_nanosecond():
    # Three periods of thirds: two causes would each be rounded up.
    builder = TraceBuilder()
    for number, (start, length) in enumerate([(0, 10), (10, 6), (16, 6)]):
        builder.step(number, start, length)
        builder.op("aten::mm", start, 1)
    builder.launch("k", 0.5, 0.2, 1, 0, 100, 7, 0)
    budget = compute_figures(builder.build()).budget
    assert budget.period_ns is not None
    assert budget.busy_ns is not None
    assert budget.busy_ns + sum(budget.idle_by_cause_ns.values()) == budget.period_ns
    assert budget.busy_ns >= 0


def test_even_steps_of_two_threads_are_not_uneven():
    builder = TraceBuilder()
    for step in range(5):
        builder.step(step, step * 1000, 1000, tid=1).step(step, step * 3000, 3000, tid=2)
    assert "uneven-steps" not in [note.code for note in compute_figures(builder.build()).doctor]


def test_steps_that_take_no_time_are_not_uneven():
    builder = TraceBuilder()
    for number in range(8):
        builder.step(number, 10 * number, 0).op("aten::mm", 10 * number, 5)
    figures = compute_figures(builder.build())
    assert figures.summary.step_ns == 0
    assert "uneven-steps" not in [note.code for note in figures.doctor]


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(event, max_size=25))
def test_figures_of_any_trace(events):
    trace = build(events)
    figures = compute_figures(trace)
    steps, budget, gaps, syncs = figures.step_figures, figures.budget, figures.gaps, figures.syncs
    assert (steps.breakdown_ns.sum(axis=1) == steps.dur_ns).all()
    assert (steps.breakdown_ns >= 0).all()
    assert all(0 <= share <= 100.0001 for share in figures.busy_by_device_pct.values())
    assert (gaps.end_ns > gaps.start_ns).all()
    for one in figures.devices:
        mine = gaps.device == one
        assert (gaps.start_ns[mine][1:] >= gaps.end_ns[mine][:-1]).all()
    if budget.period_ns is not None:
        assert budget.busy_ns is not None
        assert 0 <= budget.busy_ns <= budget.period_ns
        assert budget.busy_ns + sum(budget.idle_by_cause_ns.values()) == budget.period_ns
    assert (syncs.wait_ns >= 0).all()
    assert (syncs.wait_ns <= trace.slices.dur_ns[syncs.slice_id]).all()
    for table in (figures.operators, figures.kernels, figures.ranges, figures.modules, figures.python):
        for column in (table.host_self_ns, table.host_total_ns, table.device_self_ns, table.device_total_ns):
            assert (column >= 0).all()
        assert (table.host_self_ns <= table.host_total_ns).all()
        assert (table.min_ns <= table.max_ns).all()
    assert (figures.queue_depth >= 0).all()
    assert (np.diff(figures.queue_time_ns) > 0).all()
    assert figures.summary.verdict
    assert "{" not in figures.summary.verdict_text


def test_a_long_computation_can_be_called_off():
    def stop(fraction, what):
        if fraction > 0.2:
            raise Cancelled

    with pytest.raises(Cancelled):
        compute_figures(TraceBuilder().step(1, 0, 100).build(), progress=stop)


def test_progress_rises_to_one():
    seen: list[float] = []
    compute_figures(TraceBuilder().step(1, 0, 100).build(), progress=lambda fraction, what: seen.append(fraction))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_columns_are_frozen():
    figures = compute_figures(TraceBuilder().step(1, 0, 100).launch("k", at=5, call=3, start=10, dur=20).build())
    for column in (figures.step_of, figures.queue_time_ns, figures.steps.start_ns, figures.gaps.cause):
        with pytest.raises(ValueError, match="read-only"):
            column[:1] = 0
