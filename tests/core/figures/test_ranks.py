"""Several ranks in one trace: their devices, steps and budgets are not mixed up."""

from __future__ import annotations

import pytest

from core.analysis import analyze
from core.figures.compute import compute_figures
from core.figures.shares import device_label
from core.importing import open_trace
from core.kinds import GapCause
from tests.trace_builder import TraceBuilder

US = 1000


def rank_file(folder, rank: int, busy_us: int):
    builder = TraceBuilder(pid=100 + rank, distributedInfo={"rank": rank, "world_size": 2})
    for i in range(3):
        at = i * 100
        builder.step(i, at, 100).op("aten::mm", at, 50).launch("k", at=at + 1, call=3, start=at + 5, dur=busy_us)
    return builder.write(folder / f"rank{rank}.json")


def test_ranks_with_the_same_device_index(tmp_path):
    trace = open_trace([rank_file(tmp_path, 0, 20), rank_file(tmp_path, 1, 80)])
    figures = compute_figures(trace)
    assert len(trace.sources) == 2
    assert len(figures.steps) == 6
    assert sorted(figures.busy_by_device_pct.values()) == pytest.approx([20.0, 80.0])
    assert sorted(figures.step_figures.gpu_busy_ns.tolist()) == [20 * US] * 3 + [80 * US] * 3
    assert sorted(figures.step_figures.period_ns.tolist()) == [-1, -1] + [100 * US] * 4
    budget = figures.budget
    assert (budget.period_ns, budget.busy_ns, budget.steps) == (100 * US, 50 * US, 4)
    assert budget.busy_ns + sum(budget.idle_by_cause_ns.values()) == budget.period_ns
    kernel = figures.step_figures.breakdown_ns[:, 0]
    assert sorted(kernel.tolist()) == [20 * US] * 3 + [80 * US] * 3


def one_after_another(folder, number: int, gap_us: int):
    """A recording of the one process, as a profiler with a repeating schedule writes them."""
    builder = TraceBuilder(pid=100)
    for i in range(3):
        at = number * gap_us + i * 100
        builder.step(number * 10 + i, at, 100).op("aten::mm", at, 50)
        builder.launch("k", at=at + 1, call=3, start=at + 5, dur=80)
    return builder.write(folder / f"cycle{number}.json")


@pytest.mark.parametrize("gap_us", [300, 1000, 50_000])
def test_a_device_is_judged_only_while_its_own_file_was_recorded(tmp_path, gap_us):
    trace = open_trace([one_after_another(tmp_path, number, gap_us) for number in range(3)])
    figures = compute_figures(trace)
    assert figures.summary.gpu_busy_pct == pytest.approx(80.0)
    assert list(figures.busy_by_device_pct.values()) == pytest.approx([80.0] * 3)
    assert list(figures.busy_by_stream_pct.values()) == pytest.approx([80.0] * 3)
    assert [device_label(trace, one) for one in figures.devices] == [f"GPU 0 of file {n}" for n in (1, 2, 3)]


def test_without_steps_a_device_is_judged_while_its_own_file_lasts(tmp_path):
    files = []
    for number in range(2):
        at = number * 10_000
        builder = TraceBuilder(pid=100 + number, distributedInfo={"rank": number, "world_size": 2})
        builder.op("aten::mm", at, 100).launch("k", at=at + 1, call=3, start=at + 5, dur=80)
        files.append(builder.write(tmp_path / f"{number}.json"))
    trace = open_trace(files)
    figures = compute_figures(trace)
    assert figures.summary.gpu_busy_pct == pytest.approx(80.0)
    assert [device_label(trace, one) for one in figures.devices] == ["GPU 0 of rank 0", "GPU 0 of rank 1"]


def test_a_rank_without_device_work_does_not_dilute_the_others(tmp_path):
    cpu_only = TraceBuilder(pid=200, gpu=None, distributedInfo={"rank": 1, "world_size": 2})
    for i in range(3):
        cpu_only.step(i, i * 100, 100).op("aten::mm", i * 100, 50)
    trace = open_trace([rank_file(tmp_path, 0, 20), cpu_only.write(tmp_path / "cpu.json")])
    figures = compute_figures(trace)
    assert sorted(figures.step_figures.gpu_busy_ns.tolist()) == [-1] * 3 + [20 * US] * 3
    assert (figures.budget.period_ns, figures.budget.busy_ns) == (100 * US, 20 * US)


def test_two_threads_with_overlapping_steps():
    builder = TraceBuilder()
    for i in range(3):
        builder.step(i, i * 100, 100).step(i, i * 150, 150, tid=200)
        builder.launch("a", at=i * 100 + 1, call=3, start=i * 100 + 10, dur=20)
        builder.launch("b", at=i * 150 + 1, call=3, start=i * 150 + 40, dur=20, tid=200, stream=9)
    figures = compute_figures(builder.build())
    assert len(figures.steps) == 6
    by_thread = figures.steps.thread_id
    assert sorted(set(figures.step_figures.period_ns.tolist())) == [-1, 100 * US, 150 * US]
    assert all(figures.step_of[figures.steps.slice_id] >= 0)
    assert (by_thread[figures.step_of[figures.steps.slice_id]] == by_thread).all()
    assert figures.budget.period_ns == 125 * US


@pytest.mark.parametrize("idle_us", [0, 400])
def test_two_programs_of_one_file_that_keep_a_device_each_are_judged_by_it(idle_us: int):
    """One needs twice as long as the other, so that its device works on when that of the other has nothing to do."""
    builder = TraceBuilder()
    for number, us in enumerate((1000, 2000)):
        builder.pid = builder.tid = 100 + number
        for step in range(8):
            at = step * us
            builder.step(step, at, us).op("aten::mm", at + idle_us / 2, us - idle_us / 2)
            for k in range(4):
                busy = (us - idle_us) / 4
                start, called = at + idle_us + k * busy, at + idle_us + 2 + 10 * k
                builder.launch("k", at=called, call=3, start=start + 5, dur=busy, device=number)
    trace = builder.build()
    figures = analyze(trace).figures
    budget = figures.budget
    assert budget.period_ns == 1_500_000
    assert budget.busy_ns == pytest.approx((1500 - idle_us) * 1000, rel=0.01)
    assert GapCause.UNKNOWN not in budget.idle_by_cause_ns
    assert budget.busy_ns + sum(budget.idle_by_cause_ns.values()) == budget.period_ns
    assert figures.summary.sustained_step_ns == pytest.approx(2_000_000, rel=0.01)
    assert figures.summary.verdict == ("host_bound" if idle_us else "healthy")
    assert figures.step_parts is not None
    busy_us = sorted(figures.step_parts.busy_ns / 1000)
    assert busy_us == pytest.approx([1000 - idle_us] * 8 + [2000 - idle_us] * 8, rel=0.02)


def test_two_programs_of_one_file_that_share_a_device_share_its_time():
    builder = TraceBuilder()
    for number in range(2):
        builder.pid = builder.tid = 100 + number
        for step in range(4):
            at = step * 1000
            builder.step(step, at, 1000).op("aten::mm", at + 10, 50)
            builder.launch("k", at=at + 20, call=5, start=at + 30 + 400 * number, dur=300, stream=7 + number)
    assert compute_figures(builder.build()).budget.busy_ns == pytest.approx(600_000, rel=0.01)
