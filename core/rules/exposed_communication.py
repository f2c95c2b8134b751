"""Gradients are only sent when the backward pass is over.

What it finds
-------------
All-reduces and reduce-scatters of gradients that start after the last kernel of the backward pass and have nothing
beside them.

Why it costs time
-----------------
Gradients of the last layers are ready early: sent at once, their communication hides behind the rest of the backward
pass.

Blind spots
-----------
The last bucket always ends after the backward pass; only what exceeds a part of the step counts. In the first
iteration buckets are rebuilt. Collectives of the model itself (tensor parallelism, experts, pipelines) are not judged:
the next computation needs them.

How to fix
----------
Smaller buckets, ``gradient_as_bucket_view``, ``static_graph``; units of FSDP layer by layer;
``DistributedDataParallel`` where gradients are averaged by hand.

Sources
-------
HolisticTraceAnalysis (overlap of communication and computation).
"""

from __future__ import annotations

import numpy as np

from core.intervals import subtract, union
from core.kinds import SliceKind
from core.rule_tools.collective_kinds import DDP, Kinds, kinds_of, marked, shards_weights, with_gradients
from core.rule_tools.communication import collectives, exposed_ns, sent_bytes, step_time_ns
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.report import evidence, suggestion
from core.rule_tools.subjects import COLLECTIVES, need
from core.sets import among, changes
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion
from core.tables import I32

RULE = Rule(
    id="exposed-communication",
    title="Communication after the backward pass",
    needs=Needs.DEVICE | Needs.STEPS,
    params=(
        Param("min_share", 0.05, "share of the step", "the last bucket alone takes some"),
        Param("few_bytes", 256, "bytes", "a barrier or a metric: no layer's gradients are so small"),
        Param("left", 0.3, "of the time", "the last bucket stays exposed"),
    ),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts, trace = facts_of(ctx), ctx.trace
    comm = collectives(facts)
    nodes = facts.matching(r"^autograd::engine::evaluate_function", SliceKind.CPU_OP)
    need(comm, COLLECTIVES)
    need(nodes, "the trace holds no backward pass.")
    kinds = kinds_of(facts, comm)
    sent = comm[with_gradients(facts, comm, kinds)]
    launch = trace.links.launch_of[facts.kernels]
    inside = facts.inside(np.maximum(launch, 0), nodes) & (launch >= 0)
    plain = ~among(facts.kernels, comm)
    back = facts.kernels[inside & plain]
    parts: list[I32] = []
    room: dict[int, int] = {}  # per step: computation of its backward pass beside which nothing is sent, ns
    busy = union(trace.slices.start_ns[comm], trace.end_ns[comm])
    back_of, sent_of = _by_step(facts, back), _by_step(facts, sent)
    for row in facts.step_rows.tolist():
        mine = back_of.get(row, back[:0])
        if not len(mine):
            continue
        end = int(trace.end_ns[mine].max())
        room[row] = subtract(union(trace.slices.start_ns[mine], trace.end_ns[mine]), busy).total_ns
        late = sent_of.get(row, sent[:0])
        parts.append(late[trace.slices.start_ns[late] >= end])
    ids = np.concatenate(parts) if parts else sent[:0]
    ids = ids[sent_bytes(facts, ids) > ctx.params["few_bytes"]]  # read from the file: asked of few
    if len(parts) > 1 and len(parts[0]) and not any(map(len, parts[1:])):
        return []  # the first iteration of DistributedDataParallel: then it rebuilds its buckets in the order of use
    alone = exposed_ns(facts, ids) if len(ids) else np.zeros(0, dtype=np.int64)
    exposed = int(alone.sum())
    whole = step_time_ns(facts)
    if exposed < ctx.params["min_share"] * whole:
        return []
    hidden = sum(min(room[row], int(alone[ctx.figures.step_of[ids] == row].sum())) for row in room)
    left = max(ctx.params["left"], 1.0 - hidden / exposed)
    return [
        suggestion(
            ctx,
            RULE.id,
            "Gradients are sent after backward: {share_pct:.0f} % of the step",
            "Nothing runs beside these collectives for {step_exposed_ms:time} of each step ({count} "
            "{count|collective|collectives} in {steps} {steps|step|steps}). Sent layer by layer, as much of it as "
            "the backward pass takes would hide; the saving assumes that {left_pct:.0f} % of it stays.",
            _fix(facts, comm, kinds),
            [evidence(facts, "Collectives after the backward pass", len(ids), "", ids)],
            values={
                "share_pct": 100 * exposed / whole,
                "count": len(ids),
                "steps": max(facts.n_steps, 1),
                "step_exposed_ms": facts.per_step(exposed) / 1e6,
                "left_pct": 100 * left,
            },
            anchors=ids,
            at=-1,
            effects=[Effect(EffectKind.SCALE_DEVICE, tuple(ids.tolist()), left)],
        )
    ]


def _by_step(facts: Facts, ids: I32) -> dict[int, I32]:
    """Slices by the row of the step in which they lie, in their order."""
    row = facts.figures.step_of[ids]
    order = row.argsort(kind="stable")
    heads = changes(row[order]).nonzero()[0] if len(ids) else order
    parts = np.split(ids[order], heads[1:])
    return dict(zip(row[order][heads].tolist(), parts, strict=False))


def _fix(facts: Facts, comm: I32, kinds: Kinds) -> Fix:
    if shards_weights(facts, comm, kinds):
        return Fix(
            "Make each block of layers a unit of its own for FSDP, so that its gradients are sent while the backward "
            "pass goes on.",
            url="https://pytorch.org/docs/stable/fsdp.html",
            risk="Smaller units send more and smaller messages.",
        )
    if marked(facts, DDP):
        return Fix(
            "Send gradients while the backward pass runs.",
            "model = DistributedDataParallel(model, bucket_cap_mb=1000)",
            "model = DistributedDataParallel(model, bucket_cap_mb=25, gradient_as_bucket_view=True, static_graph=True)",
            "https://pytorch.org/docs/stable/notes/ddp.html",
            "static_graph needs the same graph in every step.",
        )
    return Fix(
        "Let DistributedDataParallel send gradients while the backward pass runs.",
        "loss.backward()\nfor p in model.parameters():\n    dist.all_reduce(p.grad)",
        "model = DistributedDataParallel(model)     # once, before the optimizer is made\n\nloss.backward()",
        "https://pytorch.org/docs/stable/notes/ddp.html",
        "It averages gradients, and needs every rank to run the same layers.",
    )
