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

from core.rule_tools.facts import facts_of
from core.rule_tools.kernel_names import is_double, is_plain_fp32, kernels_by_name, uses_tensor_cores
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.tensor_cores import launching_ops, product_values, products, require_capability
from core.suggestions import Effect, EffectKind, Fix, Needs, NotChecked, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="tensor-cores-unused",
    title="Tensor cores are not used",
    needs=Needs.DEVICE | Needs.KERNELS,
    params=(
        Param("min_share", 0.2, "share of the kernels' time", "below it mixed precision hardly pays"),
        Param("amp_factor", 0.5, "of the time", "two to three times faster is common; the low end is assumed"),
    ),
)
_NONE = "This GPU has no tensor cores."


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report once for the program."""
    facts = facts_of(ctx)
    if any("GTX 16" in d.name for d in ctx.trace.meta.devices):
        raise NotChecked(_NONE)
    major = require_capability(
        facts,
        7,
        "The trace does not name the GPU's compute capability, so whether it has tensor cores is unknown.",
        _NONE,
    )
    if any(uses_tensor_cores(name) for name, _, _ in kernels_by_name(facts)):
        return []
    work = products(facts, lambda name: not (major >= 8 and is_plain_fp32(name)) and not is_double(name))
    took = total_ns(facts, work)
    if not took or took < ctx.params["min_share"] * max(facts.kernel_ns, 1):
        return []
    factor = ctx.params["amp_factor"]
    return [
        suggestion(
            ctx,
            RULE.id,
            "Products without tensor cores: {share_pct:.0f} % of the kernel time",
            "{count} {count|matrix product or convolution|matrix products and convolutions} took {took_ms:time} in "
            "single "
            "precision, while the tensor cores were idle. In "
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
            values=product_values(facts, work, factor),
            anchors=launching_ops(facts, work),
            occurrences=len(work),
            at=-1,
            effects=[Effect(EffectKind.SCALE_DEVICE, tuple(work.tolist()), factor)],
        )
    ]
