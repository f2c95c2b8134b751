"""A matrix product in half precision has sizes that are no multiple of eight.

What it finds
-------------
``aten::mm``, ``bmm`` or ``addmm`` on half or bfloat16 tensors with a dimension that is not divisible by eight, among
the products that take longest.

Why it costs time
-----------------
Tensor cores work on tiles; odd sizes leave part of each tile unused or need slower kernels.

Blind spots
-----------
New cuBLAS pads by itself, so the benefit on recent GPUs is small; vocabulary sizes matter most. How much is gained is
not in the trace.

How to fix
----------
Pad the size to a multiple of 8 (64 on A100 and later).

Sources
-------
PyTorch's former pattern matcher (MatMulDimInFP16); NVIDIA's matrix multiplication guide.
"""

from __future__ import annotations

import numpy as np

from core.rule_tools.attention import find_attention
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import PRODUCTS, need
from core.sets import among
from core.suggestions import Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="matmul-dims-misaligned",
    title="Matrix sizes that tensor cores do not like",
    needs=Needs.DEVICE | Needs.SHAPES | Needs.OPS,
    params=(
        Param("multiple", 8, "elements", "tile size of tensor cores for half precision"),
        Param("min_share", 0.05, "share of the kernels' time", "of the products concerned"),
        Param("look_at", 20, "operators", "arguments are read from the file: only the longest products are looked at"),
    ),
)
_PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report all products of odd size together."""
    facts = facts_of(ctx)
    every = facts.in_steps(facts.ops(*_PRODUCTS))
    need(every, PRODUCTS)
    # sizes of attention follow from the sequence, which is not padded but left to the fused form: a rule of its own
    attention = np.asarray(sorted(op for ops in find_attention(facts) for op in ops), dtype=np.int32)
    every = every[~(facts.inside(every, attention) | among(every, attention))]
    ops = facts.in_first_step(every)
    cost = facts.device_ns(ops)
    odd: list[int] = []
    sizes: set[str] = set()
    longest = ops[(-cost).argsort(kind="stable")[: int(ctx.params["look_at"])]].tolist()
    facts.read_args(longest)
    half = [op for op in longest if any("Half" in t or "BFloat16" in t for t in facts.types(op))]
    need(half, "none of the longest matrix products is in half precision.")
    for op in half:
        dims = [d for d in facts.dims(op) if len(d) >= 2]
        wrong = [d for d in dims if d[-1] % int(ctx.params["multiple"])]  # the contiguous size is what counts
        if wrong:
            odd.append(op)
            sizes.update("x".join(str(n) for n in d) for d in wrong)
    took = sum(total_ns(facts, facts.device_below(op)) for op in odd)
    whole = facts.kernel_ns / (max(facts.n_steps, 1) if len(ops) < len(every) else 1)
    if not odd or took < ctx.params["min_share"] * max(whole, 1):
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "Matrix sizes are no multiple of {multiple:.0f}, such as {size}",
            "Half-precision products have sizes that are no multiple of {multiple:.0f}: {sizes}. "
            "Tensor cores work on tiles. Of the longest products of one step, {count} {count|has|have} odd sizes and "
            "{count|takes|take} {longest_ms:time}; padded to a multiple of {multiple:.0f} they may run "
            "faster. How much depends on the library: try it.",
            Fix(
                "Pad the sizes.",
                "nn.Embedding(50257, 768)",
                "nn.Embedding(50304, 768)       # 50257 padded to a multiple of 64",
                "https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html",
                "Padded classes must be masked in the loss.",
            ),
            [evidence(facts, "Products of odd size", len(odd), "", odd)],
            values={
                "multiple": ctx.params["multiple"],
                "size": min(sizes, key=len),
                "sizes": ", ".join(sorted(sizes)[:3]),
                "count": len(odd),
                "longest_ms": took / 1e6,
            },
            anchors=odd,
        )
    ]
