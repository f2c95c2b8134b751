"""Recordings that begin, or are cut, in the middle of things: what is no part of the loop must not count in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.figures.compute import compute_figures
from core.replay.replay import Replay
from core.suggestions import Effect, EffectKind
from tests.core.replay.helpers import device_work_under, named, replay_of
from tests.simulator import Machine, simulate
from tests.simulator.run import sustained_us
from tests.trace_builder import TraceBuilder

STEPS, HOST_US, KERNELS, KERNEL_US = 8, 1000, 20, 200


def running_ahead(before: int, before_us: float) -> Replay:
    """Steps that are queued in 1 ms and run 4 ms, behind work of the steps before, whose launches were not recorded."""
    trace = TraceBuilder()
    for i in range(before):
        trace.kernel("k", 10 + i * before_us, before_us - 1, correlation=i)
    start = 10 + before * before_us
    for step in range(STEPS):
        trace.step(step + 3, step * HOST_US, HOST_US)
        for k in range(KERNELS):
            at = step * HOST_US + 20 + k * HOST_US / 25
            trace.op("aten::mm", at, 20).launch("k", at=at + 5, call=5, start=start, dur=KERNEL_US - 1)
            start += KERNEL_US
    opened = trace.build()
    return Replay(opened, compute_figures(opened))


def test_it_is_not_run_again_with_every_step() -> None:
    replay = running_ahead(before=100, before_us=200)
    assert replay.step_ns == KERNELS * KERNEL_US * 1000
    assert replay.error_pct < 1


def test_it_leaves_the_queue_piece_by_piece() -> None:
    """1060 launches, of which the first hundreds have ended when the last ones come: no queue is ever full."""
    replay = running_ahead(before=900, before_us=20)
    assert replay.step_ns == KERNELS * KERNEL_US * 1000
    assert replay.error_pct < 1


def test_the_last_step_is_not_compared_with_the_time_to_queue_it() -> None:
    replay = running_ahead(before=0, before_us=0)
    assert replay.held_out_pct is not None
    assert replay.held_out_pct < 1


def test_each_half_of_a_loop_that_a_loader_keeps_waiting_foretells_the_other() -> None:
    trace = TraceBuilder()
    for step in range(8):
        at = step * 1000
        trace.step(step, at, 1000).range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at + 10, 600)
        trace.op("aten::mm", at + 650, 100).launch("k", at=at + 660, call=5, start=at + 670, dur=300)
    opened = trace.build()
    replay = Replay(opened, compute_figures(opened))
    assert replay.held_out_pct is not None
    assert replay.held_out_pct < 2


def test_rounds_of_micro_batches_foretell_each_other() -> None:
    """The optimizer's step lies in every second marked step: every other step alone is no half of the loop."""
    trace = TraceBuilder()
    at = 0
    for step in range(8):
        dur = 400 if step % 2 else 100
        trace.step(step, at, dur).op("aten::mm", at + 5, 50).launch("k", at=at + 10, call=5, start=at + 20, dur=70)
        if step % 2:
            trace.range("Optimizer.step#SGD.step", at + 100, 290)
        at += dur
    opened = trace.build()
    replay = Replay(opened, compute_figures(opened))
    assert replay.held_out_pct is not None
    assert replay.held_out_pct < 5


@pytest.mark.parametrize("side", [False, True])
def test_a_device_that_was_busy_as_the_recording_began_is_no_latency_of_the_first_launch(
    tmp_path: Path, side: bool
) -> None:
    """Neither is what its wait for work of the time before took: with faster kernels the whole loop is faster."""

    def step(m: Machine, number: int) -> None:
        del number
        with m.range("kernels"):
            for _ in range(10):
                m.kernel_op("aten::mm", 75.0 if m.fixed("kernels") else 150.0)
            if side:
                m.stream_wait(m.event_record(7), 20)
                m.kernel(1600.0 if m.fixed("kernels") else 3200.0, "side", 20)
        m.item(pinned=True)
        with m.range("kernels"):
            for _ in range(10):
                m.kernel_op("aten::mm", 75.0 if m.fixed("kernels") else 150.0)

    run = simulate(step, steps=4, drained=False)
    trace, replay = replay_of(run, tmp_path)
    work = device_work_under(trace, named(trace, "kernels"))
    saved_us = replay.what_if([Effect(EffectKind.SCALE_DEVICE, work, 0.5)]).saved_ns / 1000
    truth_us = run.sustained_step_us - sustained_us(step, ["kernels"])
    assert replay.step_ns / 1000 == pytest.approx(run.sustained_step_us, rel=0.01)
    assert saved_us == pytest.approx(truth_us, abs=0.01 * run.sustained_step_us)
    assert replay.error_pct < 1


@pytest.mark.parametrize("over_us", [0.0, 1.0])
def test_a_step_that_rounding_lets_reach_into_the_next_does_not_wait_for_its_batch(over_us: float) -> None:
    trace = TraceBuilder()
    for step in range(8):
        at = step * 1000
        trace.step(step, at, 1000 + over_us)
        trace.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at, 600 if step % 4 else 100)
        trace.op("aten::mm", at + 650, 100).launch("k", at=at + 660, call=5, start=at + 670, dur=300)
    opened = trace.build()
    assert Replay(opened, compute_figures(opened)).error_pct < 1


@pytest.mark.parametrize("call", ["device", "stream", "free"])
def test_a_wait_before_the_first_launch_of_a_recording_waits_in_the_loop(tmp_path: Path, call: str) -> None:
    """The device is idle when a recording begins; in the loop it still has the work of the step before."""

    def step(m: Machine, number: int) -> None:
        del number
        with m.range("wait"):
            if not m.fixed("wait"):
                {"device": m.device_synchronize, "stream": m.stream_synchronize, "free": m.free}[call]()
        for us in (5.0, 5.0, 200.0, 200.0, 200.0):
            m.kernel_op("aten::mm", us, host_us=60.0)

    run = simulate(step, steps=5)
    trace, replay = replay_of(run, tmp_path)
    saved_us = replay.what_if([Effect(EffectKind.REMOVE_WORK, named(trace, "wait"))]).saved_ns / 1000
    truth_us = run.sustained_step_us - sustained_us(step, ["wait"])
    assert replay.step_ns / 1000 == pytest.approx(run.sustained_step_us, rel=0.01)
    assert saved_us == pytest.approx(truth_us, abs=0.01 * run.sustained_step_us)
    assert replay.error_pct < 1


@pytest.mark.parametrize("across", ["host", "streams"])
def test_steps_that_wait_for_the_step_before_foretell_each_other(tmp_path: Path, across: str) -> None:
    """Every other step, as a loop of its own, waits for the one that comes before it there."""

    def step(m: Machine, number: int) -> None:
        del number
        if across == "host":
            m.device_synchronize()
        elif "done" in m.kept:
            m.stream_wait(m.kept["done"], 7)
        for us in (5.0, 5.0, 200.0, 200.0, 200.0):
            m.kernel_op("aten::mm", us, host_us=60.0)
        if across == "streams":
            m.stream_wait(m.event_record(7), 20)
            m.kernel_op("aten::mm", 500.0, host_us=10.0, stream=20)
            m.kept["done"] = m.event_record(20)

    run = simulate(step, steps=6)
    _, replay = replay_of(run, tmp_path)
    assert replay.step_ns / 1000 == pytest.approx(run.sustained_step_us, rel=0.01)
    assert replay.held_out_pct is not None and replay.held_out_pct < 2
