"""What faster communication is worth: the stream that waits for a collective, whoever launches on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.suggestions import Effect, EffectKind
from tests.core.replay.helpers import replay_of
from tests.simulator import Machine, simulate
from tests.trace_builder import rows

COLLECTIVE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
GATHER = "ncclDevKernel_AllGather_RING_LL"


def collective(m: Machine, us: float, stream: int, name: str = COLLECTIVE) -> float:
    with m.range("nccl:all_reduce"):
        m.kernel(us * (0.5 if m.fixed("half") else 1.0), name, stream=stream)
    return m.event_record(stream)


def data_parallel(m: Machine, number: int) -> None:
    """The thread of the backward pass launches and waits; the optimizer comes from the main thread."""
    for _ in range(8):
        m.kernel_op("aten::mm", us=500)
    with m.thread("autograd"):
        for _ in range(8):
            m.kernel_op("aten::mm", us=900)
        m.stream_wait(m.event_record(7), 20)
        done = 0.0
        for _ in range(4):
            done = collective(m, 2_500, 20)
        wait_for_collective(m, done)
    m.kernel_op("aten::_fused_adam_", us=100)


def sharded(m: Machine, number: int) -> None:
    """Each layer waits for its weights, the optimizer for the last gradients."""
    for _ in range(8):
        wait_for_collective(m, collective(m, 3_000, 24, GATHER))
        m.kernel_op("aten::mm", us=800)
    done = 0.0
    with m.thread("autograd"):
        for _ in range(8):
            m.kernel_op("aten::mm", us=800)
            m.stream_wait(m.event_record(7), 28)
            done = collective(m, 3_000, 28)
    wait_for_collective(m, done)
    m.kernel_op("aten::_fused_adam_", us=100)


def wait_for_collective(m: Machine, event: float) -> None:
    """Let the stream of the kernels wait; "unseen": by a call that the recording does not show."""
    if m.fixed("unseen"):
        m.clock.floor[0, 7] = max(m.clock.floor[0, 7], event)
    else:
        m.stream_wait(event, 7)


@pytest.mark.parametrize("program", [data_parallel, sharded])
@pytest.mark.parametrize("how", ["recorded", "unseen"])
def test_faster_communication_is_worth_what_it_is(program, how: str, tmp_path: Path) -> None:
    run = simulate(program, steps=6, fixes=(how,))
    truth = run.sustained_step_us - simulate(program, fixes=("half",)).sustained_step_us
    assert truth > 0.2 * run.sustained_step_us
    trace, replay = replay_of(run, tmp_path)
    assert replay.error_pct < 1
    assert replay.step_ns / 1000 == pytest.approx(run.sustained_step_us, rel=0.03)
    slices = tuple(rows(trace, COLLECTIVE) + rows(trace, GATHER))
    found = replay.what_if([Effect(EffectKind.SCALE_DEVICE, slices, 0.5)])
    assert found.saved_ns / 1000 == pytest.approx(truth, abs=0.05 * run.sustained_step_us)
