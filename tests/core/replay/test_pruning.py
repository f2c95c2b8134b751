"""What the planner does not ask for loses no saving: against all pairs and triples of fixes of simulated programs."""

from __future__ import annotations

from itertools import combinations
from math import isinf
from pathlib import Path

import pytest

from core.replay.plan import LEAST_SHARE, Planner
from core.replay.replay import Replay, WhatIf
from core.suggestions import Effect, EffectKind
from tests.core.replay.helpers import effects_of, named, replay_of
from tests.simulator import Machine, simulate
from tests.simulator.random_programs import random_program

SEEDS = range(60)


class Fixes:
    """The fixes of one program, and what any of them save together."""

    def __init__(self, replay: Replay, effects: list[list[Effect]]) -> None:
        self._replay, self._effects = replay, effects
        self._known: dict[frozenset[int], WhatIf] = {}
        self.numbers = range(len(effects))
        self.step_ns = replay.step_ns

    def of(self, fixes: frozenset[int]) -> WhatIf:
        if fixes not in self._known:
            self._known[fixes] = self._replay.what_if([e for i in sorted(fixes) for e in self._effects[i]])
        return self._known[fixes]

    def saved(self, *fixes: int) -> float:
        return self.of(frozenset(fixes)).saved_ns

    def limit(self, fixes: frozenset[int]) -> float:
        most = self._replay.limit_ns(e for i in sorted(fixes) for e in self._effects[i])
        assert self.of(fixes).saved_ns <= most + 1.0
        return most

    def plan_saves(self, pruned: bool) -> float:
        alone = [self.of(frozenset((i,))) for i in self.numbers]
        planner = Planner(
            gain=lambda fixes: self.of(fixes).saved_ns,
            scale=self.step_ns,
            order=list(self.numbers),
            most=[w.reach_ns for w in alone] if pruned else None,
            promise=[w.promise_ns for w in alone] if pruned else None,
            limit=self.limit if pruned else None,
        )
        return max((turn.saved for turn in planner.plan(list(self.numbers))), default=0.0)

    def sets(self, largest: int) -> list[tuple[int, ...]]:
        return [one for count in range(1, largest + 1) for one in combinations(self.numbers, count)]


def random_fixes(seed: int, folder: Path) -> Fixes:
    program = random_program(seed)
    trace, replay = replay_of(simulate(program.step, steps=6, sustained=False), folder)
    return Fixes(replay, [effects_of(trace, program, (name,)) for name in program.names])


def chain_of_waits(m: Machine, number: int) -> None:
    for place in range(6):
        for _ in range(4):
            m.kernel_op("aten::mm", us=40, host_us=25)
        with m.range(f"wait {place}"):
            if not m.fixed(f"wait {place}"):
                m.stream_synchronize()


@pytest.mark.parametrize("first", range(0, len(SEEDS), 20))
def test_no_fix_adds_more_than_its_reach(first: int, tmp_path: Path) -> None:
    wrong, finite = [], 0
    for seed in SEEDS[first : first + 20]:
        fixes = random_fixes(seed, tmp_path)
        for others in [(), *fixes.sets(3)]:
            for fix in set(fixes.numbers) - set(others):
                reach = fixes.of(frozenset((fix,))).reach_ns
                finite += not isinf(reach)
                added = fixes.saved(*others, fix) - (fixes.saved(*others) if others else 0.0)
                if added > reach + 0.002 * fixes.step_ns:
                    wrong.append(f"{seed}: {fix} adds {added:.0f} to {others}, not {reach:.0f} of {fixes.step_ns:.0f}")
    assert finite
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("first", range(0, len(SEEDS), 20))
def test_the_plan_saves_what_the_best_pair_or_triple_saves(first: int, tmp_path: Path) -> None:
    for seed in SEEDS[first : first + 20]:
        fixes = random_fixes(seed, tmp_path)
        best = max(fixes.saved(*some) for some in fixes.sets(3))
        # Each fix that is left out because it is not worth its place may cost that much.
        assert fixes.plan_saves(pruned=True) >= best - 2 * LEAST_SHARE * fixes.step_ns, seed
        assert fixes.plan_saves(pruned=True) == pytest.approx(fixes.plan_saves(pruned=False), abs=0.02 * fixes.step_ns)


def test_a_chain_of_waits_has_no_reach_but_a_promise(tmp_path: Path) -> None:
    trace, replay = replay_of(simulate(chain_of_waits, steps=6, sustained=False), tmp_path)
    fixes = Fixes(replay, [[Effect(EffectKind.REMOVE_WAIT, named(trace, f"wait {i}"))] for i in range(6)])
    alone = [fixes.of(frozenset((i,))) for i in fixes.numbers]
    assert all(isinf(w.reach_ns) and w.promise_ns > 0 for w in alone)
    everything = fixes.saved(*fixes.numbers)
    assert everything > 2 * max(w.saved_ns for w in alone)
    assert fixes.plan_saves(pruned=True) == pytest.approx(everything, rel=0.03)
