"""Operators that compute on the CPU while a device has nothing to do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.intervals import coverage, union
from core.kinds import GapCause, SliceKind
from core.rule_tools.facts import Facts
from core.rule_tools.loader import loader_calls
from core.sets import among
from core.tables import I32, I64

_LONG_NS = 100_000  # an operator that only queues work, makes a view or fills a header takes less
# What makes views or room for numbers, and computes none: a long one makes many.
_NO_NUMBERS = (
    r"^aten::_?(unsafe_)?(unflatten|flatten|split|chunk|unbind|tensor_split|narrow|select|slice|view|reshape|expand|permute"
    r"|transpose|t$|detach|alias|as_strided|empty|resize|set_|lift_fresh|item|is_nonzero|local_scalar_dense)"
)
_PINS = r"^aten::_?pin_memory$"  # copying into pinned memory has a rule of its own


@dataclass(frozen=True)
class HostCompute:
    """Outermost operators of the counted steps, and how long devices idle during them, ns."""

    ops: I32
    idle_ns: int


def host_compute(facts: Facts) -> HostCompute:
    """Find long operators of torch's own that launch nothing, on threads that launch, outside data loaders.

    Only idle time that is charged to launching counts: not what waits, allocations or communication explain.
    """
    found: HostCompute | None = facts.memo.get("host compute")
    if found is None:
        found = facts.memo["host compute"] = _find(facts)
    return found


def _find(facts: Facts) -> HostCompute:
    trace, gaps = facts.trace, facts.figures.gaps
    every = facts.in_steps(facts.matching(r"^aten::", SliceKind.CPU_OP))
    every = every.compress(trace.slices.dur_ns[every] >= _LONG_NS)
    every = every[~among(every, facts.matching(_NO_NUMBERS, SliceKind.CPU_OP))]
    ops = every[trace.slices.parent_id[every] < 0]
    ops = ops[(facts.device_counts(ops) == 0) & facts.on_launching_thread(ops)]
    pinning = facts.matching(_PINS, SliceKind.CPU_OP)
    ops = ops[~among(ops, pinning) & ~facts.within_ranges(ops, loader_calls(facts))]
    if not len(ops):
        return HostCompute(ops, 0)
    computing = np.sort(every[_own_ns(facts, every) >= _LONG_NS])
    ops = ops[computing.searchsorted(trace.slices.subtree_end[ops]) > computing.searchsorted(ops)]
    rows = gaps.cause == int(GapCause.LAUNCH)
    idle = union(gaps.start_ns[rows], gaps.end_ns[rows])
    held = coverage(idle, trace.slices.start_ns[ops], trace.end_ns[ops])
    return HostCompute(ops[held > 0], int(held.sum()))


def _own_ns(facts: Facts, ops: I32) -> I64:
    """int64[len(ops)]: time of each operator outside the operators that it calls, ns.

    One that calls a thousand others is long, though none of them may compute much.
    """
    slices = facts.trace.slices
    inner = facts.of_kind(SliceKind.CPU_OP)
    inner = inner[slices.parent_id[inner] >= 0]
    below = np.bincount(slices.parent_id[inner], weights=slices.dur_ns[inner], minlength=len(slices))
    own: I64 = slices.dur_ns[ops] - below[ops].astype(np.int64)
    return own
