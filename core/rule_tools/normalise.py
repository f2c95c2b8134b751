"""The batch converted to float and normalised by several operators."""

from __future__ import annotations

from core.kinds import SliceKind
from core.rule_tools.facts import Facts

_ARITHMETIC = frozenset(
    ("aten::div", "aten::sub", "aten::mul", "aten::add", "aten::div_", "aten::sub_", "aten::mul_", "aten::add_")
)


def normalise_runs(facts: Facts, min_passes: int) -> list[list[int]]:
    """Conversion followed by arithmetic ops with one kernel each and alike durations, per step.

    ``min_passes`` is the least number of operators of a run; the result is slice ids.
    """
    sl = facts.trace.slices
    tops = facts.in_steps(facts.of_kind(SliceKind.CPU_OP))
    tops = tops[sl.parent_id[tops] < 0]
    runs: list[list[int]] = []
    current: list[int] = []

    def close() -> None:
        if len(current) >= min_passes and _alike(facts, current):
            runs.append(list(current))
        current.clear()

    for op in (int(t) for t in tops):
        name = facts.trace.name(op)
        if name in ("aten::to", "aten::_to_copy") and _converts(facts, op):
            close()
            current.append(op)
        elif current and name in _ARITHMETIC and len(facts.device_below(op)) == 1:
            current.append(op)
        else:
            close()
    close()
    return runs


def _converts(facts: Facts, op: int) -> bool:
    work = facts.device_below(op)
    return len(work) == 1 and int(facts.trace.slices.kind[work[0]]) == SliceKind.KERNEL


def _alike(facts: Facts, ops: list[int]) -> bool:
    """The kernels take about as long as each other: they go over the same data."""
    took = [int(facts.trace.slices.dur_ns[facts.device_below(op)].sum()) for op in ops[1:]]
    return min(took) > 0 and max(took) <= 2.5 * min(took)
