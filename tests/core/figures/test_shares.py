"""Shares of devices, streams and threads, behind the one figure of the summary."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.analysis import analyze
from core.figures.compute import compute_figures
from core.figures.shares import device_shares, launch_costs, step_threads, steps_covered_ns
from core.importing import open_trace
from core.reporting.json import document
from core.reporting.text import Page, report
from tests.trace_builder import TraceBuilder

US = 1000


def test_streams_of_a_device_and_its_own_span():
    builder = TraceBuilder().op("aten::mm", 0, 5).op("aten::mm", 95, 5)
    builder.kernel("a", 20, 40).kernel("b", 40, 40, stream=20)  # 20 to 80 of 100
    trace = builder.build()
    (share,) = device_shares(trace, compute_figures(trace))
    assert (share.device, share.busy_pct, share.own_busy_pct) == (0, pytest.approx(60.0), pytest.approx(100.0))
    assert (share.own_start_ns, share.own_span_ns) == (20 * US, 60 * US)
    assert {s.stream: s.busy_pct for s in share.streams} == {7: pytest.approx(40.0), 20: pytest.approx(40.0)}
    analysis = analyze(trace)
    text = report(trace, analysis, Page(120))
    assert "stream 7: 40 %, stream 20: 40 %" in text
    assert "100 % from its first to its last work" in text
    values = document(trace, analysis)["further"]
    assert values["devices"][0]["own_span_us"] == 60.0
    assert [s["stream"] for s in values["devices"][0]["streams"]] == [7, 20]
    assert values["steps_covered_us"] is None


def test_a_report_of_several_files_says_so_and_tells_their_steps_apart(tmp_path: Path) -> None:
    paths = []
    for rank in (0, 3):
        builder = TraceBuilder(distributedInfo={"rank": rank, "world_size": 8}).step(1, 0, 100).step(2, 100, 100)
        paths.append(builder.write(tmp_path / f"rank{rank}.json"))
    trace = open_trace(paths)
    text = report(trace, analyze(trace), Page(200))
    assert "2 files (ranks 0, 3 of 8)" in text
    assert "thread 100 of rank 0: 2 steps of 100 µs, thread 100 of rank 3: 2 steps of 100 µs" in text


def test_of_a_device_without_work_nothing_is_said_about_its_share_of_the_recording():
    trace = TraceBuilder().op("aten::mm", 0, 5).build()
    assert "of the whole recording" not in report(trace, analyze(trace), Page(200))


def test_steps_of_two_threads_are_not_added():
    builder = TraceBuilder().step(1, 0, 100, tid=1).step(2, 100, 100, tid=1)
    builder.step(1, 20, 150, tid=2).step(2, 170, 150, tid=2)
    trace = builder.build()
    figures = compute_figures(trace)
    assert {t.thread: (t.steps, t.step_ns) for t in step_threads(trace, figures)} == {
        "1": (2, 100 * US),
        "2": (2, 150 * US),
    }
    assert steps_covered_ns(figures) == 320 * US
    assert "thread 1: 2 steps of 100 µs, thread 2: 2 steps of 150 µs" in report(trace, analyze(trace), Page(200))


def test_what_launching_costs_is_told():
    builder = TraceBuilder().op("aten::mm", 0, 40)
    builder.launch("a", 0, 4, 10, 50).launch("b", 10, 6, 60, 20).launch("c", 20, 8, 80, 20)
    trace = builder.build()
    figures = compute_figures(trace)
    costs = launch_costs(figures)
    assert costs is not None
    assert (costs.calls, costs.call_ns, costs.delay_ns, costs.queue_depth_max) == (3, 6 * US, 50 * US, 2)
    analysis = analyze(trace)
    said = "on the CPU (median); work starts 50 µs later; at most 2 queued"
    assert f"launch call          6 µs   {said}" in report(trace, analysis)
    values = document(trace, analysis)["further"]
    assert values["launches"] == {"calls": 3, "call_us_median": 6.0, "delay_us_median": 50.0, "queue_depth_max": 2}


def test_the_budget_of_the_json_adds_up():
    builder = TraceBuilder().op("aten::mm", 0, 5).op("aten::mm", 95, 5).launch("a", 0, 4, 10, 50)
    trace = builder.launch("b", 70, 4, 80, 15).build()
    budget = document(trace, analyze(trace))["further"]["budget"]
    assert (budget["basis"], budget["busy_us"]) == ("window", {"busy": 65.0})
    assert sum(budget["busy_us"].values()) + sum(budget["idle_us"].values()) == budget["time_us"] == 100.0


def test_what_was_not_recorded_has_no_budget_and_no_cost_of_launching():
    trace = TraceBuilder().op("aten::mm", 0, 5).build()
    analysis = analyze(trace)
    values = document(trace, analysis)["further"]
    assert (values["budget"], values["launches"], launch_costs(analysis.figures)) == (None, None, None)
    assert "launch call" not in report(trace, analysis)
