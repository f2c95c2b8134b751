"""The batch is copied while the GPU does nothing else.

What it finds
-------------
Copies to the device on the stream that also runs kernels, during which no kernel runs, and that together take a good
part of the step. Batches that block the CPU are among them: that has rules of its own, but without the wait such a copy
still lies in the way of the kernels, and only both fixes together are worth it. Small copies that block are not.

Why it costs time
-----------------
The copy engine and the compute units work independently, but on one stream they take turns.

Blind spots
-----------
A copy of one percent of the step is not worth a prefetcher. Copies from pageable memory must be pinned first; that a
pinned copy is also the faster one is not in the saving.

How to fix
----------
Copy the next batch, from pinned memory, on a stream of its own while this one is computed.

Sources
-------
NVIDIA Nsight Systems; PyTorch tutorial on pinned memory; thresholds of gpu-idle tools (10 to 15 % of the step).
"""

from __future__ import annotations

from core.kinds import CopyDirection, SliceKind
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.intervals import outside_ns, union
from core.rule_tools.report import evidence, suggestion
from core.rule_tools.subjects import need
from core.rule_tools.sync_classes import Occurrence, classify
from core.sets import among, distinct
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="copy-not-overlapped",
    title="Copies are not overlapped",
    needs=Needs.DEVICE | Needs.STEPS,
    params=(Param("min_share", 0.1, "share of the step", "below it a prefetcher is not worth its code"),),
)

_BATCHES = ("pageable-batch-copy", "blocking-pinned-copy")
_WHY = (
    "{count} {count|copy lies|copies lie} on the stream of the kernels, so the kernels wait for them: for "
    "{step_exposed_ms:time} of each step only a copy runs. The GPU can copy and compute at once when the copies have "
    "a stream of their own."
)
_WHY_BLOCKING = (
    _WHY + " The CPU waits for these copies, too. That takes pinned memory and non_blocking=True; without a stream of "
    "their own, though, the copies would still take turns with the kernels, so that both fixes belong together."
)
_URL = "https://pytorch.org/tutorials/intermediate/pinmem_nonblock.html"
_RISK = "One more batch lies on the GPU; without record_stream memory is reused too early."
_FETCH = (
    "copies = torch.cuda.Stream()\ndef fetch(it):\n    with torch.cuda.stream(copies):\n"
    "        return [t.to(device, non_blocking=True) for t in next(it)]\n"
    "batch = fetch(it)\nwhile batch:\n"
    "    torch.cuda.current_stream().wait_stream(copies)\n"
    "    for t in batch: t.record_stream(torch.cuda.current_stream())\n"
    "    following = fetch(it)\n    train(*batch)\n    batch = following"
)
_FIX = Fix(
    "Copy the next batch on another stream while this one is computed.",
    "for x, y in loader:\n    x = x.to(device, non_blocking=True)\n    train(x, y)",
    _FETCH,
    _URL,
    _RISK,
)
_FIX_BLOCKING = Fix(
    "Pin the batches, and copy the next one on another stream while this one is computed.",
    "for x, y in loader:\n    x = x.to(device)\n    train(x, y)",
    "it = iter(DataLoader(data, batch_size=32, num_workers=4, pin_memory=True))\n" + _FETCH,
    _URL,
    _RISK + " Pinned memory cannot be swapped out.",
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report all copies together."""
    facts, trace = facts_of(ctx), ctx.trace
    sl = trace.slices
    copies = facts.work[
        (sl.kind[facts.work] == int(SliceKind.MEMCPY)) & (sl.direction[facts.work] == int(CopyDirection.HTOD))
    ]
    need(copies, "nothing is copied to the GPU in the steps.")
    compute = distinct(sl.track_id[facts.kernels])
    batches, blocking = _blocking(ctx, facts)
    copies = copies[among(sl.track_id[copies], compute) & ~among(copies, list(blocking))]
    if not len(copies):
        return []
    busy = union(sl.start_ns[facts.kernels], trace.end_ns[facts.kernels])
    alone = outside_ns(busy, sl.start_ns[copies], trace.end_ns[copies])
    exposed = int(alone.sum())
    if exposed < ctx.params["min_share"] * facts.sustained_ns * max(facts.n_steps, 1):
        return []
    step_exposed_ms = facts.per_step(exposed) / 1e6
    calls = [call for call in distinct(trace.links.launch_of[copies]).tolist() if call >= 0]
    own = set(copies.tolist())
    waiting = [c for o in batches if own.intersection(o.copies) for c in o.calls]
    effects = [Effect(EffectKind.OVERLAP_COPY, tuple(calls))]
    if waiting:
        effects.insert(0, Effect(EffectKind.MAKE_ASYNC, tuple(waiting)))
    return [
        suggestion(
            ctx,
            RULE.id,
            "Copies run while the GPU computes nothing: {share_pct:.0f} % of the step",
            _WHY_BLOCKING if waiting else _WHY,
            _FIX_BLOCKING if waiting else _FIX,
            [
                evidence(facts, "Copies", len(copies), "", copies),
                evidence(facts, "Time per step in which only they ran", step_exposed_ms, "ms", copies[alone > 0]),
            ],
            values={
                "count": len(copies),
                "step_exposed_ms": step_exposed_ms,
                "share_pct": 100.0 * exposed / max(facts.sustained_ns * max(facts.n_steps, 1), 1),
            },
            anchors=calls,
            effects=effects,
            hint="batch",
        )
    ]


def _blocking(ctx: RuleContext, facts: Facts) -> tuple[list[Occurrence], set[int]]:
    """Batches whose copy blocks the CPU, and copies of anything else that blocks it."""
    batches: list[Occurrence] = []
    others: set[int] = set()
    for rule, items in classify(ctx, facts).items():
        if rule in _BATCHES:
            batches += items
        else:
            others.update(c for o in items for c in o.copies)
    return batches, others
