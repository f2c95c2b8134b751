"""A kernel has fewer blocks than the GPU has multiprocessors.

What it finds
-------------
Kernels, not of libraries, whose grid is smaller than the number of multiprocessors and that take a noticeable part of
the time; or whose block is no multiple of 32 threads.

Why it costs time
-----------------
Multiprocessors without a block do nothing while the kernel runs.

Blind spots
-----------
Other streams can fill the rest. Library kernels cannot be changed, so they are left out; tiny kernels cost nothing in
sum.

How to fix
----------
A bigger batch, fused operators, or another launch configuration of your own kernel.

Sources
-------
NVIDIA Nsight Compute, 'Launch Configuration'; torch-tb-profiler's estimated SM efficiency.
"""

from __future__ import annotations

import numpy as np

from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.kernel_names import (
    is_library,
    kernels_by_name,
)
from core.rule_tools.report import evidence, suggestion
from core.suggestions import Fix, Needs, NotChecked, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="grid-too-small",
    title="Too few blocks for the GPU",
    needs=Needs.DEVICE | Needs.KERNELS,
    params=(
        Param("min_share", 0.1, "share of the kernels' time", "of one such kernel"),
        Param("min_mean_us", 20, "us", "shorter kernels are limited by launching"),
        Param("look_at", 16, "kernel names", "arguments are read from the file: the longest names are enough"),
    ),
)
_FEW = (
    "`{kernel}` takes {share_pct:.0f} % of the kernel time with {blocks} {blocks|block|blocks} of {threads} "
    "threads. Each block runs on one of the GPU's {units} multiprocessors; the others have nothing to do meanwhile."
)
_ODD = (
    "`{kernel}` takes {share_pct:.0f} % of the kernel time with blocks of {threads} threads. Threads run in warps of "
    "32: the last warp of each block is only partly used."
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each kernel once."""
    facts = facts_of(ctx)
    units = [d.sm_count for d in ctx.trace.meta.devices if d.sm_count]
    if not units:
        raise NotChecked("The trace does not say how many multiprocessors the GPU has.")
    out = []
    looked = known = 0
    for name, ids, took in kernels_by_name(facts)[: int(ctx.params["look_at"])]:
        if took < ctx.params["min_share"] * facts.kernel_ns or took / len(ids) < ctx.params["min_mean_us"] * 1e3:
            continue
        if is_library(name):
            continue
        near = facts.in_first_step(ids)
        looked += 1
        length = ctx.trace.slices.dur_ns[near]
        long = near[length >= 0.9 * length.max()]  # any of the longest ones: the one that is read first
        blocks, threads = _launch(facts, int(long[np.argmin(ctx.trace.slices.event_start[long])]))
        if blocks is None or threads is None:
            continue
        known += 1
        if blocks >= units[0] and threads % 32 == 0:
            continue
        out.append(
            suggestion(
                ctx,
                RULE.id,
                "{blocks} {blocks|block leaves|blocks leave} most of {units} multiprocessors idle"
                if blocks < units[0]
                else "Blocks of {threads} threads waste a part of a warp",
                _FEW if blocks < units[0] else _ODD,
                Fix(
                    "Give it more work at once.",
                    "",
                    "# a larger batch, one call for several small tensors, or torch.compile",
                    "https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html",
                ),
                [evidence(facts, "Launches of this kernel", len(ids), "", ids)],
                values={
                    "kernel": name[:80],
                    "blocks": blocks,
                    "threads": threads,
                    "units": units[0],
                    "share_pct": 100 * took / facts.kernel_ns,
                    "op_path": name,
                },
                anchors=[],
                occurrences=len(ids),
                at=int(ids[0]),
                informational=True,
            )
        )
    if looked and not known:
        raise NotChecked("The kernels do not say with how many blocks they were launched.")
    return out


def _launch(facts: Facts, kernel: int) -> tuple[int | None, int | None]:
    """Blocks and threads per block of a kernel, None where the trace does not say."""
    args = facts.args(kernel)
    out: list[int | None] = []
    for key in ("grid", "block"):
        value = args.get(key)
        if isinstance(value, list) and value and all(isinstance(v, int) for v in value):
            out.append(int(np.prod(np.asarray(value))))
        else:
            out.append(None)
    return out[0], out[1]
