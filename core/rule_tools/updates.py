"""Loops of a program's own that update tensor after tensor in place: an average of weights, an optimizer by hand."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from core.kinds import SliceKind
from core.rule_tools.chains import sibling_rows
from core.rule_tools.facts import Facts
from core.tables import I32, Bool

_IN_PLACE = ("mul_", "add_", "sub_", "div_", "lerp_", "addcmul_", "addcdiv_")
_MOVES = ("copy_", "zero_")  # they write as well, but are an update only of something that was worked out
_BESIDE = ("mul", "add", "sub", "div", "sqrt", "lerp", "addcmul")
_WRITES = (*_IN_PLACE, "copy_")
LOOP_TENSORS = 20  # with fewer there is little to gain, and a chain of layers can look alike
_LONGEST = 4  # operators for each tensor: e.copy_(e * d + p * (1 - d)) has four


def update_loops(facts: Facts, min_tensors: int) -> list[I32]:
    """Loops outside any operator, optimizer of torch and backward pass that do the same to each of many tensors.

    Parameters
    ----------
    facts
        Look-ups.
    min_tensors
        How many tensors a loop must go over.

    Returns
    -------
    list[I32]
        The operators of each loop, int32[k]; on a GPU each starts one kernel.
    """
    held = facts.memo.get(key := f"update loops {min_tensors}")
    if held is None:
        held = facts.memo[key] = list(_find(facts, min_tensors))
    return held  # type: ignore[no-any-return]


def _find(facts: Facts, min_tensors: int) -> Iterator[I32]:
    if not len(facts.ops(*(f"aten::{name}" for name in _WRITES))):
        return
    sl = facts.trace.slices
    writes, works = _named(facts, _WRITES), _named(facts, _IN_PLACE + _BESIDE)
    fits = works | _named(facts, _MOVES)
    optimizer = facts.matching(r"^Optimizer\.(step|zero_grad)#", SliceKind.RANGE)
    for row in sibling_rows(facts):
        if len(row) < min_tensors or sl.parent_id[row[0]] >= 0:
            continue
        names = sl.name_id[row]
        good = fits[names]
        if not facts.on_cpu:
            good &= facts.device_counts(row) == 1
        if int(np.count_nonzero(good & writes[names])) < min_tensors:
            continue
        good &= ~facts.within_ranges(row, optimizer)
        for run in _runs(row, names, good, min_tensors):
            done = facts.trace.slices.name_id[run[:_LONGEST]]
            if bool(writes[done].any()) and bool(works[done].any()):
                yield run


def _runs(row: I32, names: I32, good: Bool, min_tensors: int) -> Iterator[I32]:
    """Repetitions in one run of siblings, those with the fewest operators for each tensor first."""
    free = good.copy()
    for period in range(1, _LONGEST + 1):
        if len(row) < period * min_tensors:
            return
        again = free[:-period] & free[period:] & (names[:-period] == names[period:])
        edges = np.flatnonzero(np.diff(np.concatenate([[False], again, [False]]).astype(np.int8)))
        for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            end = last + period
            if end - first >= period * min_tensors:
                free[first:end] = False
                yield row[first:end]


def _named(facts: Facts, names: tuple[str, ...]) -> Bool:
    return facts.name_table(facts.trace.strings.id_of(f"aten::{name}") for name in names)
