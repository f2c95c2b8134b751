"""The tensor cores have nothing to do although the program could use them.

What it finds
-------------
Matrix products and convolutions that take a good part of the kernels' time on a GPU with tensor cores, and not one
kernel whose name says that it uses them.

Why it costs time
-----------------
With half precision the tensor cores compute these several times faster, and half as many bytes move.

Blind spots
-----------
Names of new kernels (nvjet, wgmma, CUTLASS 3) count as using them. GTX 16xx cards have none. Products for which TF32
would do have a rule of their own. A program bound by something else gains little: the replay says so.

How to fix
----------
Mixed precision: ``torch.autocast``.

Sources
-------
torch-tb-profiler's tensor core list; PyTorch performance tuning guide, 'Use mixed precision'.
"""

from __future__ import annotations

import numpy as np

from core.rule_tools.facts import facts_of
from core.rule_tools.kernel_names import (
    compute_major,
    is_double,
    is_gemm,
    is_nvidia,
    is_plain_fp32,
    kernels_by_name,
    uses_tensor_cores,
)
from core.rule_tools.report import evidence, suggestion, total_ns
from core.suggestions import Effect, EffectKind, Fix, Needs, NotChecked, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="tensor-cores-unused",
    title="Tensor cores are not used",
    needs=Needs.DEVICE,
    params=(
        Param("min_share", 0.2, "share of the kernels' time", "below it mixed precision hardly pays"),
        Param("amp_factor", 0.5, "of the time", "two to three times faster is common; the low end is assumed"),
    ),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report once for the program."""
    facts = facts_of(ctx)
    if not is_nvidia(facts):
        return []
    major = compute_major(facts)
    if major is None:
        raise NotChecked(
            "The trace does not name the GPU's compute capability, so whether it has tensor cores is unknown."
        )
    if major < 7 or any("GTX 16" in d.name for d in ctx.trace.meta.devices):
        return []
    kernels = kernels_by_name(facts)
    if any(uses_tensor_cores(name) for name, _, _ in kernels):
        return []
    picked = [
        ids
        for name, ids, _ in kernels
        if is_gemm(name) and not (major >= 8 and is_plain_fp32(name)) and not is_double(name)
    ]
    work = np.concatenate(picked) if picked else np.empty(0, dtype=np.int32)
    took = total_ns(facts, work)
    if not took or took < ctx.params["min_share"] * max(facts.kernel_ns, 1):
        return []
    factor = ctx.params["amp_factor"]
    return [
        suggestion(
            ctx,
            RULE.id,
            "The tensor cores are idle: {share_pct:.0f} % of the kernel time goes to products they could compute",
            "{count} {count|matrix product|matrix products} and convolutions took {took_ms:.2f} ms in single "
            "precision. In "
            "mixed precision the "
            "tensor cores do them. The saving assumes that {left_pct:.0f} % of the time is left.",
            Fix(
                "Use mixed precision.",
                "loss = criterion(model(x), y)",
                'with torch.autocast("cuda", dtype=torch.float16):     # bfloat16 from compute capability 8.0 on\n'
                "    loss = criterion(model(x), y)\nscaler.scale(loss).backward()",
                "https://pytorch.org/docs/stable/amp.html",
                "float16 needs a GradScaler; compare the training curves.",
            ),
            [
                evidence(facts, "Products and convolutions", len(work), "", work),
                evidence(facts, "Their time", took / 1e6, "ms", work),
            ],
            values={
                "share_pct": 100 * took / facts.kernel_ns,
                "count": len(work),
                "took_ms": took / 1e6,
                "left_pct": 100 * factor,
            },
            anchors=[int(op) for op in np.unique(facts.trace.links.op_of[work]) if op >= 0],
            occurrences=len(work),
            at=-1,
            effects=[Effect(EffectKind.SCALE_DEVICE, tuple(int(w) for w in work), factor)],
        )
    ]
