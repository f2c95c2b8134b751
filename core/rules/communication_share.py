"""Communication takes a good part of the step.

What it finds
-------------
Time in which only collectives run on the device, per step, of at least the given part of the step.

Why it costs time
-----------------
The GPU computes nothing meanwhile.

Blind spots
-----------
Waiting for a slower rank counts as communication of the faster ones: with several ranks open, look at stragglers
first.

How to fix
----------
Larger buckets, gradient accumulation, compression; communication that overlaps the backward pass.

Sources
-------
torch-tb-profiler (10 % of the step); HolisticTraceAnalysis.
"""

from __future__ import annotations

from core.rule_tools.communication import collectives, exposed_ns
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import COLLECTIVES, need
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="communication-share",
    title="Communication is exposed",
    needs=Needs.DEVICE | Needs.STEPS,
    params=(
        Param("min_share", 0.1, "share of the step", "the threshold of torch-tb-profiler"),
        Param("left", 0.5, "of the exposed time", "how much can be hidden is unknown; half is assumed"),
    ),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts = facts_of(ctx)
    comm = collectives(facts)
    need(comm, COLLECTIVES)
    alone = exposed_ns(facts, comm)
    exposed = int(alone.sum())
    whole = facts.sustained_ns * max(facts.n_steps, 1)
    if exposed < ctx.params["min_share"] * whole:
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "In {share_pct:.0f} % of the step the GPU only communicates",
            "{count} {count|collective|collectives} ran {total_ms:time}, {exposed_ms:time} of it with no "
            "computation beside them. Part of that "
            "may be waiting for a slower rank. The saving assumes that half of it can be hidden.",
            Fix(
                "Communicate less, or while computing.",
                "model = DistributedDataParallel(model)",
                "model = DistributedDataParallel(\n"
                "    model, bucket_cap_mb=100, gradient_as_bucket_view=True, static_graph=True\n"
                ")\n"
                "model.register_comm_hook(None, default_hooks.bf16_compress_hook)",
                "https://pytorch.org/docs/stable/ddp_comm_hooks.html",
                "Compressed gradients have fewer digits.",
            ),
            [
                evidence(facts, "Collectives", len(comm), "", comm),
                evidence(facts, "Time with no computation beside them", exposed / 1e6, "ms", comm[alone > 0]),
            ],
            values={
                "share_pct": 100 * exposed / whole,
                "count": len(comm),
                "total_ms": total_ns(facts, comm) / 1e6,
                "exposed_ms": exposed / 1e6,
            },
            anchors=comm,
            at=-1,
            effects=[Effect(EffectKind.SCALE_DEVICE, tuple(int(c) for c in comm[alone > 0]), ctx.params["left"])],
        )
    ]
