"""Gradients are averaged over all ranks in every micro step.

What it finds
-------------
Several forward passes of ``DistributedDataParallel`` per step of the optimizer, with all-reduces in each.

Why it costs time
-----------------
Only the last micro step before the optimizer needs the average.

Blind spots
-----------
Pipeline parallel programs look alike: where stages send to one another nothing is claimed.

How to fix
----------
``with model.no_sync():`` in all but the last micro step.

Sources
-------
PyTorch performance tuning guide, 'Skip unnecessary all-reduce'.
"""

from __future__ import annotations

import numpy as np

from core.kinds import SliceKind
from core.rule_tools.collective_kinds import ALL_REDUCE, POINT_TO_POINT, kinds_of, with_gradients
from core.rule_tools.communication import collectives
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import PARALLEL, need
from core.suggestions import Effect, EffectKind, Fix, Needs, NotChecked, Rule, RuleContext, Suggestion

RULE = Rule(id="all-reduce-while-accumulating", title="All-reduce in every micro step", needs=Needs.DEVICE, params=())


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts, trace = facts_of(ctx), ctx.trace
    forward = facts.matching(r"^DistributedDataParallel\.forward", SliceKind.RANGE, SliceKind.CPU_OP)
    optimizer = facts.matching(r"^Optimizer\.step#", SliceKind.RANGE)
    comm = collectives(facts)
    kinds = kinds_of(facts, comm)
    comm = comm[kinds == ALL_REDUCE]
    need(comm, "the trace holds no all-reduce.")
    need(forward, PARALLEL)
    need(len(optimizer) >= 2, "fewer than two steps of an optimizer of torch were recorded.")
    if (kinds == POINT_TO_POINT).any():
        raise NotChecked("Stages of a pipeline send to one another: its micro steps may reduce more than gradients.")
    comm = comm[with_gradients(facts, comm, np.full(len(comm), ALL_REDUCE))]
    if len(forward) < 2 * (len(optimizer) - 1):
        return []
    bounds = trace.slices.start_ns[np.sort(forward)]
    launch = trace.links.launch_of[comm]
    at = np.sort(bounds).searchsorted(trace.slices.start_ns[np.maximum(launch, 0)], side="right")
    used = len(np.unique(at[launch >= 0]))
    if used < 0.8 * len(forward):
        return []
    per = len(forward) / len(optimizer)
    first = np.sort(trace.slices.start_ns[optimizer])
    group = first.searchsorted(bounds, side="right")
    last = {int((group == g).nonzero()[0][-1]) + 1 for g in np.unique(group)}
    needless = comm[~np.isin(at, list(last)) & (launch >= 0)]
    if not len(needless):
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "Gradients are averaged {per:.0f} times per optimizer step",
            "Gradients are collected over {per:.0f} micro steps, but sent in each of them: {count} "
            "{count|collective|collectives} "
            "({step_took_ms:time} per step) could be left out.",
            Fix(
                "Send only in the last micro step.",
                "for micro in batches:\n    model(micro).backward()",
                "for i, micro in enumerate(batches):\n    last = i == len(batches) - 1\n"
                "    with contextlib.nullcontext() if last else model.no_sync():\n        model(micro).backward()",
                "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
                "The forward pass must be inside no_sync, too.",
            ),
            [evidence(facts, "Needless collectives", len(needless), "", needless)],
            values={
                "per": per,
                "count": len(needless),
                "step_took_ms": facts.per_step(total_ns(facts, needless)) / 1e6,
            },
            anchors=needless,
            at=-1,
            effects=[Effect(EffectKind.SCALE_DEVICE, tuple(int(n) for n in needless), 0.0)],
        )
    ]
