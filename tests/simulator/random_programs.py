"""Random training loops with faults in them: for comparing what the replay predicts with what then happens.

Each fault stands in a range of its own, ``fault <number>``, so that a test finds its slices by name, and is left out
(or mended, see `FaultKind`) when the simulation is run with its name among the fixes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from tests.simulator.machine import Machine
from tests.simulator.run import sustained_us

Block = Callable[[Machine, int], None]


class FaultKind(Enum):
    """What is wrong, and what its fix does to the program."""

    READ_BACK = "read_back"  # .item(): gone
    CONSTANT = "constant"  # small pageable copy to the device: gone
    SYNCHRONIZE = "synchronize"  # torch.cuda.synchronize(): gone
    PAGEABLE = "pageable"  # batch from pageable memory: the copy stays, asynchronous
    PYTHON = "python"  # host work: gone
    CHAIN = "chain"  # many small kernels: one kernel of the summed duration
    SLOW_KERNELS = "slow_kernels"  # kernels: half as long
    EVENT = "event"  # waiting for an event that was just recorded: gone
    FREE = "free"  # cudaFree and cudaMalloc in the step: gone
    COMPUTE_STREAM = "compute_stream"  # pageable copy on the compute stream: asynchronous on a stream of its own


@dataclass(frozen=True)
class Fault:
    """One fault of a program."""

    name: str
    kind: FaultKind


@dataclass
class RandomProgram:
    """A program made from a seed: ``step`` is what `simulate` takes."""

    seed: int
    device_bound: bool
    faults: list[Fault] = field(default_factory=list)
    _blocks: list[Block] = field(default_factory=list)

    def step(self, m: Machine, number: int) -> None:
        """One step of the loop."""
        for block in self._blocks:
            block(m, number)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all faults."""
        return tuple(f.name for f in self.faults)


def random_program(seed: int) -> RandomProgram:
    """Make a program: odd seeds are bound by the device unless they wait, even ones by the host."""
    rng = random.Random(seed)
    program = RandomProgram(seed, device_bound=bool(seed % 2))
    blocks = program._blocks
    parts: list[Block] = [_compute(rng, program.device_bound) for _ in range(rng.randint(2, 4))]
    for number in range(rng.randint(1, 4)):
        fault = Fault(f"fault {number}", rng.choice(list(FaultKind)))
        program.faults.append(fault)
        parts.insert(rng.randint(0, len(parts)), _faulty(rng, fault, program.device_bound))
    side = rng.random() < 0.3
    if side:
        parts.insert(rng.randint(0, len(parts)), _side_stream(rng, program.device_bound))
    blocks += parts
    if rng.random() < 0.5:
        blocks.append(_on_thread(_compute(rng, program.device_bound)))
    if rng.random() < 0.3:
        blocks.append(_kept_read_back(rng))
    extras = (_graph, _second_device, _late_event, _beside, _scaled)
    # Which of several events a wait is for is not in a trace: no program where that decides.
    several = side or any(f.kind is FaultKind.EVENT for f in program.faults)
    for extra in extras:
        if rng.random() < 0.15 and not (extra is _late_event and several):
            blocks.insert(rng.randint(0, len(blocks)), extra(rng, program.device_bound))
    if rng.random() < 0.3:
        blocks.insert(0, _loader(rng, program))
    return program


def _kernel_us(rng: random.Random, device_bound: bool) -> float:
    return round(rng.uniform(60, 400) if device_bound else rng.uniform(3, 15), 1)


def _compute(rng: random.Random, device_bound: bool) -> Block:
    kernels = [_kernel_us(rng, device_bound) for _ in range(rng.randint(3, 10))]
    host = [round(rng.uniform(5, 15) if device_bound else rng.uniform(15, 40), 1) for _ in kernels]

    def run(m: Machine, number: int) -> None:
        for us, host_us in zip(kernels, host, strict=True):
            m.kernel_op("aten::mm", us=us, host_us=host_us)

    return run


def _on_thread(block: Block) -> Block:
    def run(m: Machine, number: int) -> None:
        with m.thread("autograd"):
            block(m, number)

    return run


def _loader(rng: random.Random, program: RandomProgram) -> Block:
    """A loader in the thread itself, or in processes that either keep the loop waiting or never do.

    How fast processes that keep up *could* be is nowhere in a trace, so that programs in which they become the
    bottleneck only after a fix are left out.
    """
    if rng.random() < 0.5:
        us = rng.uniform(200, 800)
        return lambda m, number: m.loader(us)
    if rng.random() < 0.5:
        workers = rng.choice([1, 2, 4])
        return lambda m, number: m.loader(20.0 * workers, workers=workers)
    pace = sustained_us(program.step, settle=6, measure=6) * rng.uniform(1.4, 2.0)
    return lambda m, number: m.loader(pace, workers=1)


def _side_stream(rng: random.Random, device_bound: bool) -> Block:
    us = _kernel_us(rng, device_bound)

    def run(m: Machine, number: int) -> None:
        m.stream_wait(m.event_record(7), 20)
        m.kernel_op("aten::side", us=us, stream=20)
        m.kernel_op("aten::beside", us=us / 2)
        m.stream_wait(m.event_record(20), 7)

    return run


def _graph(rng: random.Random, device_bound: bool) -> Block:
    kernels = [_kernel_us(rng, device_bound) for _ in range(rng.randint(3, 20))]
    return lambda m, number: m.graph(kernels)


def _second_device(rng: random.Random, device_bound: bool) -> Block:
    us = _kernel_us(rng, device_bound)

    def run(m: Machine, number: int) -> None:
        for _ in range(3):
            m.kernel_op("aten::mm", us=us, device=1)

    return run


def _late_event(rng: random.Random, device_bound: bool) -> Block:
    """Wait for an event of the step before: keeps the host at most a step ahead."""

    def run(m: Machine, number: int) -> None:
        if "late" in m.kept:
            m.event_synchronize(m.kept["late"])
        m.kept["late"] = m.event_record()

    return run


def _beside(rng: random.Random, device_bound: bool) -> Block:
    """A pinning thread that copies on a stream of its own."""
    us = rng.uniform(20, 80)

    def run(m: Machine, number: int) -> None:
        with m.background("pin"), m.op("aten::copy_", us=us):
            m.copy("HtoD", 1 << 16, us=20, pinned=True, blocking=False, stream=30)

    return run


def _scaled(rng: random.Random, device_bound: bool) -> Block:
    """More work in every other step."""
    us = _kernel_us(rng, device_bound)

    def run(m: Machine, number: int) -> None:
        for _ in range(2 + 2 * (number % 2)):
            m.kernel_op("aten::mm", us=us)

    return run


def _kept_read_back(rng: random.Random) -> Block:
    pinned = rng.random() < 0.5

    def run(m: Machine, number: int) -> None:
        with m.range("log"):
            m.item(pinned=pinned)

    return run


def _faulty(rng: random.Random, fault: Fault, device_bound: bool) -> Block:
    pinned = rng.random() < 0.5
    size = rng.randint(1 << 12, 1 << 22)
    host_us = rng.uniform(50, 500)
    chain = [_kernel_us(rng, device_bound)] * rng.randint(4, 10)
    name, kind = fault.name, fault.kind

    def run(m: Machine, number: int) -> None:
        fixed = m.fixed(name)
        if kind is FaultKind.CHAIN:
            _chain(m, name, [sum(chain)] if fixed else chain)
        elif kind is FaultKind.SLOW_KERNELS:
            _chain(m, name, [us / 2 for us in chain] if fixed else chain)
        elif kind is FaultKind.COMPUTE_STREAM:
            with m.range(name):
                m.to_device(size, pinned=fixed, non_blocking=fixed, stream=40 if fixed else 7)
        elif kind is FaultKind.PAGEABLE:
            with m.range(name):
                m.to_device(size, pinned=fixed, non_blocking=fixed)
        elif not fixed:
            with m.range(name):
                if kind is FaultKind.READ_BACK:
                    m.item(pinned=pinned)
                elif kind is FaultKind.CONSTANT:
                    m.to_device(40)
                elif kind is FaultKind.SYNCHRONIZE:
                    m.device_synchronize()
                elif kind is FaultKind.EVENT:
                    m.event_synchronize(m.event_record())
                elif kind is FaultKind.FREE:
                    m.free()
                    m.malloc()
                else:
                    m.cpu(host_us)

    return run


def _chain(m: Machine, name: str, kernels: list[float]) -> None:
    with m.range(name, us=0.0):
        for us in kernels:
            m.kernel_op("aten::mul", us=us)


__all__ = ["Fault", "FaultKind", "RandomProgram", "random_program"]
