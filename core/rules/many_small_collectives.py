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
Larger buckets or units of FSDP; one collective for several tensors. Code is only offered for gradients.

Sources
-------
MindStudio's packet advice.
"""

from __future__ import annotations

import numpy as np

from core import sets
from core.rule_tools.collective_kinds import DDP, FSDP, barriers, kinds_of, marked, with_gradients
from core.rule_tools.communication import collectives, message_bytes
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import COLLECTIVES, need
from core.suggestions import Fix, Needs, NotChecked, Param, Rule, RuleContext, Suggestion
from core.tables import I32

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
    comm = comm[~barriers(facts, comm)]
    if len(comm) < ctx.params["min_per_step"] * max(facts.n_steps, 1):
        return []
    near = facts.in_first_step(comm)
    sizes = [message_bytes(facts, int(c)) for c in near[:: max(len(near) // 10, 1)][:10]]
    known = [s for s in sizes if s is not None]
    if not known:
        raise NotChecked("The collectives do not say how large their messages are. Record with a newer torch.")
    typical = sets.median(np.asarray(known))
    if typical >= ctx.params["max_bytes"]:
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "{per_step:.0f} small collectives per step, typically of {typical_bytes:size}",
            "They take {step_took_ms:time} of each step ({count} {count|collective|collectives} in {steps} "
            "{steps|step|steps}). Of messages this small nearly all is "
            "start-up: fewer and larger ones cost "
            "less.",
            _fix(facts, comm),
            [evidence(facts, "Collectives", len(comm), "", comm)],
            values={
                "per_step": len(comm) / max(facts.n_steps, 1),
                "typical_bytes": typical,
                "count": len(comm),
                "steps": max(facts.n_steps, 1),
                "step_took_ms": facts.per_step(total_ns(facts, comm)) / 1e6,
            },
            anchors=comm,
            at=-1,
        )
    ]


def _fix(facts: Facts, comm: I32) -> Fix:
    if marked(facts, FSDP):
        return Fix(
            "Make the units of FSDP larger: a block of layers each instead of one layer.",
            url="https://pytorch.org/docs/stable/fsdp.html",
            risk="Larger units gather more weights at a time, which takes memory.",
        )
    if 2 * with_gradients(facts, comm, kinds_of(facts, comm)).sum() < len(comm):
        return Fix(
            "Join what several of them send into one tensor, or let several layers share one exchange; for messages "
            "this small, an implementation made for low latency helps as well.",
            url="https://pytorch.org/docs/stable/distributed.html",
            risk="Joined tensors have to be copied together and apart.",
        )
    if marked(facts, DDP):
        return Fix(
            "Send several tensors at once: leave the buckets as large as they are by default.",
            "model = DistributedDataParallel(model, bucket_cap_mb=1)",
            "model = DistributedDataParallel(model, bucket_cap_mb=25)",
            "https://pytorch.org/docs/stable/notes/ddp.html",
        )
    return Fix(
        "Send several tensors at once.",
        "for p in model.parameters():\n    dist.all_reduce(p.grad)",
        "model = DistributedDataParallel(model, bucket_cap_mb=25)      # or torch._utils._flatten_dense_tensors",
        "https://pytorch.org/docs/stable/notes/ddp.html",
    )
