"""Memory events by step, and what ran when one happened."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from core.kinds import TrackKind
from core.rule_tools.facts import Facts
from core.tables import I64


def per_step(facts: Facts, device: int | None = None) -> Iterator[tuple[int, I64, I64]]:
    """Row, allocated and reserved bytes of a device's events, for each counted step.

    ``device`` is the one with the most events when omitted (a GPU before the CPU).
    """
    memory, steps = facts.trace.memory, facts.figures.steps
    if device is None:
        found, counts = np.unique(memory.device[memory.device >= 0], return_counts=True)
        device = int(found[np.argmax(counts)]) if len(found) else -1
    mine = (memory.device == device) & (memory.allocated_bytes >= 0)
    time, allocated, reserved = memory.time_ns[mine], memory.allocated_bytes[mine], memory.reserved_bytes[mine]
    for row in facts.step_rows:
        a, b = np.searchsorted(time, (steps.start_ns[row], steps.end_ns[row]))
        yield int(row), allocated[a:b], reserved[a:b]


def slice_at(facts: Facts, time_ns: int, thread_id: int) -> int:
    """Innermost operator (else Python frame or range) of a thread at an instant, -1 when there is none."""
    for kind in (TrackKind.CPU_OPS, TrackKind.CPU_PYTHON, TrackKind.CPU_RANGES):
        found = facts.innermost(thread_id, kind, time_ns)
        if found >= 0:
            return found
    return -1
