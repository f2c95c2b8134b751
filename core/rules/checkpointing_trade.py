"""Activation checkpointing costs time although memory is plentiful.

What it finds
-------------
``CheckpointFunctionBackward`` (the forward pass computed again) while the peak of memory stays below the given part
of the device's.

Why it costs time
-----------------
Each checkpointed block is computed twice.

Blind spots
-----------
A later phase (longer inputs, evaluation) may need the memory.

How to fix
----------
Switch it off, or checkpoint only the largest blocks.

Sources
-------
PyTorch performance tuning guide, 'Checkpoint intermediate buffers'.
"""

from __future__ import annotations

from core.kinds import SliceKind
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import need
from core.suggestions import Effect, EffectKind, Fix, Needs, NotChecked, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="checkpointing-trade",
    title="Checkpointing may be needless",
    needs=Needs.MEMORY,
    params=(
        Param("max_share", 0.6, "of the device's memory", "then activations without checkpoints are likely to fit"),
    ),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts, trace = facts_of(ctx), ctx.trace
    sizes = [d.total_memory_bytes for d in trace.meta.devices if d.total_memory_bytes]
    again = facts.in_steps(facts.matching(r"^CheckpointFunctionBackward$", SliceKind.CPU_OP))
    peak = ctx.figures.summary.peak_memory_bytes
    need(again, "nothing in the trace is computed again by activation checkpointing.")
    if not sizes or not peak:
        raise NotChecked("The trace does not say how much memory the GPU has, or how much of it was used.")
    if peak >= ctx.params["max_share"] * sizes[0]:
        return []
    recomputed = []
    for node in again:
        for child in facts.children(int(node)):
            if trace.name(int(child)).startswith("aten::"):
                recomputed.append(int(child))
    if not recomputed:
        return []
    took = total_ns(facts, recomputed)
    return [
        suggestion(
            ctx,
            RULE.id,
            "The forward pass runs twice although memory is not short",
            "The forward pass is computed twice to save memory that is not short: {peak_bytes:size} of "
            "{size_bytes:size} used. "
            "Checkpointing ran {count} {count|block|blocks} again in the backward pass ({took_ms:time} of CPU "
            "time, and the GPU's work again). "
            "At its peak the memory was {share_pct:.0f} % full.",
            Fix(
                "Checkpoint less.",
                "out = checkpoint(block, x, use_reentrant=False)",
                "out = block(x)",
                "https://pytorch.org/docs/stable/checkpoint.html",
                "Memory use grows: try with the largest input.",
            ),
            [
                evidence(facts, "Blocks computed again", len(again), "", again),
                evidence(facts, "Operators computed again", len(recomputed), "", recomputed),
            ],
            values={
                "peak_bytes": float(peak),
                "size_bytes": float(sizes[0]),
                "share_pct": 100 * peak / sizes[0],
                "count": len(again),
                "took_ms": took / 1e6,
            },
            anchors=again,
            effects=[Effect(EffectKind.REMOVE_WORK, tuple(recomputed))],
            hint="call:checkpoint",
        )
    ]
