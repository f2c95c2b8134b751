"""A kernel keeps few warps on the GPU.

What it finds
-------------
Kernels, not of libraries and no matrix products, with an estimated occupancy below the threshold that take a
noticeable part of the time.

Why it costs time
-----------------
With few warps there is little to switch to while memory answers.

Blind spots
-----------
The figure is an estimate by the profiler, not a measurement. Matrix products on tensor cores run well at low
occupancy and are left out.

How to fix
----------
See what limits it (registers, shared memory, block size) in your own kernel.

Sources
-------
torch-tb-profiler's estimated occupancy; libkineto.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from core.rule_tools.facts import facts_of
from core.rule_tools.kernel_names import (
    is_gemm,
    is_library,
    kernels_by_name,
)
from core.rule_tools.report import evidence, suggestion
from core.suggestions import Fix, Needs, NotChecked, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="low-occupancy",
    title="Low occupancy",
    needs=Needs.DEVICE | Needs.KERNELS,
    params=(
        Param("max_pct", 30, "%", "below it latency is hardly hidden"),
        Param("min_share", 0.1, "share of the kernels' time", "of one such kernel"),
        Param("look_at", 16, "kernel names", "arguments are read from the file: the longest names are enough"),
    ),
)
_USES = (
    "Each of its blocks of {threads} threads takes {registers} registers per thread and {shared_bytes:size} of shared "
    "memory: what a multiprocessor runs at once is limited by one of these, or the grid holds too few blocks."
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each kernel once."""
    facts = facts_of(ctx)
    out = []
    looked = known = 0
    for name, ids, took in kernels_by_name(facts)[: int(ctx.params["look_at"])]:
        if took < ctx.params["min_share"] * facts.kernel_ns or is_gemm(name) or is_library(name):
            continue
        longest = int(ids[np.argmax(ctx.trace.slices.dur_ns[ids])])
        if float(ctx.trace.slices.dur_ns[longest]) < 20e3:
            continue
        value = facts.args(longest).get("est. achieved occupancy %")
        looked += 1
        if not isinstance(value, (int, float)):
            continue
        known += 1
        if value >= ctx.params["max_pct"] or value <= 0:
            continue
        uses = _uses(facts.args(longest))
        made = suggestion(
            ctx,
            RULE.id,
            "{occupancy:.0f} % occupancy during {share_pct:.0f} % of the kernel time",
            "A kernel that takes {share_pct:.0f} % of the time fills only {occupancy:.0f} % of the GPU's warps. "
            "`{kernel}` has an estimated occupancy of {occupancy:.0f} %: few warps are there to run "
            "while others wait "
            "for memory. This is an estimate; Nsight Compute measures it.",
            Fix(
                "Look at what limits it.",
                "",
                "ncu --set full --kernel-name regex:... python train.py",
                "https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html",
            ),
            [evidence(facts, "Launches of this kernel", len(ids), "", ids)],
            values={
                "kernel": name[:80],
                "share_pct": 100 * took / facts.kernel_ns,
                "occupancy": float(value),
                "op_path": name,
            },
            occurrences=len(ids),
            at=longest,
            informational=True,
        )
        out.append(replace(made, values={**made.values, **uses}, more=(_USES,)) if uses else made)
    if looked and not known:
        raise NotChecked("The kernels do not say how well they fill the GPU (est. achieved occupancy).")
    return out


def _uses(args: dict[str, Any]) -> dict[str, int]:
    """What each block of a kernel takes of a multiprocessor; empty where the recording does not say."""
    registers, shared, block = (args.get(key) for key in ("registers per thread", "shared memory", "block"))
    if not isinstance(registers, int) or not isinstance(shared, int) or not isinstance(block, list):
        return {}
    if not all(isinstance(size, int) for size in block):
        return {}
    return {"registers": registers, "shared_bytes": shared, "threads": math.prod(block)}
