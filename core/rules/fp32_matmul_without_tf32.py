"""Matrix products in single precision do not use TF32.

What it finds
-------------
Kernels of ``aten::mm``, ``addmm``, ``bmm`` and the like whose names say single precision on the ordinary units
(``sgemm``, ``simt``), on a GPU of compute capability 8.0 or later, that take a good part of the kernels' time.

Why it costs time
-----------------
From Ampere on, tensor cores compute such products several times faster with TF32, which keeps the range of float32
and ten bits of the fraction. PyTorch leaves it off for matrix products by default (for convolutions it is on).

Blind spots
-----------
Older GPUs have no TF32 and are never reported. Some programs need full single precision. Kernel names of new
libraries (nvjet) do not tell and are left alone. The saving assumes the stated factor.

How to fix
----------
``torch.set_float32_matmul_precision('high')``.

Sources
-------
PyTorch's former pattern matcher (FP32MatMul); PyTorch documentation on TF32.
"""

from __future__ import annotations

from core.rule_tools.facts import facts_of
from core.rule_tools.kernel_names import is_plain_fp32, owners
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.tensor_cores import launching_ops, product_values, products, require_capability
from core.sets import among
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="fp32-matmul-without-tf32",
    title="Matrix products without TF32",
    needs=Needs.DEVICE | Needs.KERNELS,
    params=(
        Param("min_share", 0.1, "share of the kernels' time", "below it the gain is small"),
        Param(
            "tf32_factor",
            0.4,
            "of the time",
            "peak rates differ eightfold on an A100; memory keeps real products from it",
        ),
    ),
)
_CONV = ("aten::cudnn_convolution", "aten::convolution_backward", "aten::_convolution", "aten::convolution")


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report all such products together."""
    facts = facts_of(ctx)
    require_capability(
        facts,
        8,
        "The trace does not name the GPU's compute capability, so whether it has TF32 is unknown.",
        "This GPU has no TF32.",
    )
    work = products(facts, is_plain_fp32)
    conv = [facts.trace.strings.id_of(n) for n in _CONV]
    work = work[~among(owners(facts, work), conv)]
    took = total_ns(facts, work)
    if took < ctx.params["min_share"] * max(facts.kernel_ns, 1) or not took:
        return []
    factor = ctx.params["tf32_factor"]
    return [
        suggestion(
            ctx,
            RULE.id,
            "Matrix products without TF32: {share_pct:.0f} % of the kernel time",
            "Matrix products run in full single precision without the tensor cores. "
            "{count} {count|product|products} took {took_ms:time} on the ordinary units. This GPU has tensor cores "
            "that do them in TF32 "
            "several times faster. The saving assumes that {left_pct:.0f} % of the time is left.",
            Fix(
                "Allow TF32 for matrix products.",
                "model = Net().cuda()",
                'torch.set_float32_matmul_precision("high")\nmodel = Net().cuda()',
                "https://pytorch.org/docs/stable/generated/torch.set_float32_matmul_precision.html",
                "Products keep about three decimal digits; programs that need more must stay as they are.",
            ),
            [
                evidence(facts, "Products in single precision", len(work), "", work),
                evidence(facts, "Their time", took / 1e6, "ms", work),
            ],
            values=product_values(facts, work, factor),
            anchors=launching_ops(facts, work),
            occurrences=len(work),
            at=-1,
            effects=[Effect(EffectKind.SCALE_DEVICE, tuple(work.tolist()), factor)],
        )
    ]
