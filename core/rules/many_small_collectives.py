"""Many small collectives instead of a few large ones.

What it finds
-------------
At least the given number of collectives per step whose typical duration is that of an empty message.

Why it costs time
-----------------
Each costs a launch and a round through the network whatever its size.

Blind spots
-----------
Barriers and metrics are small by nature, but few.

How to fix
----------
Larger buckets; one collective for several tensors.

Sources
-------
MindStudio's packet advice.
"""

from __future__ import annotations

import numpy as np

from core.rule_tools.communication import collectives, message_bytes
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import COLLECTIVES, need
from core.suggestions import Fix, Needs, NotChecked, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="many-small-collectives",
    title="Many small collectives",
    needs=Needs.DEVICE | Needs.STEPS,
    params=(
        Param("min_per_step", 20, "collectives", "fewer cost little"),
        Param("max_bytes", 1e6, "bytes", "below it, latency rules"),
    ),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts = facts_of(ctx)
    comm = collectives(facts)
    need(comm, COLLECTIVES)
    if len(comm) < ctx.params["min_per_step"] * max(facts.n_steps, 1):
        return []
    near = facts.in_first_step(comm)
    sizes = [message_bytes(facts, int(c)) for c in near[:: max(len(near) // 10, 1)][:10]]
    known = [s for s in sizes if s is not None]
    if not known:
        raise NotChecked("The collectives do not say how large their messages are. Record with a newer torch.")
    typical = float(np.median(known))
    if typical >= ctx.params["max_bytes"]:
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "{per_step:.0f} small collectives per step, typically of {typical_bytes:size}",
            "{count} {count|collective|collectives} took {took_ms:time}. Of messages this small nearly all is "
            "start-up: fewer and larger ones cost "
            "less.",
            Fix(
                "Send several tensors at once.",
                "for p in model.parameters():\n    dist.all_reduce(p.grad)",
                "model = DistributedDataParallel(model, bucket_cap_mb=25)      # or "
                "torch._utils._flatten_dense_tensors",
                "https://pytorch.org/docs/stable/notes/ddp.html",
                "",
            ),
            [evidence(facts, "Collectives", len(comm), "", comm)],
            values={
                "per_step": len(comm) / max(facts.n_steps, 1),
                "typical_bytes": typical,
                "count": len(comm),
                "took_ms": total_ns(facts, comm) / 1e6,
            },
            anchors=comm,
            at=-1,
        )
    ]
