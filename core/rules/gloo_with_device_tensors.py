"""Tensors of the GPU are sent with gloo.

What it finds
-------------
Ranges ``gloo:`` in a program with GPU work, and copies to and from the host around them.

Why it costs time
-----------------
Gloo works on the CPU: each tensor is copied to the host, sent, and copied back.

Blind spots
-----------
Programs on the CPU alone use it rightly. Gloo beside NCCL for small messages on the CPU is common: only ranges with a
copy from the device in or right before them count.

How to fix
----------
``backend='nccl'``.

Sources
-------
torch-tb-profiler; PyTorch distributed documentation.
"""

from __future__ import annotations

import numpy as np

from core.kinds import CopyDirection, SliceKind
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import need
from core.suggestions import Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="gloo-with-device-tensors",
    title="gloo moves GPU tensors",
    severity_floor="medium",
    needs=Needs.DEVICE,
    params=(Param("few_bytes", 64, "bytes", "a number that is read back for a log is not what is sent"),),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts, trace = facts_of(ctx), ctx.trace
    need(facts.matching(r"^gloo:", SliceKind.RANGE, SliceKind.CPU_OP), "the trace holds no communication by gloo.")
    sends = facts.in_steps(facts.matching(r"^gloo:", SliceKind.RANGE, SliceKind.CPU_OP))
    copies = trace.device_ids[trace.slices.direction[trace.device_ids] == int(CopyDirection.DTOH)]
    size = trace.slices.copy_bytes[copies]
    copies = copies[(size < 0) | (size > ctx.params["few_bytes"])]
    if not len(sends) or not len(copies):
        return []
    call = trace.links.launch_of[copies]
    times = np.sort(trace.slices.start_ns[call[call >= 0]])
    start, end = trace.slices.start_ns[sends], trace.end_ns[sends]
    near = times.searchsorted(end) > times.searchsorted(start - 200_000)
    hits = sends[near]
    if not len(hits):
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "GPU tensors are sent with gloo, through the CPU",
            "{count} {count|collective|collectives} ({took_ms:time}) ran with gloo, and their tensors were copied "
            "from the GPU first.",
            Fix(
                "Use NCCL for GPU tensors.",
                'dist.init_process_group("gloo")',
                'dist.init_process_group("cpu:gloo,cuda:nccl")',
                "https://pytorch.org/docs/stable/distributed.html",
                "NCCL needs one GPU per process.",
            ),
            [evidence(facts, "Collectives", len(hits), "", hits)],
            values={"count": len(hits), "took_ms": total_ns(facts, hits) / 1e6},
            anchors=hits,
        )
    ]
