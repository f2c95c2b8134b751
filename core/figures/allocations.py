"""Who allocates memory, how much, and for how long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.figures.lookup import innermost, thread_tracks
from core.figures.model import Figures
from core.kinds import SliceKind, TrackKind
from core.tables import I32, I64, Table
from core.trace import Trace

NOT_FREED, UNKNOWN = -1, -2  # lifetimes that are no number
_CALLS = (SliceKind.CPU_OP, SliceKind.RUNTIME, SliceKind.DRIVER)


@dataclass(frozen=True, eq=False)
class Allocations(Table):
    """All allocations, in time order: ``row`` of the memory table, what ran then, and how long it was held.

    ``slice_id`` is the innermost operator or call of the thread, -1 none. ``life_ns`` is `NOT_FREED` where the trace
    ends before, and `UNKNOWN` where addresses were not recorded.
    """

    row: I32
    slice_id: I32
    life_ns: I64


@dataclass(frozen=True, eq=False)
class AllocatedBy(Table):
    """The same by operator and device: bytes allocated, and what is left of them after what it freed itself."""

    name_id: I32  # -1: outside any operator
    device: I32
    count: I64
    bytes: I64
    net_bytes: I64  # allocated minus freed while it was the innermost operator, as torch.profiler's "Self Mem"
    largest_bytes: I64
    example: I32  # slice of the largest allocation, -1 none


def allocations(trace: Trace) -> Allocations:
    """Find what each allocation was made in, and when it was freed."""
    memory = trace.memory
    rows = (memory.bytes > 0).nonzero()[0].astype(np.int32)
    return Allocations(rows, _running(trace, rows, _CALLS), _lives(trace)[rows])


def allocated_by(trace: Trace) -> AllocatedBy:
    """Sum allocations up by the innermost operator and the device; the one that allocates most comes first."""
    memory = trace.memory
    at = _running(trace, np.arange(len(memory), dtype=np.int32), (SliceKind.CPU_OP,))
    name = np.where(at >= 0, trace.slices.name_id[at], -1) if len(trace.slices) else at
    key = (memory.device.astype(np.int64) + 1) * (len(trace.strings) + 1) + name + 1
    groups, group = np.unique(key, return_inverse=True)
    gain = np.maximum(memory.bytes, 0)
    count = len(groups)
    largest, example = np.zeros(count, np.int64), np.full(count, -1, np.int32)
    np.maximum.at(largest, group, gain)
    by_size = gain.argsort(kind="stable")
    example[group[by_size]] = at[by_size]
    sums = np.zeros((3, count), np.int64)
    for k, values in enumerate(((memory.bytes > 0).astype(np.int64), gain, memory.bytes)):
        np.add.at(sums[k], group, values)
    order = (-sums[1]).argsort(kind="stable")
    order = order[sums[0][order] > 0]
    return AllocatedBy(
        (groups % (len(trace.strings) + 1) - 1).astype(np.int32)[order],
        (groups // (len(trace.strings) + 1) - 1).astype(np.int32)[order],
        sums[0][order],
        sums[1][order],
        sums[2][order],
        largest[order],
        example[order],
    )


def in_use(trace: Trace, device: int) -> tuple[I64, I64, bool]:
    """Memory of a device over time: times (ns), bytes, and whether they are totals.

    Where the trace holds no totals, bytes count from the first event on: what was there before is unknown.
    """
    memory = trace.memory
    mine = memory.device == device
    told = mine & (memory.allocated_bytes >= 0)
    if int(told.sum()) >= min(2, int(mine.sum())):
        return memory.time_ns[told], memory.allocated_bytes[told], True
    return memory.time_ns[mine], memory.bytes[mine].cumsum(), False


def least_per_step(figures: Figures, time_ns: I64, in_use_bytes: I64) -> I64:
    """Least memory in use in each step, -1 for a step without an event: what stays from step to step is in it."""
    steps = figures.steps
    a = time_ns.searchsorted(steps.start_ns)
    b = time_ns.searchsorted(steps.end_ns)
    return np.asarray([in_use_bytes[i:j].min() if j > i else -1 for i, j in zip(a, b, strict=True)], np.int64)


def _running(trace: Trace, rows: I32, kinds: tuple[SliceKind, ...]) -> I32:
    memory = trace.memory
    track = thread_tracks(trace, TrackKind.CPU_OPS)[memory.thread_id[rows]]
    return innermost(trace, track, memory.time_ns[rows], kinds)


def _lives(trace: Trace) -> I64:
    """Time from each event to the next one at its address, where that frees it: int64[n], ns."""
    memory = trace.memory
    order = np.lexsort((np.arange(len(memory)), memory.address, memory.device))
    life = np.full(len(memory), NOT_FREED, np.int64)
    here, then = order[:-1], order[1:]
    freed = (memory.address[here] == memory.address[then]) & (memory.device[here] == memory.device[then])
    freed &= memory.bytes[then] < 0
    life[here[freed]] = memory.time_ns[then[freed]] - memory.time_ns[here[freed]]
    life[memory.address <= 0] = UNKNOWN
    return life
