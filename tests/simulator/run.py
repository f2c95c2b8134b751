"""Running a program: what the profiler would record of it, and the truth that the recording does not show."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tests.simulator.clock import Costs, Recorded
from tests.simulator.kineto import to_kineto
from tests.simulator.machine import Machine

Step = Callable[[Machine, int], None]
STEPS_TO_SETTLE = 24
STEPS_TO_MEASURE = 24


@dataclass(frozen=True)
class SyncTruth:
    """One blocking call: how long the device work that it waits for (its own copy included) kept it waiting."""

    call: str
    start_us: float
    dur_us: float
    wait_us: float
    step: int
    tag: str


@dataclass(frozen=True)
class Run:
    """One simulated profiling."""

    events: tuple[Recorded, ...]
    syncs: tuple[SyncTruth, ...]
    step_start_us: tuple[float, ...]
    host_step_us: tuple[float, ...]
    sustained_step_us: float  # true pace of the loop without a profiler, after settling
    device_name: str
    shapes: bool
    header: dict[str, Any] = field(default_factory=dict)

    @property
    def wait_us_per_step(self) -> float:
        """Mean true wait per recorded step."""
        return sum(s.wait_us for s in self.syncs if s.step >= 0) / len(self.host_step_us)

    @property
    def kernel_us_per_step(self) -> float:
        """Mean sum of kernel time per recorded step (all streams)."""
        return sum(e.dur_us for e in self.events if e.cat == "kernel") / len(self.host_step_us)

    def to_dict(self) -> dict[str, Any]:
        """Return the trace as Kineto would write it."""
        return to_kineto(self.events, self.device_name, self.shapes, self.header)

    def to_json(self) -> bytes:
        """Return the trace as bytes of JSON."""
        return orjson.dumps(self.to_dict())

    def write(self, path: Path) -> Path:
        """Write the trace, uncompressed; returns the path."""
        path.write_bytes(self.to_json())
        return path


def simulate(
    step: Step,
    steps: int = 5,
    *,
    warmup: int = 2,
    fixes: Collection[str] = (),
    stacks: bool = True,
    shapes: bool = False,
    device_name: str = "NVIDIA A10G",
    marked: bool = True,
    costs: Costs | None = None,
    first_number: int = 2,
    header: dict[str, Any] | None = None,
    sustained: bool = True,
    drained: bool = True,
) -> Run:
    """Simulate a loop.

    Parameters
    ----------
    step
        The program: called with the machine and the step's number.
    steps, warmup
        Recorded steps, and steps before them that the recording leaves out. As in torch.profiler, the device is
        synchronised before the window opens and when it closes.
    fixes
        Names of the faults to go without.
    marked
        Write ``ProfilerStep#n``.
    header
        More top-level keys of the JSON.
    sustained
        Work out `Run.sustained_step_us` too (else it is 0).
    drained
        False: the device is not synchronised before the window opens, and works off launches of the time before.
    """
    machine = Machine(costs, fixes, stacks)
    number = first_number - warmup
    for _ in range(warmup):
        step(machine, number)
        number += 1
    if drained:
        machine.device_synchronize()
    machine.recording = True
    starts, durations = [], []
    for _ in range(steps):
        start = machine.now_us
        machine.step_number = number
        first_event = len(machine.recorded)
        step(machine, number)
        starts.append(start)
        durations.append(machine.now_us - start)
        if marked:
            _mark_step(machine, number, start, first_event)
        machine.cpu(2.0)
        number += 1
    machine.step_number = -1
    machine.device_synchronize()
    pace = sustained_us(step, fixes, costs) if sustained else 0.0
    truth = tuple(SyncTruth(**s) for s in machine.syncs)
    events = tuple(machine.recorded)
    return Run(events, truth, tuple(starts), tuple(durations), pace, device_name, shapes, dict(header or {}))


def sustained_us(
    step: Step,
    fixes: Collection[str] = (),
    costs: Costs | None = None,
    settle: int = STEPS_TO_SETTLE,
    measure: int = STEPS_TO_MEASURE,
) -> float:
    """Time per step of the endless loop: measured on the slower of host and device, after settling."""
    machine = Machine(costs, fixes, stacks=False)
    for number in range(settle):
        step(machine, number)
        machine.cpu(2.0)
    before = _progress(machine)
    for number in range(settle, settle + measure):
        step(machine, number)
        machine.cpu(2.0)
    after = _progress(machine)
    return max(after[k] - before.get(k, 0.0) for k in after) / measure


def _progress(machine: Machine) -> dict[Any, float]:
    """Time reached by the main thread and by every stream."""
    return {"main": machine.now_us, **machine.clock.tail}


def _mark_step(machine: Machine, number: int, start_us: float, first_event: int) -> None:
    """ProfilerStep on the CPU and its twin on every stream that got work from it."""
    name = f"ProfilerStep#{number}"
    machine.recorded.append(Recorded("user_annotation", name, "main", start_us, machine.now_us - start_us))
    spans: dict[Any, list[float]] = {}
    for event in machine.recorded[first_event:]:
        if event.cat in ("kernel", "gpu_memcpy", "gpu_memset"):
            span = spans.setdefault(event.tid, [event.start_us, event.start_us])
            span[0] = min(span[0], event.start_us)
            span[1] = max(span[1], event.start_us + event.dur_us)
    for place, (first, last) in spans.items():
        machine.recorded.append(Recorded("gpu_user_annotation", name, place, first, last - first))
