"""Activation checkpointing costs time although memory is plentiful.

What it finds
-------------
The forward pass computed again in the backward pass: operators below ``CheckpointFunctionBackward``, or (the form that
is not reentrant) layers of a forward pass such as ``aten::linear`` at the start of another node, while the peak of
memory stays below the given part of the device's.

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

import re

from core.kinds import SliceKind
from core.rule_tools.facts import Facts, facts_of
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
    again, recomputed = _computed_again(facts)
    peak = ctx.figures.summary.peak_memory_bytes
    need(again, "nothing in the trace is computed again by activation checkpointing.")
    if not sizes or not peak:
        raise NotChecked("The trace does not say how much memory the GPU has, or how much of it was used.")
    if peak >= ctx.params["max_share"] * sizes[0]:
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
                "out = block(x)      # or only every second block",
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


_LAYERS = (
    r"^aten::(linear|conv\dd|layer_norm|batch_norm|group_norm|rms_norm|embedding|scaled_dot_product_attention|dropout)$"
)


def _computed_again(facts: Facts) -> tuple[list[int], list[int]]:
    """Nodes of the backward pass that compute a part of the forward pass again, and the operators that do it."""
    sl = facts.trace.slices
    nodes = facts.in_steps(facts.matching(r"^CheckpointFunctionBackward$", SliceKind.CPU_OP))
    again = [int(n) for n in nodes]
    recomputed = [int(c) for n in again for c in facts.children(n) if facts.trace.name(int(c)).startswith("aten::")]
    engine = facts.matching(r"^autograd::engine::evaluate_function", SliceKind.CPU_OP)
    layers = facts.in_steps(facts.matching(_LAYERS, SliceKind.CPU_OP))
    layers = layers[facts.inside(layers, engine) & ~facts.inside(layers, layers) & ~facts.inside(layers, nodes)]
    last: dict[int, int] = {}  # the last layer of each part; the node's own work comes after it
    for layer in layers.tolist():
        last[int(sl.parent_id[layer])] = layer
    for parent, layer in last.items():
        if not re.search(r"Backward\d+$", facts.trace.name(parent)):
            continue  # a function of the user's own may well call a layer in its backward pass
        again.append(parent)
        recomputed += [int(c) for c in facts.children(parent) if c <= layer]
    return again, recomputed
