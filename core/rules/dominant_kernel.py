"""One kernel takes much of the time.

What it finds
-------------
A kernel name with at least the given share of the kernels' time.

Why it costs time
-----------------
Whatever makes it faster makes the step faster, and nothing else does.

Blind spots
-----------
For matrix products that is normal, and their libraries are good: this is a pointer to where to look, not a fault.

How to fix
----------
Look at it with Nsight Compute.

Sources
-------
NVIDIA Nsight Systems, 'Analyze with Nsight Compute'.
"""

from __future__ import annotations

import re

from core.rule_tools.facts import facts_of
from core.rule_tools.kernel_names import (
    kernels_by_name,
)
from core.rule_tools.report import evidence, suggestion
from core.rule_tools.subjects import need
from core.sets import distinct
from core.suggestions import Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="dominant-kernel",
    title="One kernel dominates",
    needs=Needs.DEVICE | Needs.KERNELS,
    params=(
        Param("min_share", 0.3, "share of the kernels' time", "below it several kernels matter alike"),
        Param("min_names", 4, "kernel names", "a program of three kernels has a largest one by nature"),
    ),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report the largest kernel."""
    facts = facts_of(ctx)
    kernels = [k for k in kernels_by_name(facts) if "nccl" not in k[0].lower() and "rccl" not in k[0].lower()]
    need(len(kernels) >= ctx.params["min_names"], "there are too few different kernels to compare.")
    name, ids, took = kernels[0]
    if took < ctx.params["min_share"] * max(facts.kernel_ns, 1):
        return []
    plain = name.replace("(anonymous namespace)::", "").removeprefix("void ")
    short = re.split(r"[<(]", plain)[0].split("::")[-1]
    ops = [op for op in distinct(facts.trace.links.op_of[ids]).tolist() if op >= 0]
    return [
        suggestion(
            ctx,
            RULE.id,
            "{share_pct:.0f} % of the kernel time in one kernel: {short}",
            "{count} {count|launch|launches} of {kernel} took {took_ms:time}. Nsight Compute tells what limits it.",
            Fix(
                "Measure this kernel.",
                "",
                f"ncu --set full --kernel-name regex:{short} --launch-skip 20 --launch-count 3 python train.py",
                "https://docs.nvidia.com/nsight-compute/NsightComputeCli/index.html",
            ),
            [evidence(facts, "Launches", len(ids), "", ids), evidence(facts, "Their time", took / 1e6, "ms", ids)],
            values={
                "share_pct": 100 * took / facts.kernel_ns,
                "kernel": short[:60],
                "short": short if len(short) <= 24 else f"{short[:23]}…",
                "count": len(ids),
                "took_ms": took / 1e6,
                "op_path": name,
            },
            anchors=ops,
            occurrences=len(ids),
            informational=True,
        )
    ]
