"""The batch converted to float and normalised by several operators."""

from __future__ import annotations

import numpy as np

from core.kinds import SliceKind
from core.rule_tools.facts import Facts
from core.tables import Bool

_ARITHMETIC = frozenset(
    ("aten::div", "aten::sub", "aten::mul", "aten::add", "aten::div_", "aten::sub_", "aten::mul_", "aten::add_")
)
_CONVERSIONS = frozenset(("aten::to", "aten::_to_copy"))


def normalise_runs(facts: Facts, min_passes: int) -> list[list[int]]:
    """Conversion followed by arithmetic ops with one kernel each and alike durations, per step.

    ``min_passes`` is the least number of operators of a run; the result is slice ids.
    """
    key = f"normalise runs {min_passes}"
    held = facts.memo.get(key)
    if held is None:
        held = facts.memo[key] = _find(facts, min_passes)
    return held  # type: ignore[no-any-return]


def _find(facts: Facts, min_passes: int) -> list[list[int]]:
    sl = facts.trace.slices
    if not len(facts.ops(*_CONVERSIONS)):
        return []
    tops = facts.in_steps(facts.of_kind(SliceKind.CPU_OP))
    tops = tops[sl.parent_id[tops] < 0]
    names = sl.name_id[tops]
    converts = _named(facts, _CONVERSIONS)[names].nonzero()[0]
    begins = converts[facts.device_counts(tops[converts]) == 1]
    if not len(begins):
        return []
    follows = _named(facts, _ARITHMETIC)[names]
    follows[follows] = facts.device_counts(tops[follows]) == 1
    stops = (~follows).nonzero()[0]
    runs = []
    for at in begins.tolist():
        after = int(stops.searchsorted(at, side="right"))
        end = int(stops[after]) if after < len(stops) else len(tops)
        run = tops[at:end].tolist()
        if len(run) >= min_passes and _converts(facts, run[0]) and _alike(facts, run):
            runs.append(run)
    return runs


def _named(facts: Facts, names: frozenset[str]) -> Bool:
    return facts.name_table(facts.trace.strings.id_of(n) for n in names)


def _converts(facts: Facts, op: int) -> bool:
    return int(facts.trace.slices.kind[facts.device_below(op)[0]]) == SliceKind.KERNEL


def _alike(facts: Facts, ops: list[int]) -> bool:
    """The kernels take about as long as each other: they go over the same data."""
    took = facts.device_ns(np.asarray(ops[1:], dtype=np.int32))
    return int(took.min()) > 0 and int(took.max()) <= 2.5 * int(took.min())
