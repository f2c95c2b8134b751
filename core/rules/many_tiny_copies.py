"""Many tiny copies take the place of one.

What it finds
-------------
At least the given number of copies to or from the device per step, of a few KiB each, whose calls together take
noticeable CPU time and that do not block one by one.

Why it costs time
-----------------
Each copy costs a call and a start-up on the GPU, whatever its size: latency, not bandwidth.

Blind spots
-----------
Updates of graph parameters and of communication libraries look alike. Copies that block are counted by the rules
about waiting.

How to fix
----------
Pack the pieces into one tensor in the collate function; ``torch._foreach_copy_``.

Sources
-------
MindStudio's packet advice; measured on recorded recommendation-model traces (150 pinned copies a step).
"""

from __future__ import annotations

import numpy as np

from core.figures.lookup import of_kinds
from core.kinds import CopyDirection, SliceKind
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.sync_classes import classify
from core.sets import distinct
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="many-tiny-copies",
    title="Many tiny copies",
    needs=Needs.DEVICE | Needs.STEPS | Needs.CALLS,
    params=(
        Param("max_bytes", 4096, "bytes", "below it a copy is all latency"),
        Param("min_per_step", 10, "copies", "fewer are not worth packing"),
        Param("min_share", 0.01, "share of the step", "CPU time in the calls; below it nothing is gained"),
    ),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report all tiny copies together."""
    facts, trace = facts_of(ctx), ctx.trace
    copies = facts.work[trace.slices.kind[facts.work] == int(SliceKind.MEMCPY)]
    size, way = trace.slices.copy_bytes[copies], trace.slices.direction[copies]
    tiny = (size >= 0) & (size < ctx.params["max_bytes"]) & of_kinds(way, (CopyDirection.HTOD, CopyDirection.DTOH))
    blocking = {c for items in classify(ctx, facts).values() for o in items for c in o.copies}
    copies = np.asarray([int(c) for c in copies[tiny] if int(c) not in blocking], dtype=np.int32)
    calls = distinct(trace.links.launch_of[copies]) if len(copies) else copies
    calls = calls[calls >= 0]
    if len(copies) < ctx.params["min_per_step"] * max(facts.n_steps, 1) or not len(calls):
        return []
    took = total_ns(facts, calls)
    if took < ctx.params["min_share"] * facts.window_ns:
        return []
    ops = [op for op in distinct(trace.links.op_of[calls]).tolist() if op >= 0]
    keep = max(facts.n_steps, 1)
    return [
        suggestion(
            ctx,
            RULE.id,
            "{per_step:.0f} tiny copies in every step could be one",
            "{count} {count|copy|copies} of {mean_bytes:.0f} bytes on average took {took_ms:time} of CPU time. "
            "A copy of this size "
            "is all start-up: one larger copy costs about as much as one of them.",
            Fix(
                "Pack the pieces into one tensor before the copy.",
                "batch = {k: v.to(device, non_blocking=True) for k, v in batch.items()}",
                "flat = torch.cat([v.flatten() for v in batch.values()])      # in the collate function\n"
                "flat = flat.to(device, non_blocking=True)\n"
                "parts = flat.split([v.numel() for v in batch.values()])",
                "https://pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
                "All pieces must have one dtype, or be packed as bytes.",
            ),
            [
                evidence(facts, "Tiny copies", len(copies), "", copies),
                evidence(facts, "CPU time in their calls", took / 1e6, "ms", calls),
            ],
            values={
                "count": len(copies),
                "per_step": len(copies) / keep,
                "mean_bytes": float(trace.slices.copy_bytes[copies].mean()),
                "took_ms": took / 1e6,
            },
            anchors=calls,
            effects=[Effect(EffectKind.REMOVE_WORK, tuple((ops or [int(c) for c in calls])[keep:]))],
            hint="batch",
        )
    ]
