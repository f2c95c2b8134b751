"""Batch norm over all ranks communicates in every layer.

What it finds
-------------
Python frames of ``SyncBatchNorm`` in at least two places per step, with an exchange between ranks inside them.

Why it costs time
-----------------
Each layer gathers its statistics from all ranks, forward and backward, and waits for them.

Blind spots
-----------
With very small batches per rank it is needed for accuracy. In evaluation, and with one process alone, it computes as
ordinary batch norm does and is not reported.

How to fix
----------
Ordinary batch norm, or group norm.

Sources
-------
MindStudio's advice on sync batch norm.
"""

from __future__ import annotations

from core.kinds import SliceKind
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import need
from core.suggestions import Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="sync-batch-norm",
    title="SyncBatchNorm communicates in every layer",
    needs=Needs.OPS | Needs.DEVICE,
    params=(Param("min_calls", 2, "calls", "one layer does not matter"),),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts, trace = facts_of(ctx), ctx.trace
    frames = facts.in_steps(
        facts.matching(r"nn\.Module: SyncBatchNorm|torch/nn/modules/_functions\.py\(\d+\): forward$", SliceKind.PYTHON)
    )
    frames = frames[~facts.inside(frames, frames)]
    if not len(facts.of_kind(SliceKind.PYTHON)):  # its autograd function is recorded as an operator
        frames = facts.in_steps(facts.ops("SyncBatchNorm"))
        need(frames, "the trace holds no operator SyncBatchNorm, and no Python stacks that would show the layer.")
    if len(frames) < ctx.params["min_calls"] or not any("SyncBatchNorm" in trace.name(int(f)) for f in frames):
        return []
    talks = facts.matching(r"all_?(gather|reduce)", SliceKind.CPU_OP, SliceKind.RANGE)
    if not facts.within_ranges(talks, frames).any():
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "SyncBatchNorm communicates {count} {count|time|times}",
            "Every such layer gathers its statistics from all ranks and waits for them: "
            "{took_ms:time} of CPU time in "
            "{count} {count|call|calls}.",
            Fix(
                "Use a norm that needs no other rank, where accuracy allows it.",
                "model = nn.SyncBatchNorm.convert_sync_batchnorm(model)",
                "nn.GroupNorm(32, channels)      # or plain BatchNorm with larger batches",
                "https://pytorch.org/docs/stable/generated/torch.nn.SyncBatchNorm.html",
                "With few samples per rank, plain batch norm trains worse.",
            ),
            [evidence(facts, "Calls", len(frames), "", frames)],
            values={"count": len(frames), "took_ms": total_ns(facts, frames) / 1e6},
            anchors=frames,
        )
    ]
