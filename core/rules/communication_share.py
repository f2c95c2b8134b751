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
first. Kernels that only say SendRecv are told apart by their arguments or by what called them; where neither says it,
the advice is general.

How to fix
----------
By what is sent: gradients of ``DistributedDataParallel`` in larger buckets, compressed, or beside the backward pass;
weights of FSDP, or of a program that gathers them as FSDP does, gathered ahead; all-to-all split into parts; more
micro-batches for a pipeline; fewer and cheaper all-reduces for tensor parallelism. A saving is worked out where half of
the time can plausibly be hidden: gradients of ``DistributedDataParallel`` and collectives of sharded weights.
Elsewhere the computation needs the result at once.

Sources
-------
torch-tb-profiler (10 % of the step); HolisticTraceAnalysis.
"""

from __future__ import annotations

import numpy as np

from core.rule_tools.collective_kinds import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    DDP,
    FSDP,
    POINT_TO_POINT,
    REDUCE_SCATTER,
    Kinds,
    kinds_of,
    main_kind,
    marked,
    shards_weights,
    with_gradients,
)
from core.rule_tools.communication import collectives, exposed_ns, exposed_of_step_ns, hidden_share, sent_bytes
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import COLLECTIVES, need
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion
from core.tables import I32, Bool

RULE = Rule(
    id="communication-share",
    title="Communication is exposed",
    severity_floor="medium",
    needs=Needs.DEVICE | Needs.STEPS,
    params=(
        Param("min_share", 0.1, "share of the step", "the threshold of torch-tb-profiler"),
        Param("few_bytes", 256, "bytes", "a barrier or a metric: no layer's gradients are so small"),
        Param("left", 0.5, "of the exposed time", "how much can be hidden is unknown; half is assumed"),
        Param("least_left", 0.1, "of that of weights", "kernels run slower beside a collective"),
    ),
)
_MOST_READ = 1000  # collectives whose sizes are read
_HIDDEN = (
    "In each step collectives ran {step_total_ms:time}, {step_exposed_ms:time} of it with no computation beside them, "
    "most of that in {kind} ({count} {count|collective|collectives} in {steps} {steps|step|steps}). "
    "Part of that may be waiting for a slower rank. The "
    "saving assumes that {hidden_pct:.0f} % of what {what} takes can be hidden."
)
_NEEDED = (
    "In each step collectives ran {step_total_ms:time}, {step_exposed_ms:time} of it with no computation beside them, "
    "most of that in {kind} ({count} {count|collective|collectives} in {steps} {steps|step|steps}). "
    "Part of that may be waiting for a slower rank. How "
    "much can be hidden depends on the program, so no saving is promised."
)
_DDP = Fix(
    "Communicate less, or while computing.",
    "model = DistributedDataParallel(model)",
    "model = DistributedDataParallel(\n"
    "    model, bucket_cap_mb=100, gradient_as_bucket_view=True, static_graph=True\n"
    ")\n"
    "model.register_comm_hook(None, default_hooks.bf16_compress_hook)",
    "https://pytorch.org/docs/stable/ddp_comm_hooks.html",
    "Compressed gradients have fewer digits.",
)
_FSDP = Fix(
    "Gather the next layer's weights while this one computes: shard layer by layer (each block a unit of its own), "
    "prefetch in both directions, and send bfloat16. With memory to spare, keep the weights after the forward pass.",
    url="https://pytorch.org/docs/stable/fsdp.html",
    risk="Prefetched and kept weights take memory; bfloat16 has fewer digits.",
)
_GRADIENTS = Fix(
    "Average gradients in large buckets while the backward pass runs, as DistributedDataParallel does, or less often: "
    "accumulate over several micro steps.",
    url="https://pytorch.org/docs/stable/notes/ddp.html",
    risk="Accumulating changes the effective batch size.",
)
_ADVICE = {
    ALL_REDUCE: Fix(
        "These all-reduces are not gradients: the computation needs each result at once, as in tensor parallelism. "
        "Spread the layers over fewer GPUs, with the fastest links between them; use an all-reduce made for small "
        "messages; compute on two halves of the batch in turn, so that one communicates while the other computes.",
        url="https://pytorch.org/docs/stable/distributed.tensor.parallel.html",
        risk="Fewer GPUs per layer need more memory on each.",
    ),
    ALL_TO_ALL: Fix(
        "Split the batch in two, so that one half is exchanged while the other computes; send fewer bytes (bfloat16 or "
        "less); give all ranks equal shares (experts, tables), and keep the exchange inside one machine if possible.",
        url="https://pytorch.org/docs/stable/distributed.html#torch.distributed.all_to_all_single",
        risk="Two halves launch twice as many kernels, each half as large.",
    ),
    POINT_TO_POINT: Fix(
        "A receive mostly waits until the stage before it has computed. Cut the batch into more micro-batches, "
        "interleave the stages, and give them equal work; post receives early.",
        url="https://pytorch.org/docs/stable/distributed.pipelining.html",
        risk="More micro-batches are smaller, and use the GPU less well.",
    ),
    ALL_GATHER: Fix(
        "Ask for what is gathered before it is needed (async_op=True), so that it arrives while the GPU computes; send "
        "fewer bytes (bfloat16 or less).",
        url="https://pytorch.org/docs/stable/distributed.html",
        risk="What is gathered early takes memory earlier.",
    ),
}
_TINY = Fix(
    "These messages hold a few numbers: what takes the time is waiting for the other ranks. Take barriers out of the "
    "loop; put metrics into one tensor, and reduce it every so many steps.",
    url="https://pytorch.org/docs/stable/distributed.html",
)
_GENERAL = Fix(
    "Start each collective as early as its input is ready (async_op=True) and wait for it as late as possible; send "
    "fewer bytes, or less often.",
    url="https://pytorch.org/docs/stable/distributed.html",
    risk="A buffer must not be changed before its collective has ended.",
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts = facts_of(ctx)
    comm = collectives(facts)
    need(comm, COLLECTIVES)
    alone = exposed_ns(facts, comm)
    exposed, whole = exposed_of_step_ns(facts, comm, alone)
    if exposed < ctx.params["min_share"] * whole:
        return []
    kinds = kinds_of(facts, comm)
    kind = main_kind(kinds, alone)
    mine = comm[kinds == kind]
    tiny = len(mine) <= _MOST_READ and bool((sent_bytes(facts, mine) <= ctx.params["few_bytes"]).all())
    fix, hidden, what = (_TINY, np.zeros(len(comm), dtype=bool), "") if tiny else _advice(facts, comm, kinds, kind)
    effect = tuple(int(c) for c in comm[hidden & (exposed_ns(facts, comm, once=False) > 0)])
    left = ctx.params["left"]
    if fix is _FSDP:  # layer by layer: the trace shows what there is to hide it behind
        room = hidden_share(facts, comm[hidden], alone[hidden], kinds[hidden] == ALL_GATHER)
        left = max(1.0 - room, ctx.params["least_left"])
    return [
        suggestion(
            ctx,
            RULE.id,
            "In {share_pct:.0f} % of the step the GPU only communicates",
            _HIDDEN if effect else _NEEDED,
            fix,
            [
                evidence(facts, "Collectives", len(comm), "", comm),
                evidence(
                    facts,
                    "Time per step with no computation beside them",
                    exposed / 1e6,
                    "ms",
                    comm[alone > 0],
                ),
                evidence(
                    facts,
                    "of it, in the kind that takes most",
                    exposed / 1e6 * float(alone[kinds == kind].sum()) / max(float(alone.sum()), 1.0),
                    "ms",
                    comm[(kinds == kind) & (alone > 0)],
                ),
            ],
            values={
                "share_pct": 100 * exposed / whole,
                "count": len(comm),
                "steps": max(facts.n_steps, 1),
                "step_total_ms": facts.per_step(total_ns(facts, comm)) / 1e6,
                "step_exposed_ms": exposed / 1e6,
                "kind": kind,
                "what": what,
                "hidden_pct": 100 * (1 - left),
            },
            anchors=comm,
            at=-1,
            effects=[Effect(EffectKind.SCALE_DEVICE, effect, left)] if effect else (),
        )
    ]


def _advice(facts: Facts, comm: I32, kinds: Kinds, kind: str) -> tuple[Fix, Bool, str]:
    """Return the fix for this kind, which of the collectives it can hide (none where that is unknown), and of what."""
    gradients, none = with_gradients(facts, comm, kinds), np.zeros(len(comm), dtype=bool)
    if kind in (ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE) and shards_weights(facts, comm, kinds):
        what = "FSDP" if marked(facts, FSDP) else "gathering weights and sending gradients"
        return _FSDP, np.isin(kinds, (ALL_GATHER, REDUCE_SCATTER)) | gradients, what
    if kind in (ALL_REDUCE, REDUCE_SCATTER) and 2 * gradients.sum() >= (kinds == kind).sum():
        return (_DDP, gradients, "DistributedDataParallel") if marked(facts, DDP) else (_GRADIENTS, none, "")
    return _ADVICE.get(kind, _GENERAL), none, ""
