"""Loops that the processes of a DataLoader keep waiting: their pace is that of the batches."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from core.suggestions import Effect, EffectKind
from tests.core.replay.helpers import device_work_under, named, replay_of
from tests.simulator import Machine, simulate
from tests.simulator.run import sustained_us


@pytest.mark.parametrize("seed", [0, 2, 12, 13])
def test_eight_workers_that_deliver_in_bursts_set_the_pace(seed: int, tmp_path: Path) -> None:
    """The recording ends somewhere in a burst, the largest part of which may be followed by small ones."""

    def program(m: Machine, number: int) -> None:
        m.loader(24_000 * random.Random(1000 * number + seed).uniform(0.95, 1.05), workers=8)
        for _ in range(4):
            m.kernel_op("aten::mm", 500)

    run = simulate(program, steps=24, warmup=8, stacks=False, sustained=False)
    _, replay = replay_of(run, tmp_path)
    assert replay.step_ns / 1000 == pytest.approx(sustained_us(program, settle=40, measure=200), rel=0.05)


def test_late_batches_that_no_device_idles_for_set_no_pace(tmp_path: Path) -> None:
    """Each eighth batch comes late, while the device has work for as long: faster kernels are worth their time."""

    def program(m: Machine, number: int) -> None:
        m.loader(5_200 if number % 8 == 3 else 500, workers=1)
        with m.range("slow", us=0.0):
            for _ in range(10):
                m.kernel_op("aten::mm", 180 if m.fixed("slow") else 200)
        if "late" in m.kept:
            m.event_synchronize(m.kept["late"])
        m.kept["late"] = m.event_record()

    run = simulate(program, steps=24, warmup=8, stacks=False, sustained=False)
    trace, replay = replay_of(run, tmp_path)
    now, then = sustained_us(program), sustained_us(program, ("slow",))
    work = device_work_under(trace, named(trace, "slow"))
    saved = replay.what_if([Effect(EffectKind.SCALE_DEVICE, work, 0.9)]).saved_ns / 1000
    assert now - then > 0.08 * now
    assert saved == pytest.approx(now - then, abs=0.02 * now)


@pytest.mark.parametrize("first", [3, 4, 5, 6])
def test_a_stall_at_every_eighth_batch_is_told_from_two_of_them(first: int, tmp_path: Path) -> None:
    def program(m: Machine, number: int) -> None:
        m.loader(30_000 if number % 8 == first else 500, workers=1)
        for _ in range(10):
            m.kernel_op("aten::mm", 200)

    run = simulate(program, steps=16, warmup=8, stacks=False, sustained=False)
    _, replay = replay_of(run, tmp_path)
    assert replay.step_ns / 1000 == pytest.approx(sustained_us(program), rel=0.01)
