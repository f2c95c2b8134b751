"""Random loops of richer shapes than `random_programs`: streams that fork and join, graphs of hundreds of kernels,
gradients reduced beside the backward pass, prefetched batches, queues that fill up, threads that copy meanwhile.

The faults are those of `random_programs`, so that what a fix does is said in one place.
"""

from __future__ import annotations

import random

from tests.simulator.machine import Machine
from tests.simulator.random_programs import (
    Block,
    Fault,
    FaultKind,
    RandomProgram,
    _beside,
    _compute,
    _faulty,
    _kept_read_back,
    _kernel_us,
    _loader,
    _on_thread,
    _scaled,
    _second_device,
)

COMPUTE, COLLECTIVES, PREFETCH = 7, 50, 60


def rich_program(seed: int) -> RandomProgram:
    """Make a program: odd seeds are bound by the device unless they wait, even ones by the host."""
    rng = random.Random(f"rich {seed}")
    program = RandomProgram(seed, device_bound=bool(seed % 2))
    bound = program.device_bound
    parts: list[Block] = [_compute(rng, bound) for _ in range(rng.randint(1, 3))]
    shapes = rng.sample(
        [_forked, _big_graph, _graph_aside, _reduced, _prefetched, _beside, _scaled, _second_device, _many, _late_read],
        k=rng.randint(2, 4),
    )
    # Which of several events a wait is for is not in a trace: no program where that decides.
    recorded = any(shape in (_forked, _reduced, _prefetched, _graph_aside) for shape in shapes)
    if recorded and _late_read in shapes:
        shapes.remove(_late_read)
    parts += [shape(rng, bound) for shape in shapes]
    rng.shuffle(parts)
    for number in range(rng.randint(1, 5)):
        kinds = [k for k in FaultKind if not (k is FaultKind.EVENT and (recorded or _late_read in shapes))]
        fault = Fault(f"fault {number}", rng.choice(kinds))
        program.faults.append(fault)
        parts.insert(rng.randint(0, len(parts)), _faulty(rng, fault, bound))
    program._blocks += parts
    if rng.random() < 0.5:
        program._blocks.append(_on_thread(_compute(rng, bound)))
    if rng.random() < 0.3:
        program._blocks.append(_kept_read_back(rng))
    if rng.random() < 0.3:
        program._blocks.insert(0, _loader(rng, program))
    return program


def _forked(rng: random.Random, device_bound: bool) -> Block:
    """Two or three streams that start from the compute stream and are joined by it."""
    streams = [20 + k for k in range(rng.randint(2, 3))]
    work = {s: [_kernel_us(rng, device_bound) for _ in range(rng.randint(1, 4))] for s in streams}

    def run(m: Machine, number: int) -> None:
        for stream, kernels in work.items():
            m.stream_wait(m.event_record(COMPUTE), stream)
            for us in kernels:
                m.kernel_op("aten::branch", us=us, stream=stream)
        m.kernel_op("aten::own", us=5.0)
        for stream in streams:
            m.stream_wait(m.event_record(stream), COMPUTE)
            m.kernel_op("aten::joined", us=4.0)

    return run


def _big_graph(rng: random.Random, device_bound: bool) -> Block:
    kernels = [_kernel_us(rng, device_bound) / 10 for _ in range(rng.randint(100, 300))]
    return lambda m, number: m.graph(kernels)


def _graph_aside(rng: random.Random, device_bound: bool) -> Block:
    """A graph on a stream of its own, joined at once or by the next step only."""
    kernels = [_kernel_us(rng, device_bound) / 2 for _ in range(rng.randint(10, 40))]
    join = rng.random() < 0.5

    def run(m: Machine, number: int) -> None:
        m.stream_wait(m.event_record(COMPUTE), 25)
        m.graph(kernels, stream=25)
        if join:
            m.stream_wait(m.event_record(25), COMPUTE)
            m.kernel_op("aten::joined", us=4.0)

    return run


def _reduced(rng: random.Random, device_bound: bool) -> Block:
    """A backward pass in buckets: each is reduced on the stream of the collectives while the next one is computed."""
    buckets = [[_kernel_us(rng, device_bound) for _ in range(rng.randint(2, 5))] for _ in range(rng.randint(2, 4))]
    reduce_us = [_kernel_us(rng, device_bound) * rng.uniform(0.5, 4) for _ in buckets]
    inside = rng.random() < 0.5

    def backward(m: Machine) -> None:
        for kernels, us in zip(buckets, reduce_us, strict=True):
            for kernel in kernels:
                m.kernel_op("aten::mm_backward", us=kernel)
            with m.op("c10d::allreduce_", us=10.0):
                m.stream_wait(m.event_record(COMPUTE), COLLECTIVES)
                m.kernel(us, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", stream=COLLECTIVES)

    def run(m: Machine, number: int) -> None:
        if inside:
            with m.thread("autograd"):
                backward(m)
        else:
            backward(m)
        m.stream_wait(m.event_record(COLLECTIVES), COMPUTE)
        m.kernel_op("aten::_foreach_add_", us=10.0)

    return run


def _prefetched(rng: random.Random, device_bound: bool) -> Block:
    """The next batch is copied on a stream of its own; the compute stream waits for it one step later."""
    us = _kernel_us(rng, device_bound) * rng.uniform(0.5, 3)

    def run(m: Machine, number: int) -> None:
        m.stream_wait(m.event_record(PREFETCH), COMPUTE)
        m.kernel_op("aten::use_batch", us=6.0)
        m.copy("HtoD", 1 << 18, us=us, pinned=True, blocking=False, stream=PREFETCH)

    return run


def _many(rng: random.Random, device_bound: bool) -> Block:
    """So many launches that the queue fills within a few steps, where the device sets the pace."""
    count, us = rng.randint(150, 500), _kernel_us(rng, device_bound) / 8

    def run(m: Machine, number: int) -> None:
        for _ in range(count):
            m.kernel_op("aten::add", us=us, host_us=1.0 if device_bound else 8.0)

    return run


def _late_read(rng: random.Random, device_bound: bool) -> Block:
    """A loss that is copied without waiting, and read one step later behind its event."""

    def run(m: Machine, number: int) -> None:
        if "loss" in m.kept:
            m.event_synchronize(m.kept["loss"])
        m.copy("DtoH", 4, us=1.5, pinned=True, blocking=False)
        m.kept["loss"] = m.event_record()

    return run


__all__ = ["rich_program"]
