"""Totals by name, on the CPU and on the device."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.figures import stats
from core.figures.compute import compute_figures
from core.figures.lookup import View
from core.figures.stats import self_time
from gui.models import range_stats, slice_facts
from tests.trace_builder import TraceBuilder

US = 1000


def row(trace, table, name: str) -> dict[str, int]:
    (i,) = np.flatnonzero(table.name_id == trace.strings.id_of(name))
    fields = ("calls", "host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns", "min_ns", "max_ns")
    return {f.removesuffix("_ns"): int(getattr(table, f)[i]) // (1 if f == "calls" else US) for f in fields}


def test_operator_totals():
    trace = (
        TraceBuilder()
        .op("aten::linear", 0, 100)
        .op("aten::addmm", 10, 50)
        .launch("gemm", at=20, call=10, start=40, dur=30)
        .launch("bias", at=70, call=5, start=80, dur=7)
        .build()
    )
    figures = compute_figures(trace)
    linear, addmm = row(trace, figures.operators, "aten::linear"), row(trace, figures.operators, "aten::addmm")
    assert (linear["host_total"], linear["host_self"]) == (100, 45)
    assert (linear["device_total"], linear["device_self"]) == (37, 7)
    assert (addmm["host_total"], addmm["host_self"], addmm["device_total"], addmm["device_self"]) == (50, 40, 30, 30)
    gemm = row(trace, figures.kernels, "gemm")
    assert (gemm["calls"], gemm["host_total"], gemm["device_total"], gemm["device_self"]) == (1, 0, 30, 30)
    assert trace.strings[int(figures.operators.name_id[0])] == "aten::linear"  # the largest first


def test_recursion_counts_its_time_once():
    builder = TraceBuilder()
    for depth in range(5):
        builder.python("tree.py(3): walk", depth * 10, 100 - depth * 20)
    builder.op("aten::mm", 41, 15).launch("k", at=45, call=3, start=60, dur=20)
    trace = builder.build()
    walk = row(trace, compute_figures(trace).python, "tree.py(3): walk")
    assert walk["calls"] == 5
    assert (walk["host_total"], walk["host_self"]) == (100, 85)  # the operator's time is its own
    assert (walk["device_total"], walk["device_self"]) == (20, 20)
    assert (walk["min"], walk["max"]) == (20, 100)


def test_ranges_modules_and_functions_get_what_their_thread_launches():
    trace = (
        TraceBuilder()
        .range("forward", 0, 100)
        .python("nn.Module: Net_0", 5, 90)
        .python("nn.Module: Linear_0", 10, 40)
        .python("net.py(7): forward", 12, 30)
        .launch("inner", at=20, call=3, start=30, dur=11)
        .launch("outer", at=60, call=3, start=70, dur=5)
        .launch("backward", at=65, call=3, start=80, dur=50, tid=200)
        .build()
    )
    figures = compute_figures(trace)
    assert row(trace, figures.ranges, "forward")["device_total"] == 16
    net, linear = row(trace, figures.modules, "nn.Module: Net_0"), row(trace, figures.modules, "nn.Module: Linear_0")
    assert (net["device_total"], net["device_self"], net["host_total"], net["host_self"]) == (16, 5, 90, 47)
    assert (linear["device_total"], linear["device_self"]) == (11, 0)
    assert row(trace, figures.python, "net.py(7): forward")["device_self"] == 11
    assert len(figures.modules) == 2
    assert len(figures.python) == 1


def test_operators_are_no_self_time_of_the_ranges_and_frames_around_them():
    trace = (
        TraceBuilder()
        .step(1, 0, 100)
        .range("forward", 10, 60)
        .python("net.py(7): apply", 12, 50)
        .op("MyFunction", 20, 30)
        .python("net.py(9): forward", 22, 20)  # run by the operator: its time, once
        .op("aten::add", 65, 3)
        .op("aten::mul", 80, 15)
        .build()
    )
    own = self_time(View(trace))
    names = [trace.strings[int(name)] for name in trace.slices.name_id]
    told = {name: int(time) // US for name, time in zip(names, own, strict=True)}
    assert told["forward"] == 60 - 30 - 3
    assert told["net.py(7): apply"] == 50 - 30
    assert told["ProfilerStep#1"] == 100 - 60 - 15
    assert told["MyFunction"] == 30
    for row_id in range(len(names)):
        assert slice_facts.self_ns(trace, row_id) == own[row_id], names[row_id]
    selected = range_stats.compute(trace, None, *trace.span_ns, ()).totals
    of = {trace.strings[int(n)]: int(t) for n, t in zip(selected.name_id, selected.self_ns, strict=True)}
    assert (of["forward"], of["ProfilerStep#1"]) == (27 * US, 25 * US)


def test_all_tables_of_an_empty_trace_are_empty():
    figures = compute_figures(TraceBuilder(gpu=None).name_thread("main").build())
    for table in (figures.operators, figures.kernels, figures.ranges, figures.modules, figures.python):
        assert len(table) == 0
    assert figures.summary.gpu_busy_pct is None
    assert figures.summary.verdict == "unknown"


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 40)), min_size=1, max_size=12))
def test_self_times_of_a_thread_add_up_to_its_covered_time(pairs):
    """Whatever nests or crosses: no self time is negative, and nested ones add up to the union."""
    builder = TraceBuilder()
    covered = np.zeros(120, dtype=bool)
    pairs = sorted(pairs, key=lambda p: (p[0], -p[1]))
    open_ends: list[int] = []
    for at, dur in pairs:  # only properly nested slices
        open_ends = [end for end in open_ends if end > at]
        end = min([at + dur, *open_ends])
        if end <= at:
            continue
        open_ends.append(end)
        covered[at:end] = True
        builder.op(f"aten::op{at}_{end}", at, end - at)
    trace = builder.build()
    own = self_time(View(trace))
    assert (own >= 0).all()
    assert own.sum() == covered.sum() * US


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 40), st.integers(1, 3)), min_size=1, max_size=30))
def test_self_times_do_not_depend_on_where_the_rows_are_cut(slices):
    builder = TraceBuilder()
    for at, dur, tid in slices:
        builder.op(f"aten::op{at}", at, dur, tid=tid)
    view = View(builder.build())
    whole = self_time(view)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stats, "_PART", 2)
        np.testing.assert_array_equal(self_time(view), whole)


def test_a_stray_clock_does_not_change_the_totals():
    """One event at the zero of an epoch clock stretches the trace over decades."""
    calls = [(f"aten::op{k}", 10.0 * k, 6.0) for k in range(30)]

    def stats(origin_us, stray):
        builder = TraceBuilder(origin_us=origin_us)
        if stray:
            builder.event(ph="X", cat="cpu_op", name="stray", pid=100, tid=100, ts=-origin_us, dur=1)
        for name, ts, dur in calls:
            builder.op(name, ts, dur).op(name, ts + 1, dur - 2)
        trace = builder.build()
        table = compute_figures(trace).operators
        named = zip(table.name_id, table.host_total_ns, table.host_self_ns, table.calls, strict=True)
        return {trace.strings[int(name)]: tuple(map(int, row)) for name, *row in named}

    expected = stats(1_000_000, stray=False)
    far = stats(1_700_000_000_000_000, stray=True)
    assert far.pop("stray") == (1000, 1000, 1)
    assert far == expected
    assert expected["aten::op3"] == (6000, 6000, 2)


def test_devices_may_have_any_number():
    """One damaged event must not cost memory by the size of its number."""
    builder = TraceBuilder().step(1, 0, 1000)
    numbers = (0, 5, 10**9, 2**31 - 1)
    for device in numbers:
        builder.kernel("k", 10, 500, device=device)
    figures = compute_figures(builder.build())
    assert figures.busy_by_device_pct == dict.fromkeys(numbers, 50.0)
