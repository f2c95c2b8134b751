"""Compiled regions of torch.compile in a trace."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace

import numpy as np

from core.kinds import SliceKind
from core.rule_tools.facts import Facts
from core.sets import among
from core.suggestions import Fix, Suggestion
from core.tables import I32, Bool

REGION = r"^Torch-Compiled Region"
CODE = r"^(Torch-Compiled Region|CompiledFunction|CompiledFxGraph|inductor::)"  # of dynamo, AOTAutograd and inductor
FUSED = r"^triton_(\w+_)?fused_"  # a kernel that inductor has made
# The compiler at work, in its own Python; and the mode in which it tries operators on tensors without data.
COMPILING = r"(dynamo_timed|compile_inner|_compile\.<locals>|compile_fx|convert_frame\.py.*_compile)"
TRACING = "PythonDispatchMode"
GOOD_PART = 0.1  # of the kernels: below it the program as a whole is not compiled
ALREADY = (
    "Part of the step runs compiled code already ({compiled_name}), which launches {compiled_count} of these kernels."
)


def compiled_regions(facts: Facts) -> dict[str, list[int]]:
    """Outermost slices of each compiled function, by name with its version left out."""
    ids = facts.matching(REGION, SliceKind.CPU_OP, SliceKind.RANGE)
    ids = ids[~facts.inside(ids, ids)]
    out: dict[str, list[int]] = defaultdict(list)
    for slice_id in ids:
        out[re.sub(r"/\d+$", "", facts.trace.name(int(slice_id)))].append(int(slice_id))
    return dict(out)


def tried_by_compiler(facts: Facts, ops: I32) -> Bool:
    """bool[len(ops)]: which operators the compiler only tries while it traces: they compute nothing."""
    at_work = facts.matching(COMPILING, SliceKind.PYTHON, SliceKind.CPU_OP, SliceKind.RANGE)
    tracing = facts.ops(TRACING)
    if not len(at_work) and not len(tracing):
        return np.zeros(len(ops), dtype=bool)
    subtree = facts.trace.slices.subtree_end[ops]
    below = tracing.searchsorted(subtree) > tracing.searchsorted(ops)
    return below | facts.inside(ops, tracing) | facts.within_ranges(ops, at_work)


def with_compiled(facts: Facts, made: Suggestion, kernels: I32, fix: Fix) -> Suggestion:
    """A suggestion to compile; where the step runs compiled code already, it says so and how far.

    Where that launches a good part of the kernels, ``fix`` stands for the usual one.
    """
    code = facts.in_steps(facts.matching(CODE, SliceKind.CPU_OP))
    fused = facts.in_steps(facts.matching(FUSED, SliceKind.KERNEL))
    if not len(code) and not len(fused):
        return made
    launch = facts.trace.links.launch_of[kernels]
    inside = (launch >= 0) & facts.inside(launch, code)
    first = facts.trace.name(int(code[0] if len(code) else fused[0]))
    count = int((inside | among(kernels, fused)).sum())
    values = {**made.values, "compiled_name": first, "compiled_count": count}
    usual = count < GOOD_PART * len(kernels)
    return replace(made, values=values, more=(*made.more, ALREADY), fix=made.fix if usual else fix)
