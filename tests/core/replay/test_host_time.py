"""What effects leave of host time: where several of them take the same time away, the slowest speed counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.intervals import Spans, union
from core.replay.engine import Folder
from core.replay.hosttime import host_time
from core.replay.waits import wait_spans
from tests.core.replay.helpers import replay_of
from tests.simulator import Machine, simulate


def loop(m: Machine, number: int) -> None:
    del number
    for _ in range(30):
        m.kernel_op("aten::mm", us=40.0, host_us=20.0)
    m.item()


def some(rng: np.random.Generator, end_ns: int) -> Spans:
    start = rng.integers(0, end_ns, 40)
    return union(start, start + rng.integers(1, end_ns // 30, 40))


@pytest.mark.parametrize("seed", range(4))
def test_time_that_several_effects_take_away_is_taken_away_once(seed: int, tmp_path: Path) -> None:
    _, replay = replay_of(simulate(loop, steps=6), tmp_path)
    graph, changes = replay.parts[0].graph, replay.parts[0].changes
    rng = np.random.default_rng(seed)
    effects = [some(rng, int(graph.lane_end_ns[0])) for _ in range(4)]
    folder = Folder(graph)
    for speeds in ((0.5, 0.0, 0.25, 0.5), (0.0, 0.0, 0.75, 0.3), (0.1, 0.2, 0.2, 0.1)):
        change = changes.nothing()
        change.speeds[0] += [*zip(effects, speeds, strict=True), (effects[0], speeds[0])]
        length = folder.fold(change)[0]
        time = host_time([(wait_spans(graph.waits, graph.waits.depends.nonzero()[0]), 0.0), *change.speeds[0]])
        ends = np.append(graph.block_ns[1:], graph.lane_end_ns[0])
        assert length == pytest.approx(time(ends) - time(graph.block_ns), abs=1e-3)
        assert length.sum() < folder.fold(changes.nothing())[0].sum()
