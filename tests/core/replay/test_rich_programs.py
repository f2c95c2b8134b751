"""The replay against the simulator on loops of richer shapes: forks and joins, graphs, collectives, prefetching.

Where streams overlap that did not overlap before, a fix can save more than the device idles. The replay then promises
no more than the idle time (basis *bounded*): such a saving may be too low, never too high.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from core.figures.compute import compute_figures
from core.importing import open_trace
from core.importing.ranks import merge
from core.kinds import SliceKind
from core.replay.replay import Replay
from core.suggestions import Effect, EffectKind
from tests.core.replay.helpers import effects_of, named, replay_of
from tests.simulator import Machine, simulate
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
    170: "a graph is launched where the range before it ends, by rounded times a nanosecond earlier",
    206: "a late event whose call ends by chance when another kernel ends",
    218: "a side stream forks behind a copy that gets a stream of its own",
    224: "a device is synchronised that is idle, while the one that was launched on last is at work",
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


@pytest.mark.parametrize("fast_us", [60, 380])
def test_of_several_processes_the_slowest_sets_the_pace_before_and_after_a_fix(fast_us: int, tmp_path: Path) -> None:
    """Taking work from the slower rank helps until the other one is the slowest."""

    def rank(us: float):
        def step(m: Machine, number: int) -> None:
            for _ in range(10):
                m.kernel_op("aten::mm", us=us)
            if not m.fixed("extra"):
                for _ in range(10):
                    m.kernel_op("aten::extra", us=200 if us == 100 else 1)

        return step

    traces, paces = [], []
    for number, us in enumerate((100, fast_us)):
        run = simulate(rank(us), header={"distributedInfo": {"backend": "nccl", "rank": number, "world_size": 2}})
        traces.append(open_trace(run.write(tmp_path / f"rank{number}.json")))
        paces.append((run.sustained_step_us, sustained_us(rank(us), ("extra",))))
    both = merge(traces)
    replay = Replay(both, compute_figures(both))
    assert replay.step_ns / 1000 == pytest.approx(max(now for now, _ in paces), rel=WITHIN)
    work = named(both, "void at_extra_kernel<float>(int)", SliceKind.KERNEL)
    extra = named(both, "aten::extra", SliceKind.CPU_OP)
    saved = replay.what_if([Effect(EffectKind.REMOVE_WORK, extra), Effect(EffectKind.SCALE_DEVICE, work, 0.0)]).saved_ns
    true = max(now for now, _ in paces) - max(after for _, after in paces)
    assert saved / 1000 == pytest.approx(true, abs=WITHIN * max(now for now, _ in paces))
