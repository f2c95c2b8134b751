"""Memory events by step, and what ran when one happened."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from core.kinds import TrackKind
from core.rule_tools.facts import Facts
from core.sets import distinct
from core.tables import I64


def per_step(facts: Facts, device: int | None = None) -> Iterator[tuple[int, I64, I64]]:
    """Row, allocated and reserved bytes of a device's events, for each counted step.

    ``device`` is the one with the most events when omitted (a GPU before the CPU).
    """
    memory, steps = facts.trace.memory, facts.figures.steps
    held = facts.memo.get(key := f"memory of device {device}")
    rows = facts.step_rows
    if held is None:
        if device is None:
            gpus = memory.device[memory.device >= 0]
            found = distinct(gpus).tolist()
            device = max(found, key=lambda one: int((gpus == one).sum()), default=-1)
        mine = (memory.device == device) & (memory.allocated_bytes >= 0)
        at = mine.nonzero()[0].astype(np.int32)
        time = memory.time_ns[at]
        held = facts.memo[key] = at, [time.searchsorted(edge[rows]).tolist() for edge in (steps.start_ns, steps.end_ns)]
    at, bounds = held
    for row, first, end in zip(rows.tolist(), *bounds, strict=True):
        yield row, memory.allocated_bytes[at[first:end]], memory.reserved_bytes[at[first:end]]


def slice_at(facts: Facts, time_ns: int, thread_id: int) -> int:
    """Innermost operator (else Python frame or range) of a thread at an instant, -1 when there is none."""
    for kind in (TrackKind.CPU_OPS, TrackKind.CPU_PYTHON, TrackKind.CPU_RANGES):
        found = facts.innermost(thread_id, kind, time_ns)
        if found >= 0:
            return found
    return -1
