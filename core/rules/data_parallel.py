"""``DataParallel`` instead of ``DistributedDataParallel``.

What it finds
-------------
Ranges of ``DataParallel.forward``, with work on more than one device.

Why it costs time
-----------------
One process drives all GPUs: the model is copied to each of them in every step, and Python's lock lets one thread run
at a time.

Blind spots
-----------
With one visible GPU it does nothing, and nothing is reported.

How to fix
----------
``DistributedDataParallel``, one process per GPU.

Sources
-------
torch-tb-profiler; PyTorch performance tuning guide, 'Distributed optimizations'.
"""

from __future__ import annotations

from core.kinds import SliceKind
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.suggestions import Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(
    id="data-parallel", title="DataParallel is used", severity_floor="high", needs=Needs.DEVICE | Needs.OPS, params=()
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts = facts_of(ctx)
    calls = facts.in_steps(facts.matching(r"^DataParallel\.forward", SliceKind.RANGE, SliceKind.CPU_OP))
    if not len(calls) or len(ctx.figures.devices) < 2:
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "DataParallel drives {devices} GPUs from one process",
            "In every step the model is copied to all GPUs and the results are collected again: "
            "{count} {count|call|calls}, {took_ms:time} "
            "of CPU time. One process per GPU needs neither.",
            Fix(
                "Use DistributedDataParallel.",
                "model = nn.DataParallel(model)",
                "# torchrun --nproc_per_node=2 train.py\n"
                "model = DistributedDataParallel(model.to(rank), device_ids=[rank])",
                "https://pytorch.org/tutorials/intermediate/ddp_tutorial.html",
                "Each process loads its own part of the data (DistributedSampler).",
            ),
            [evidence(facts, "Calls", len(calls), "", calls)],
            values={"devices": len(ctx.figures.devices), "count": len(calls), "took_ms": total_ns(facts, calls) / 1e6},
            anchors=calls,
        )
    ]
