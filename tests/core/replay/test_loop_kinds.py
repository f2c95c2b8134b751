"""The replay against the simulator on loops of many kinds: pace, and what single and joint fixes save."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.figures.compute import compute_figures
from core.importing import open_trace
from core.replay.replay import Replay
from tests.core.replay.helpers import effects_of
from tests.simulator import Machine, simulate
from tests.simulator.loop_kinds import KINDS, loop_of_kind
from tests.simulator.random_programs import RandomProgram
from tests.simulator.run import sustained_us

STEPS, FIRST, PROGRAMS = 10, 2, 6
WITHIN = 0.05  # of the step


def pace_us(program: RandomProgram, fixes: tuple[str, ...] = ()) -> float:
    """Pace of the loop that does the recorded steps again and again."""

    def again(m: Machine, number: int) -> None:
        program.step(m, FIRST + (number - FIRST) % STEPS)

    return sustained_us(again, fixes, settle=2 * STEPS, measure=STEPS)


def deviations(kind: str, seed: int, folder: Path) -> list[str]:
    program = loop_of_kind(kind, seed)
    run = simulate(program.step, steps=STEPS, first_number=FIRST, stacks=False, sustained=False)
    trace = open_trace(run.write(folder / "trace.json"))
    figures = compute_figures(trace)
    replay, now, wrong = Replay(trace, figures), pace_us(program), []
    if abs(replay.step_ns / 1000 - now) > WITHIN * now or replay.error_pct > 100 * WITHIN:
        wrong.append(f"{kind} {seed}: pace {replay.step_ns / 1000:.1f} instead of {now:.1f} us")
    if (figures.step_figures.breakdown_ns.sum(axis=1) != figures.step_figures.dur_ns).any():
        wrong.append(f"{kind} {seed}: the parts of a step do not add up")
    budget = figures.budget
    if budget.period_ns != (budget.busy_ns or 0) + sum(budget.idle_by_cause_ns.values()):
        wrong.append(f"{kind} {seed}: the budget does not add up")
    for fixes in {*((name,) for name in program.names), program.names}:
        true, found = now - pace_us(program, fixes), replay.what_if(effects_of(trace, program, fixes))
        off = found.saved_ns / 1000 - true
        if off > WITHIN * now or (off < -WITHIN * now and not found.bounded):
            faults = [f.kind.value for f in program.faults if f.name in fixes]
            wrong.append(f"{kind} {seed}: {faults} saves {true + off:.1f} instead of {true:.1f} of {now:.1f} us")
    return wrong


@pytest.mark.parametrize("kind", KINDS)
def test_loops_of_each_kind_are_predicted(kind: str, tmp_path: Path) -> None:
    wrong = [line for seed in range(PROGRAMS) for line in deviations(kind, seed, tmp_path)]
    assert not wrong, "\n".join(wrong)
