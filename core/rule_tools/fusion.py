"""Runs of element-wise operators that a compiler could fuse."""

from __future__ import annotations

import re

import numpy as np

from core.intervals import contains, union
from core.kinds import SliceKind
from core.rule_tools.chains import CHAINS, find_chains, joined_rows
from core.rule_tools.facts import Facts
from core.rule_tools.loader import loader_calls
from core.rule_tools.normalise import normalise_runs
from core.rule_tools.updates import LOOP_TENSORS, update_loops
from core.tables import I32, Bool

_ELEMENTWISE = re.compile(
    r"^aten::(add|sub|mul|div|neg|exp|log|sqrt|rsqrt|pow|abs|sigmoid|tanh|relu|silu|gelu|clamp|clamp_min|where|erf|"
    r"reciprocal|maximum|minimum|lerp|addcmul|addcdiv|masked_fill|sin|cos|square|sign|hardtanh|leaky_relu|softplus|"
    r"gt|lt|ge|le|eq|ne|logical_and|logical_or|bitwise_and|bitwise_or|threshold_backward|sigmoid_backward)_?$"
)


def elementwise_runs(facts: Facts, min_length: int, least_ns: int = 0) -> list[I32]:
    """Runs of sibling element-wise ops with one kernel each; of a program on the CPU, of ops that take long.

    Those of known chains, of a batch's normalisation and of updates tensor by tensor are left out; on the CPU also
    what a data loader runs, what an operator of torch runs itself, and the same op on one tensor after another.

    Parameters
    ----------
    facts
        Look-ups.
    min_length
        Shortest run, in ops.
    least_ns
        Shortest op on the CPU, ns.

    Returns
    -------
    list[I32]
        Slice ids of the ops of each run, int32[k].
    """
    sl = facts.trace.slices
    taken = {op for chain in CHAINS for ops in find_chains(facts, chain) for op in ops}
    taken |= {op for run in normalise_runs(facts, 3) for op in run}
    taken |= {op for loop in update_loops(facts, LOOP_TENSORS) for op in loop.tolist()}
    good = facts.where(_ELEMENTWISE.match, SliceKind.CPU_OP)
    ops, row = joined_rows(facts)
    fits = (_computes(facts, good, taken, least_ns) if facts.on_cpu else _launches_one(facts, good, taken))[ops]
    head = np.append(True, row[1:] != row[:-1])[: len(row)]
    begins = (fits & (head | ~np.append(True, fits[:-1])[: len(fits)])).nonzero()[0]
    ends = (fits & np.append(head[1:] | ~fits[1:], True)[: len(fits)]).nonzero()[0] + 1
    used = ends - begins >= min_length
    optimizer = facts.matching(r"^Optimizer\.step#", SliceKind.RANGE)
    updates = union(sl.start_ns[optimizer], facts.trace.end_ns[optimizer])
    used[used] = ~contains(updates, sl.start_ns[ops[begins[used]]])
    runs = [ops[first:last] for first, last in zip(begins[used].tolist(), ends[used].tolist(), strict=True)]
    return [run for run in runs if not facts.on_cpu or len(set(sl.name_id[run].tolist())) > 1]


def _launches_one(facts: Facts, ops: np.ndarray, taken: set[int]) -> Bool:
    """bool[n_slices]: element-wise ops with a single kernel that belong to no known chain."""
    single = np.zeros(len(facts.trace.slices), dtype=bool)
    single[ops] = facts.device_counts(ops) == 1
    single[list(taken)] = False
    return single


def _computes(facts: Facts, ops: I32, taken: set[int], least_ns: int) -> Bool:
    """bool[n_slices]: element-wise ops that the CPU works on for long, called by the program and by no operator."""
    sl = facts.trace.slices
    ops = ops[(sl.parent_id[ops] < 0) & (sl.dur_ns[ops] >= least_ns)]
    ops = ops[~facts.within_ranges(ops, loader_calls(facts))]
    found = np.zeros(len(sl), dtype=bool)
    found[ops] = True
    found[list(taken)] = False
    return found
