"""Random loops of kinds that `random_programs` and `rich_programs` do not have, with the same faults in them."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.simulator.machine import Machine
from tests.simulator.random_programs import Block, Fault, FaultKind, RandomProgram, _compute, _faulty, _kernel_us

Kind = Callable[[random.Random, bool], Block]
# Which of several events a wait is for is not in a trace: no faults where that decides.
_FAULTS = [kind for kind in FaultKind if kind is not FaultKind.EVENT]


def loop_of_kind(kind: str, seed: int) -> RandomProgram:
    """Make a program: odd seeds are bound by the device unless they wait, even ones by the host."""
    rng = random.Random(f"{kind} {seed}")
    program = RandomProgram(seed, device_bound=bool(seed % 2))
    bound = program.device_bound
    parts: list[Block] = [_compute(rng, bound) for _ in range(rng.randint(1, 3))]
    # What waits for a whole device waits for what other threads have launched by then, which a fix may change.
    wide = (FaultKind.FREE, FaultKind.SYNCHRONIZE) if kind in ("beside_backward", "three_threads") else ()
    for number in range(rng.randint(1, 3)):
        fault = Fault(f"fault {number}", rng.choice([one for one in _FAULTS if one not in wide]))
        program.faults.append(fault)
        parts.insert(rng.randint(0, len(parts)), _faulty(rng, fault, bound))
    parts.insert(rng.randint(0, len(parts)), KINDS[kind](rng, bound))
    program._blocks += parts
    return program


def _several(rng: random.Random, device_bound: bool, low: int, high: int) -> list[float]:
    return [_kernel_us(rng, device_bound) for _ in range(rng.randint(low, high))]


def _run(m: Machine, kernels: list[float], name: str = "aten::mm", stream: int = 7, device: int = 0) -> None:
    for us in kernels:
        m.kernel_op(name, us=us, host_us=12.0, stream=stream, device=device)


def _crossed_branches(rng: random.Random, device_bound: bool) -> Block:
    """Branches on streams of their own, one of which waits for another before all are joined."""
    branches = {stream: _several(rng, device_bound, 1, 6) for stream in range(20, 20 + rng.randint(2, 4))}
    own = _several(rng, device_bound, 1, 5)

    def run(m: Machine, number: int) -> None:
        start = m.event_record(7)
        for stream, kernels in branches.items():
            m.stream_wait(start, stream)
            _run(m, kernels, f"aten::branch{stream}", stream)
        _run(m, own)
        m.stream_wait(m.event_record(20), 21)
        m.kernel_op("aten::crossed", us=own[0], stream=21)
        for stream in branches:
            m.stream_wait(m.event_record(stream), 7)
        m.kernel_op("aten::joined", us=4.0)

    return run


def _graphs_apart(rng: random.Random, device_bound: bool) -> Block:
    """Replays of graphs with work of the CPU between them."""
    graphs = [[us / 6 for us in _several(rng, device_bound, 30, 250)] for _ in range(rng.randint(1, 3))]
    pause_us = rng.uniform(20, 400)

    def run(m: Machine, number: int) -> None:
        for kernels in graphs:
            m.graph(kernels)
            m.cpu(pause_us)

    return run


def _halves(rng: random.Random, device_bound: bool) -> Block:
    """Halves of a model on two devices, which copy to each other."""
    first, second = (_several(rng, device_bound, 3, 10) for _ in range(2))
    copy_us, back = rng.uniform(10, 120), rng.random() < 0.6

    def send(m: Machine, source: int) -> None:
        with m.op("aten::to"), m.op("aten::copy_"):
            m.stream_wait(m.event_record(7, 1 - source), 7, source)
            m.copy("DtoD", 1 << 20, us=copy_us, blocking=False, device=source)
            m.stream_wait(m.event_record(7, source), 7, 1 - source)

    def run(m: Machine, number: int) -> None:
        _run(m, first)
        send(m, 0)
        _run(m, second, device=1)
        if back:
            send(m, 1)
            _run(m, first, "aten::mm_backward")

    return run


def _accumulated(rng: random.Random, device_bound: bool) -> Block:
    """Gradients of micro batches of unequal sizes, all in one step."""
    kernels, sizes = _several(rng, device_bound, 3, 8), [rng.uniform(0.4, 1.8) for _ in range(rng.randint(2, 5))]

    def run(m: Machine, number: int) -> None:
        for size in sizes:
            _run(m, [us * size for us in kernels])
            with m.thread("autograd"):
                _run(m, [us * size for us in kernels], "aten::mm_backward")

    return run


def _lengths(rng: random.Random, device_bound: bool) -> Block:
    """Sequences of all lengths: steps take up to three times as long as others."""
    kernels, seed = _several(rng, device_bound, 4, 9), rng.random()

    def run(m: Machine, number: int) -> None:
        length = random.Random(f"{seed} {number}").randint(2, 6)
        _run(m, kernels * length)

    return run


def _slower(rng: random.Random, device_bound: bool) -> Block:
    """A device that gets slower from step to step."""
    kernels, rate = _several(rng, device_bound, 5, 12), rng.uniform(0.01, 0.04)
    return lambda m, number: _run(m, [us * (1 + rate * number) for us in kernels])


def _beside_backward(rng: random.Random, device_bound: bool) -> Block:
    """A backward pass on a thread and a stream of its own, for which the step waits at its end or at its beginning."""
    forward, backward = _several(rng, device_bound, 2, 8), _several(rng, device_bound, 4, 12)
    late = rng.random() < 0.5

    def run(m: Machine, number: int) -> None:
        if late:
            m.join("autograd")
        with m.background("autograd"):
            _run(m, backward, "aten::mm_backward", 21)
        _run(m, forward)
        if not late:
            m.join("autograd")

    return run


def _logged(rng: random.Random, device_bound: bool) -> Block:
    """A loss that is read in one step of ten."""
    kernels = _several(rng, device_bound, 2, 8)

    def run(m: Machine, number: int) -> None:
        _run(m, kernels)
        if number % 10 == 4:
            m.item()
            m.cpu(50)

    return run


def _uneven_collectives(rng: random.Random, device_bound: bool) -> Block:
    """Buckets beside the backward pass whose collectives take longer in some steps than in others."""
    buckets = [_several(rng, device_bound, 2, 4) for _ in range(rng.randint(3, 6))]
    took, seed = [sum(us) * rng.uniform(0.3, 1.5) for us in buckets], rng.random()

    def run(m: Machine, number: int) -> None:
        longer = 1 + random.Random(f"{seed} {number}").uniform(0, 0.5)
        with m.thread("autograd"):
            for kernels, us in zip(buckets, took, strict=True):
                _run(m, kernels, "aten::mm_backward")
                with m.op("c10d::allreduce_", us=10.0):
                    m.stream_wait(m.event_record(7), 50)
                    m.kernel(us * longer, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", stream=50)
        m.stream_wait(m.event_record(50), 7)
        m.kernel_op("aten::_foreach_add_", us=10.0)

    return run


def _three_threads(rng: random.Random, device_bound: bool) -> Block:
    """Two more threads with streams of their own, which the main one waits for."""
    work = [_several(rng, device_bound, 4, 10) for _ in range(3)]

    def run(m: Machine, number: int) -> None:
        for place in (1, 2):
            with m.background(f"worker {place}"):
                _run(m, work[place], f"aten::of{place}", 30 + place)
        _run(m, work[0])
        m.join("worker 1")
        m.join("worker 2")
        m.kernel_op("aten::joined", us=4.0)

    return run


KINDS: dict[str, Kind] = {
    "crossed_branches": _crossed_branches,
    "graphs_apart": _graphs_apart,
    "halves": _halves,
    "accumulated": _accumulated,
    "lengths": _lengths,
    "slower": _slower,
    "beside_backward": _beside_backward,
    "logged": _logged,
    "uneven_collectives": _uneven_collectives,
    "three_threads": _three_threads,
}

__all__ = ["KINDS", "loop_of_kind"]
