"""A pace that is told before it has been run for long is the one that running on gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from core.replay.batches import loader_chains
from core.replay.engine import Compiler, Folder
from core.replay.pace import settle
from core.replay.program import make_program
from core.replay.replay import ProcessReplay
from core.replay.running import fresh_state, run_pass
from core.replay.trail import Trail
from tests.core.replay.helpers import replay_of
from tests.core.replay.test_full_queues import PROGRAMS, beside, kernels, one_stream, reduced, uneven
from tests.simulator import Machine, simulate

Loop = Callable[[Machine, int], None]


def small(m: Machine, number: int) -> None:
    """The queue is never full."""
    m.kernel_op("aten::mm", us=200.0, host_us=20.0)
    m.item()


def slow_to_fill(m: Machine, number: int) -> None:
    """The first pass begins with launches that find an empty queue, later ones with a full one."""
    kernels(m, 400, 2.0 if number % 8 in (1, 2) else 100.0)


def passes(part: ProcessReplay, looks: bool, count: int = 8) -> tuple[int, float, list[float]]:
    """Passes until the pace has settled, that pace, and how far the main lane comes in each of many passes."""
    chains = loader_chains(part.graph.waits, np.ones(len(part.graph.waits), dtype=bool), 0)
    program = make_program(part.graph, part.blocks, True, chains, looks)
    plan = Compiler(program, Folder(part.graph)).compile(part.changes.nothing())
    launches = np.bincount(part.graph.work.stream).max()
    pace = settle(program, plan, int(launches))
    assert pace is not None
    state, at = fresh_state(program), [0.0]
    for _ in range(count):
        run_pass(program, plan, state)
        state.history.append(state.slots.copy())
        at.append(state.lanes[0])
    return pace.passes, pace.pass_ns, np.diff(at).tolist()


@pytest.mark.parametrize("loop", [one_stream, reduced, uneven, small, slow_to_fill])
def test_it_goes_on_as_told(loop: Loop, tmp_path: Path) -> None:
    _, replay = replay_of(simulate(loop, steps=16), tmp_path)
    ran, told, later = passes(replay.parts[0], looks=True)
    assert later[ran - 1 :] == pytest.approx([told] * (len(later) - ran + 1), rel=1e-9)


def test_two_passes_suffice_once_the_queue_is_full(tmp_path: Path) -> None:
    _, replay = replay_of(simulate(slow_to_fill, steps=8), tmp_path)
    assert passes(replay.parts[0], looks=True)[0] == 2


@pytest.mark.parametrize("looks", [True, False])
@pytest.mark.parametrize("loop", [*PROGRAMS, small, slow_to_fill])
def test_a_pass_that_is_not_run_to_its_end_ends_as_if_it_were(
    loop: Loop, looks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.replay.program._STRETCH", 3)
    _, replay = replay_of(simulate(loop, steps=8, stacks=False, sustained=False), tmp_path)
    part = replay.parts[0]
    chains = loader_chains(part.graph.waits, np.ones(len(part.graph.waits), dtype=bool), 0)
    program = make_program(part.graph, part.blocks, True, chains, looks)
    plan = Compiler(program, Folder(part.graph)).compile(part.changes.nothing())
    whole, cut, trail, short = fresh_state(program), fresh_state(program), None, 0
    assert plan.exact
    for _ in range(6):
        before, trail = trail if trail is not None and trail.ended else None, Trail(0.0)
        assert run_pass(program, plan, cut, before, trail) == run_pass(program, plan, whole)
        assert (cut.lanes, cut.streams) == (whole.lanes, whole.streams)
        assert (program.watched(cut.slots) == program.watched(whole.slots)).all() or looks
        whole.history.append(whole.slots.copy())
        cut.history.append(cut.slots.copy())
        short += not trail.ended
    assert short or loop is beside  # two lanes that never wait for each other are never ahead by the same
