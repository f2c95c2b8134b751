"""Convolutions convert between memory layouts again and again.

What it finds
-------------
Kernels ``nchwToNhwc`` and ``nhwcToNchw`` that take a noticeable part of the kernels' time.

Why it costs time
-----------------
cuDNN's tensor core kernels want the channels last; with the default layout every convolution converts its input and
output.

Blind spots
-----------
Without tensor cores there is nothing to gain. One operator that does not support channels last brings conversions
back.

How to fix
----------
``channels_last`` for model and input.

Sources
-------
PyTorch performance tuning guide, 'Channels last'; measured on recorded traces (633 conversion kernels).
"""

from __future__ import annotations

import numpy as np

from core.rule_tools.facts import facts_of
from core.rule_tools.kernel_names import is_gemm, kernels_by_name, uses_tensor_cores
from core.rule_tools.report import evidence, suggestion, total_ns
from core.sets import distinct
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="layout-conversions",
    title="Memory layouts are converted",
    needs=Needs.DEVICE | Needs.KERNELS,
    params=(Param("min_share", 0.03, "share of the kernels' time", "fewer are not worth the change"),),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report all conversions together."""
    facts = facts_of(ctx)
    picked = [
        ids
        for name, ids, _ in kernels_by_name(facts)
        if "nchwToNhwc" in name or "nhwcToNchw" in name or "nchwToFolded" in name or "nhwcAddPadding" in name
    ]
    work = np.concatenate(picked) if picked else np.empty(0, dtype=np.int32)
    took = total_ns(facts, work)
    if not took or took < ctx.params["min_share"] * max(facts.kernel_ns, 1):
        return []
    if not any(is_gemm(name) and uses_tensor_cores(name) for name, _, _ in kernels_by_name(facts)):
        return []  # without them cuDNN computes in either layout, and channels first is mostly the faster one
    return [
        suggestion(
            ctx,
            RULE.id,
            "Convolutions convert layouts: {share_pct:.0f} % of the kernel time",
            "{count} {count|kernel|kernels} only rearrange data between 'channels first' and 'channels last', "
            "{took_ms:time}. With "
            "the model in channels_last from the start none of them is needed.",
            Fix(
                "Keep model and input in channels_last.",
                "model = Net().cuda()\nout = model(x)",
                "model = Net().cuda().to(memory_format=torch.channels_last)\n"
                "out = model(x.to(memory_format=torch.channels_last))",
                "https://pytorch.org/tutorials/intermediate/memory_format_tutorial.html",
                "Operators without channels_last support convert back; look at the trace again afterwards.",
            ),
            [
                evidence(facts, "Conversion kernels", len(work), "", work),
                evidence(facts, "Their time", took / 1e6, "ms", work),
            ],
            values={"share_pct": 100 * took / facts.kernel_ns, "count": len(work), "took_ms": took / 1e6},
            anchors=[op for op in distinct(facts.trace.links.op_of[work]).tolist() if op >= 0],
            occurrences=len(work),
            at=-1,
            effects=[Effect(EffectKind.SCALE_DEVICE, tuple(int(w) for w in work), 0.0)],
        )
    ]
