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
    names = facts.trace.slices.name_id
    writes, works = _named(facts, _WRITES), _named(facts, _IN_PLACE + _BESIDE)
    fits = works | _named(facts, _MOVES)
    optimizer = facts.matching(r"^Optimizer\.(step|zero_grad)#", SliceKind.RANGE)
    for row in sibling_rows(facts):
        if len(row) < min_tensors or facts.trace.slices.parent_id[row[0]] >= 0:
            continue
        for part in _stretches(row, fits[names[row]], min_tensors):
            launches = np.ones(len(part), dtype=bool) if facts.on_cpu else facts.device_counts(part) == 1
            parts = _stretches(part, launches, min_tensors)
            for run in (run for one in parts for run in _repeated(one, names[one], min_tensors)):
                done = names[run[:_LONGEST]]
                if not writes[done].any() or not works[done].any() or facts.within_ranges(run[:1], optimizer)[0]:
                    continue
                yield run


def _stretches(row: I32, good: Bool, at_least: int) -> list[I32]:
    """The stretches of a row in which all are good, of ``at_least`` operators."""
    edges = np.diff(good.astype(np.int8), prepend=0, append=0).nonzero()[0]
    first, last = edges[::2], edges[1::2]
    long = last - first >= at_least
    return [row[a:b] for a, b in zip(first[long].tolist(), last[long].tolist(), strict=True)]


def _repeated(row: I32, names: I32, min_tensors: int) -> Iterator[I32]:
    """Repetitions in one stretch of siblings, those with the fewest operators for each tensor first."""
    free = np.ones(len(row), dtype=bool)
    for period in range(1, _LONGEST + 1):
        if len(row) < period * min_tensors:
            return
        again = free[:-period] & free[period:] & (names[:-period] == names[period:])
        edges = np.diff(again.astype(np.int8), prepend=0, append=0).nonzero()[0]
        for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            end = last + period
            if end - first >= period * min_tensors:
                free[first:end] = False
                yield row[first:end]


def _named(facts: Facts, names: tuple[str, ...]) -> Bool:
    return facts.name_table(facts.trace.strings.id_of(f"aten::{name}") for name in names)
