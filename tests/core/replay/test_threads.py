"""Threads that work at the same time as the main one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import orjson
import pytest

from core.figures.compute import compute_figures
from core.importing import open_trace
from core.replay.replay import Replay
from core.suggestions import Effect, EffectKind
from tests.core.replay.helpers import named, replay_of
from tests.simulator import Machine, simulate
from tests.trace_builder import TraceBuilder


def check(step, tmp_path: Path, fixes: Iterable[tuple[str, ...]], lanes: int = 2) -> None:
    run = simulate(step, steps=6)
    trace, replay = replay_of(run, tmp_path)
    assert replay.parts[0].graph.lanes.count == lanes
    assert replay.error_pct < 1
    assert replay.step_ns / 1000 == pytest.approx(run.sustained_step_us, rel=0.02)
    for names in fixes:
        true = run.sustained_step_us - simulate(step, fixes=names).sustained_step_us
        found = replay.what_if([Effect(EffectKind.REMOVE_WORK, named(trace, name)) for name in names])
        assert found.saved_ns / 1000 == pytest.approx(true, abs=0.05 * run.sustained_step_us)


def extra(m: Machine, name: str, us: float) -> None:
    with m.range(name):
        if not m.fixed(name):
            m.cpu(us)


def test_two_threads_feed_two_devices_and_one_waits_for_the_other(tmp_path: Path) -> None:
    def step(m: Machine, number: int) -> None:
        with m.background("worker"):
            for _ in range(20):
                m.kernel_op("aten::mm", us=30, host_us=20, device=1)
            extra(m, "theirs", 300)
            m.kernel_op("aten::tail", us=10, device=1)
        for _ in range(20):
            m.kernel_op("aten::mm", us=30, host_us=15)
        m.join("worker")
        extra(m, "ours", 400)
        m.item()

    check(step, tmp_path, [("theirs",), ("ours",), ("theirs", "ours")])


def test_a_thread_that_ends_while_the_main_one_waits_for_the_device(tmp_path: Path) -> None:
    def step(m: Machine, number: int) -> None:
        m.kernel_op("aten::mm", us=150, host_us=10)
        with m.background("pin"), m.op("aten::copy_", us=130):
            m.copy("HtoD", 1 << 16, us=20, pinned=True, blocking=False, stream=30)
        with m.range("read"):
            if not m.fixed("read"):
                m.item(pinned=True)
        extra(m, "ours", 300)

    check(step, tmp_path, [("read",), ("ours",), ("read", "ours")])


def test_a_thread_that_nobody_waits_for(tmp_path: Path) -> None:
    def step(m: Machine, number: int) -> None:
        with m.background("pin"):
            with m.op("aten::pin_memory", us=100):
                pass
            with m.op("aten::copy_", us=50):
                m.copy("HtoD", 1 << 20, us=80, pinned=True, blocking=False, stream=30)
        for _ in range(20):
            m.kernel_op("aten::mm", us=30, host_us=15)
        extra(m, "ours", 400)
        m.item()

    check(step, tmp_path, [("ours",)])


def test_a_backward_pass_on_a_thread_of_its_own_is_part_of_the_main_lane(tmp_path: Path) -> None:
    def step(m: Machine, number: int) -> None:
        for _ in range(10):
            m.kernel_op("aten::mm", us=5, host_us=20)
        with m.thread("autograd"):
            for _ in range(10):
                m.kernel_op("aten::mm", us=5, host_us=20)
            extra(m, "hook", 100)
        extra(m, "ours", 150)

    check(step, tmp_path, [("hook",), ("ours",), ("hook", "ours")], lanes=1)


def test_of_two_threads_with_steps_of_their_own_the_slower_one_sets_the_pace(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for number in range(4):
        builder.step(number, 1000 * number, 1000, tid=100)
        builder.step(number, 200 + 1500 * number, 1500, tid=200)
    builder.step(9, 6500, 50, tid=300)  # one step says nothing of a pace
    trace = open_trace(builder.write(tmp_path / "trace.json"))
    replay = Replay(trace, compute_figures(trace))
    assert len(replay.parts) == 2
    assert replay.step_ns == 1_500_000
    assert replay.error_pct == pytest.approx(0.0)


def test_a_loop_that_changes_its_thread_is_one_loop(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for number in range(4):
        builder.step(number, 1000 * number, 1000, tid=100)
    for number in range(4, 7):
        builder.step(number, 2000 * (number - 2), 2000, tid=200)
    trace = open_trace(builder.write(tmp_path / "trace.json"))
    replay = Replay(trace, compute_figures(trace))
    assert [trace.threads.tid[part.graph.lanes.main_thread] for part in replay.parts] == ["100"]


def test_a_step_that_ends_as_soon_as_the_other_thread_does(tmp_path: Path) -> None:
    def step(m: Machine, number: int) -> None:
        for _ in range(10):
            m.kernel_op("aten::mm", us=10, host_us=20)
        with m.background("autograd"):
            for _ in range(10):
                m.kernel_op("aten::mm_backward", us=10, host_us=35, stream=20)
            extra(m, "theirs", 200)
        for _ in range(6):
            m.kernel_op("aten::mm", us=10, host_us=35)
        m.join("autograd")

    check(step, tmp_path, [("theirs",)])


def test_a_process_that_keeps_the_pace_of_another_is_no_error_of_the_replay(tmp_path: Path) -> None:
    """A pipeline of two processes in one file: the second one waits for what the first hands over."""

    def step(m: Machine, number: int) -> None:
        for _ in range(10):
            m.kernel_op("aten::mm", us=10, host_us=40)
        extra(m, "ours", 300)
        with m.background("stage 1"):
            begin = m.now_us
            for _ in range(20):
                m.kernel_op("aten::mm", us=20, host_us=20, device=1)
            m.stream_synchronize(device=1)
            m._record("user_annotation", f"ProfilerStep#{number}", begin, {})
        m.item()

    run = simulate(step, steps=6)
    document = run.to_dict()
    (thread,) = [e["tid"] for e in document["traceEvents"] if "(stage 1)" in str(e.get("args"))]
    for event in document["traceEvents"]:
        if event["tid"] == thread:
            event["pid"] = 5252
    path = tmp_path / "two.json"
    path.write_bytes(orjson.dumps(document))
    trace = open_trace(path)
    replay = Replay(trace, compute_figures(trace))
    assert len(replay.parts) == 2
    assert replay.error_pct < 1 and not replay.contradicted
    assert replay.held_out_pct is not None and replay.held_out_pct < 1
    assert replay.step_ns / 1000 == pytest.approx(run.sustained_step_us, rel=0.02)
    true = run.sustained_step_us - simulate(step, fixes={"ours"}).sustained_step_us
    found = replay.what_if([Effect(EffectKind.REMOVE_WORK, named(trace, "ours"))])
    assert found.saved_ns / 1000 == pytest.approx(true, abs=0.02 * run.sustained_step_us)
