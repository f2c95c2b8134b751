"""Loops whose CPU runs ahead until launches block, against the simulator: each step, the pace, and what fixes save."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.suggestions import Effect, EffectKind
from tests.core.replay.helpers import device_work_under, named, replay_of
from tests.simulator import Machine, simulate
from tests.simulator.run import sustained_us

Program = Callable[[Machine, int], None]
WITHIN = 0.02  # of the step


def kernels(m: Machine, count: int, us: float, stream: int = 7) -> None:
    for _ in range(count):
        m.kernel_op("aten::mm", us=us, host_us=2.0, stream=stream)


def slow_range(m: Machine) -> None:
    with m.range("slow", us=0.0):
        kernels(m, 40, 100.0 if m.fixed("slow") else 200.0)


def one_stream(m: Machine, number: int) -> None:
    kernels(m, 140, 100.0)
    slow_range(m)
    kernels(m, 20, 300.0)


def quick_kernels(m: Machine, number: int) -> None:
    """Each launch blocks for two microseconds only, and all of a step together for a fifth of it."""
    kernels(m, 300, 9.5)
    with m.range("slow", us=0.0):
        kernels(m, 100, 1.0 if m.fixed("slow") else 12.0)


def beside(m: Machine, number: int) -> None:
    """A second thread fills a stream of its own, as slow as the first."""
    one_stream(m, number)
    with m.background("second"):
        kernels(m, 150, 80.0, stream=30)


def reduced(m: Machine, number: int) -> None:
    """Collectives on a stream of their own beside a backward pass that another thread launches."""
    kernels(m, 80, 100.0)
    slow_range(m)
    with m.thread("autograd"):
        for _ in range(4):
            kernels(m, 25, 100.0)
            m.stream_wait(m.event_record(7), 50)
            m.kernel(2_000.0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", stream=50)
    m.stream_wait(m.event_record(50), 7)
    kernels(m, 5, 100.0)


def graphs(m: Machine, number: int) -> None:
    kernels(m, 170, 60.0)
    slow_range(m)
    m.graph([20.0] * 100)


def uneven(m: Machine, number: int) -> None:
    kernels(m, 60 + 90 * (number % 3), 150.0)
    slow_range(m)


def loss_now_and_then(m: Machine, number: int) -> None:
    """The queue runs empty in every eighth step and is full again six steps later."""
    one_stream(m, number)
    if number % 8 == 0:
        m.item()


def forked_behind_a_prefetch(m: Machine, number: int) -> None:
    """A branch that waits for the compute stream; launched last before it was a copy on a third one."""
    one_stream(m, number)
    m.copy("HtoD", 1 << 18, us=50.0, pinned=True, blocking=False, stream=60)
    m.stream_wait(m.event_record(7), 20)
    kernels(m, 20, 100.0, stream=20)
    m.stream_wait(m.event_record(20), 7)
    kernels(m, 5, 100.0)


PROGRAMS = (forked_behind_a_prefetch, one_stream, quick_kernels, beside, reduced, graphs, uneven, loss_now_and_then)


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_step_the_pace_and_a_saving_come_out(program: Program, tmp_path: Path) -> None:
    run = simulate(program, steps=12, stacks=False, sustained=False)
    assert max(run.host_step_us) > 1.2 * min(run.host_step_us)  # the queue was full in some steps and not in others
    trace, replay = replay_of(run, tmp_path)
    assert replay.error_pct < 100 * WITHIN
    now = sustained_us(program, settle=24, measure=24)
    assert replay.step_ns / 1000 == pytest.approx(now, rel=WITHIN)
    ranges = named(trace, "slow")
    quicker = 1 / 12 if program is quick_kernels else 0.5
    effect = Effect(EffectKind.SCALE_DEVICE, device_work_under(trace, ranges), quicker)
    true = now - sustained_us(program, ("slow",), settle=24, measure=24)
    assert true > 0.05 * now
    assert replay.what_if([effect]).saved_ns / 1000 == pytest.approx(true, abs=WITHIN * now)


def test_of_very_many_blocked_launches_those_that_end_a_step_are_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.replay.queues.MOST_TIED", 20)
    _, replay = replay_of(simulate(one_stream, steps=12, stacks=False, sustained=False), tmp_path)
    waits = replay.parts[0].graph.waits
    assert len(waits) > 500 and len(waits.begin_blocks) < 50
    assert replay.error_pct < 100 * WITHIN


def test_a_queue_that_was_full_when_the_recording_began_blocked_its_launches_too(tmp_path: Path) -> None:
    """None of what filled it is recorded. With a quick device launching sets the pace, without what it was blocked."""

    def quick_or_not(m: Machine, number: int) -> None:
        del number
        with m.range("slow", us=0.0):
            kernels(m, 200, 1.0 if m.fixed("slow") else 15.0)

    run = simulate(quick_or_not, steps=8, warmup=20, stacks=False, drained=False)
    trace, replay = replay_of(run, tmp_path)
    effect = Effect(EffectKind.SCALE_DEVICE, device_work_under(trace, named(trace, "slow")), 1 / 15)
    true = run.sustained_step_us - sustained_us(quick_or_not, ("slow",))
    assert replay.step_ns / 1000 == pytest.approx(run.sustained_step_us, rel=WITHIN)
    assert replay.what_if([effect]).saved_ns / 1000 == pytest.approx(true, abs=WITHIN * run.sustained_step_us)
    assert replay.error_pct < 100 * WITHIN
