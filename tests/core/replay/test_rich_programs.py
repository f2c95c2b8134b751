"""The replay against the simulator on loops of richer shapes: forks and joins, graphs, collectives, prefetching.

Where streams overlap that did not overlap before, a fix can save more than the device idles. The replay then promises
no more than the idle time (basis *bounded*): such a saving may be too low, never too high.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.replay.helpers import effects_of, replay_of
from tests.simulator import simulate
from tests.simulator.random_programs import RandomProgram, random_program
from tests.simulator.rich_programs import rich_program
from tests.simulator.run import sustained_us

PROGRAMS, PER_TEST = 40, 10
WITHIN = 0.05  # of the step
# Programs that were predicted wrongly once, with what was wrong.
FOUND = {
    6: "the main thread waits for collectives that the thread of the backward pass launched",
    45: "a stream forks from the compute stream before anything was launched on it in the recording",
    50: "the same after a copy that gets a stream of its own",
    143: "the second of two forks waits for the first branch",
    206: "a late event whose call ends by chance when another kernel ends",
    218: "a side stream forks behind a copy that gets a stream of its own",
    257: "forks of the first step",
}


def deviations(program: RandomProgram, folder: Path) -> list[str]:
    trace, replay = replay_of(simulate(program.step, steps=6, sustained=False), folder)

    def pace_us(fixes: tuple[str, ...] = ()) -> float:
        return sustained_us(program.step, fixes, settle=16, measure=16)

    now = pace_us()
    wrong = []
    if abs(replay.step_ns / 1000 - now) > WITHIN * now:
        wrong.append(f"{program.seed}: pace {replay.step_ns / 1000:.1f} instead of {now:.1f} us")
    for fixes in {*((name,) for name in program.names), program.names, program.names[:2]}:
        true, found = now - pace_us(fixes), replay.what_if(effects_of(trace, program, fixes))
        off = found.saved_ns / 1000 - true
        if off > WITHIN * now or (off < -WITHIN * now and not found.bounded):
            kinds = [f.kind.value for f in program.faults if f.name in fixes]
            wrong.append(f"{program.seed}: {kinds} saves {true + off:.1f} instead of {true:.1f} of {now:.1f} us")
    return wrong


@pytest.mark.parametrize("first", range(0, PROGRAMS, PER_TEST))
def test_loops_of_richer_shapes_are_predicted(first: int, tmp_path: Path) -> None:
    wrong = [line for seed in range(first, first + PER_TEST) for line in deviations(rich_program(seed), tmp_path)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("seed", [seed for seed in FOUND if seed >= PROGRAMS])
def test_programs_that_were_predicted_wrongly_once(seed: int, tmp_path: Path) -> None:
    assert not deviations(rich_program(seed), tmp_path), FOUND[seed]


def test_a_copy_that_is_the_first_work_of_the_recording_is_moved_like_the_others(tmp_path: Path) -> None:
    assert not deviations(random_program(1006), tmp_path)
