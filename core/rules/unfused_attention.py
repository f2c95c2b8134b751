"""Attention is written out instead of using the fused one.

What it finds
-------------
Two matrix products with a softmax between them (``bmm``, scaling, mask, ``softmax``, dropout, ``bmm``) and no
``aten::scaled_dot_product_attention`` there.

Why it costs time
-----------------
The scores of every pair of tokens are written to memory and read again several times; the fused form keeps them on
the chip.

Blind spots
-----------
An attention bias or returned weights may need the explicit form, and short sequences gain little. How much faster the
fused form is depends on GPU and shapes: the saving assumes the stated factor.

How to fix
----------
``F.scaled_dot_product_attention``.

Sources
-------
PyTorch performance tuning guide; FlashAttention; measured on recorded vision-transformer traces.
"""

from __future__ import annotations

from core.rule_tools.attention import find_attention
from core.rule_tools.backward import nodes_of_runs
from core.rule_tools.facts import facts_of
from core.rule_tools.report import counted_kernels, evidence, group_by_frame, suggestion, total_ns
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="unfused-attention",
    title="Attention is not fused",
    needs=Needs.OPS,
    params=(
        Param("min_share", 0.05, "share of the kernels' time", "below it there is nothing to gain"),
        Param(
            "fused_factor",
            0.5,
            "of the time",
            "FlashAttention reports two to four times faster; the low end is assumed",
        ),
    ),
)
_ON_GPU = (
    "{count} {count|time|times} the scores of all pairs of tokens are computed, written to memory, read again for the "
    "softmax, and "
    "read again for the second product: {took_ms:time} of kernels. The fused form never writes them. The saving "
    "assumes that it takes {factor_pct:.0f} % of that time, and of the CPU's part."
)
_ON_CPU = (
    "{count} {count|time|times} the scores of all pairs of tokens are computed, written to memory, read again for the "
    "softmax, and "
    "read again for the second product: {took_ms:time}. The fused form works through them in pieces that fit into "
    "the caches. The saving assumes that it takes {factor_pct:.0f} % of that time."
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    facts = facts_of(ctx)
    facts.require_compute()
    whole = facts.window_ns if facts.on_cpu else facts.kernel_ns
    found = {ops[0]: ops for ops in find_attention(facts)}
    out = []
    for starts in group_by_frame(ctx, facts, found).values():
        ops = [op for s in starts for op in found[s]]
        nodes = nodes_of_runs(facts, (found[s] for s in starts))  # the fused form has a fused backward, too
        work = counted_kernels(facts, facts.device_below_all([*ops, *nodes]))
        took = total_ns(facts, [*ops, *nodes] if facts.on_cpu else work) if facts.on_cpu or len(work) else 0
        if took < ctx.params["min_share"] * max(whole, 1):
            continue
        factor = ctx.params["fused_factor"]
        out.append(
            suggestion(
                ctx,
                RULE.id,
                "Attention in {per_time:.0f} separate operators: {share_pct:.0f} % of kernel time"
                if len(work)
                else "Attention in {per_time:.0f} separate operators: {share_pct:.0f} % of the time",
                _ON_GPU if len(work) else _ON_CPU,
                Fix(
                    "Use the fused attention.",
                    "scores = q @ k.transpose(-2, -1) / math.sqrt(d)\nout = scores.softmax(-1) @ v",
                    "out = F.scaled_dot_product_attention(q, k, v)",
                    "https://pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html",
                    "Attention weights are not returned; check masks and dropout.",
                ),
                [
                    evidence(facts, "Attention computed", len(starts), "", starts),
                    *([evidence(facts, "Kernels", len(work), "", work)] if len(work) else []),
                    evidence(facts, "Their time", took / 1e6, "ms", work if len(work) else ops),
                    *([evidence(facts, "Their part of the backward pass", len(nodes), "", nodes)] if nodes else []),
                ],
                values={
                    "count": len(starts),
                    "per_time": len(ops) / len(starts),
                    "share_pct": 100 * took / max(whole, 1),
                    "took_ms": took / 1e6,
                    "factor_pct": 100 * factor,
                },
                anchors=starts,
                effects=[
                    *([Effect(EffectKind.SCALE_DEVICE, tuple(work.tolist()), factor)] if len(work) else []),
                    Effect(EffectKind.SCALE_HOST, (*ops, *nodes), factor),
                ],
                hint="call:softmax,matmul,bmm,einsum",
            )
        )
    return out
