"""The replay against the simulator, which knows nothing of it: pace, single fixes, joint fixes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.replay.helpers import effects_of, replay_of
from tests.simulator import simulate
from tests.simulator.random_programs import FaultKind, random_program
from tests.simulator.run import sustained_us

PROGRAMS = 220
PER_TEST = 20
WITHIN = 0.05  # of the step


def pace_us(step, fixes=()) -> float:
    return sustained_us(step, fixes, settle=14, measure=8)


@pytest.mark.parametrize("first", range(0, PROGRAMS, PER_TEST))
def test_pace_and_savings_of_random_programs_are_predicted(first: int, tmp_path: Path) -> None:
    wrong = []
    for seed in range(first, first + PER_TEST):
        program = random_program(seed)
        trace, replay = replay_of(simulate(program.step, steps=6, sustained=False), tmp_path)
        now = pace_us(program.step)
        if replay.error_pct > 100 * WITHIN:
            wrong.append(f"{seed}: unchanged replay off by {replay.error_pct:.1f} %")
        if abs(replay.step_ns / 1000 - now) > WITHIN * now:
            wrong.append(f"{seed}: pace {replay.step_ns / 1000:.1f} instead of {now:.1f} us")
        for fixes in {*((name,) for name in program.names), program.names, program.names[:2]}:
            true = now - pace_us(program.step, fixes)
            found = replay.what_if(effects_of(trace, program, fixes)).saved_ns / 1000
            if abs(found - true) > WITHIN * now:
                kinds = [f.kind.value for f in program.faults if f.name in fixes]
                wrong.append(f"{seed}: {kinds} saves {found:.1f} instead of {true:.1f} of {now:.1f} us")
    assert not wrong, "\n".join(wrong)


def test_both_kinds_of_program_and_every_kind_of_fault_occur() -> None:
    programs = [random_program(seed) for seed in range(PROGRAMS)]
    kinds = {fault.kind for program in programs for fault in program.faults}
    assert kinds == set(FaultKind)
    assert sum(p.device_bound for p in programs) == PROGRAMS // 2
    assert sum(len(p.faults) > 1 for p in programs) > PROGRAMS // 2
