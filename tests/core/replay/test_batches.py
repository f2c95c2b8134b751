"""Loops that the processes of a DataLoader keep waiting: their pace is that of the batches."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.core.replay.helpers import replay_of
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
