"""Streams that wait for each other, where no call says which: against the simulator's pace and savings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.suggestions import Effect, EffectKind
from tests.core.replay.helpers import device_work_under, named, replay_of
from tests.simulator import Machine, simulate
from tests.simulator.run import sustained_us

WITHIN = 0.01  # of the step


def kernels(m: Machine, stream: int, count: int, us: float) -> None:
    with m.range("kernels", us=0.0):
        for _ in range(count):
            m.kernel_op("aten::mm", us=us / 2 if m.fixed("kernels") else us, host_us=2.0, stream=stream)


def forked_at_once(m: Machine, number: int) -> None:
    """Two branches are let wait first; the launches that begin the second one follow those of the first."""
    del number
    kernels(m, 7, 2, 60.0)
    event = m.event_record(7)
    m.stream_wait(event, 20)
    m.stream_wait(event, 24)
    kernels(m, 20, 4, 50.0)
    kernels(m, 24, 6, 45.0)
    ends = m.event_record(20), m.event_record(24)
    m.stream_wait(ends[0], 7)
    m.stream_wait(ends[1], 7)


def joined_at_the_end(m: Machine, number: int) -> None:
    """The wait is called in one step, and what waits is launched in the next."""
    del number
    kernels(m, 7, 4, 50.0)
    m.stream_wait(m.event_record(7), 20)
    kernels(m, 20, 4, 60.0)
    m.stream_wait(m.event_record(20), 7)


@pytest.mark.parametrize("drained", [True, False])
@pytest.mark.parametrize("program", [forked_at_once, joined_at_the_end])
def test_pace_and_saving_come_out(program: Callable[[Machine, int], None], drained: bool, tmp_path: Path) -> None:
    run = simulate(program, steps=4, stacks=False, drained=drained)
    trace, replay = replay_of(run, tmp_path)
    assert replay.step_ns / 1000 == pytest.approx(run.sustained_step_us, rel=WITHIN)
    effect = Effect(EffectKind.SCALE_DEVICE, device_work_under(trace, named(trace, "kernels")), 0.5)
    true = run.sustained_step_us - sustained_us(program, ["kernels"])
    assert replay.what_if([effect]).saved_ns / 1000 == pytest.approx(true, abs=WITHIN * run.sustained_step_us)
    assert replay.error_pct < 1
