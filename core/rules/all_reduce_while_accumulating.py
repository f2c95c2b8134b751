"""Gradients are averaged over all ranks in every micro step.

What it finds
-------------
Several forward passes of ``DistributedDataParallel`` per step of the optimizer, with all-reduces in each: kernels, or
without a GPU the calls (``c10d::allreduce_``) within the backward pass.

Why it costs time
-----------------
Only the last micro step before the optimizer needs the average.

Blind spots
-----------
Pipeline parallel programs look alike: where stages send to one another nothing is claimed. Without a GPU the backward
pass waits for gloo outside of any operator: how long is told, but what is saved is not foretold.

How to fix
----------
``with model.no_sync():`` in all but the last micro step.

Sources
-------
PyTorch performance tuning guide, 'Skip unnecessary all-reduce'.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from core.intervals import coverage, union
from core.kinds import SliceKind
from core.rule_tools.collective_kinds import ALL_REDUCE, POINT_TO_POINT, kinds_of, with_gradients
from core.rule_tools.communication import collectives
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import PARALLEL, need
from core.suggestions import Effect, EffectKind, Fix, NotChecked, Rule, RuleContext, Suggestion
from core.tables import I32

RULE = Rule(id="all-reduce-while-accumulating", title="All-reduce in every micro step", params=())
_BACKWARD = r"^autograd::engine::evaluate_function"
_MARKS = r"^(c10d::allreduce_$|torch\.distributed\.ddp\.reducer|torch::distributed::reducer)"
_WHY = (
    "Gradients are collected over {per:.0f} micro steps, but sent in each of them: {count} "
    "{count|collective|collectives} ({step_took_ms:time} per step) could be left out."
)
_WHY_ON_CPU = (
    "Gradients are collected over {per:.0f} micro steps, but sent in each of them: {count} "
    "{count|collective|collectives} could be left out. From the first of them on the backward passes of these micro "
    "steps take {step_took_ms:time} per step besides their own operators: most of it is waiting for the other ranks."
)
_FIX = Fix(
    "Send only in the last micro step.",
    "for micro in batches:\n    model(micro).backward()",
    "for i, micro in enumerate(batches):\n    last = i == len(batches) - 1\n"
    "    with contextlib.nullcontext() if last else model.no_sync():\n        model(micro).backward()",
    "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
    "The forward pass must be inside no_sync, too.",
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts, trace = facts_of(ctx), ctx.trace
    on_device = trace.has_device_work
    forward = facts.matching(r"^DistributedDataParallel\.forward", SliceKind.RANGE, SliceKind.CPU_OP)
    optimizer = facts.matching(r"^Optimizer\.step#", SliceKind.RANGE)
    comm = _by_kernels(facts) if on_device else facts.ops("c10d::allreduce_")
    need(comm, "the trace holds no all-reduce.")
    need(forward, PARALLEL)
    need(len(optimizer) >= 2, "fewer than two steps of an optimizer of torch were recorded.")
    if on_device:
        comm = comm[with_gradients(facts, comm, np.full(len(comm), ALL_REDUCE))]
    else:
        comm = comm[facts.inside(comm, facts.matching(_BACKWARD, SliceKind.CPU_OP))]
    needless = _needless(facts, forward, optimizer, comm)
    if not len(needless):
        return []
    held = total_ns(facts, needless) if on_device else _held_ns(facts, forward, needless)
    made = suggestion(
        ctx,
        RULE.id,
        "Gradients are averaged {per:.0f} times per optimizer step",
        _WHY if on_device else _WHY_ON_CPU,
        _FIX,
        [evidence(facts, "Needless collectives", len(needless), "", needless)],
        values={
            "per": len(forward) / len(optimizer),
            "count": len(needless),
            "step_took_ms": facts.per_step(held) / 1e6,
        },
        anchors=needless,
        at=-1 if on_device else int(needless[0]),
        effects=[Effect(EffectKind.SCALE_DEVICE, tuple(int(n) for n in needless), 0.0)] if on_device else [],
        hint="call:backward",
    )
    return [made if on_device else replace(made, costs_ns=facts.per_step(held))]


def _by_kernels(facts: Facts) -> I32:
    """int32[k]: kernels of all-reduces."""
    comm = collectives(facts)
    kinds = kinds_of(facts, comm)
    if (kinds == POINT_TO_POINT).any() and (kinds == ALL_REDUCE).any():
        raise NotChecked("Stages of a pipeline send to one another: its micro steps may reduce more than gradients.")
    found: I32 = comm[kinds == ALL_REDUCE]
    return found


def _needless(facts: Facts, forward: I32, optimizer: I32, comm: I32) -> I32:
    """int32[k]: all-reduces of micro steps that are not the last before the optimizer."""
    starts, on_device = facts.trace.slices.start_ns, facts.trace.has_device_work
    bounds = np.sort(starts[forward])
    if len(forward) < 2 * (len(optimizer) - 1):
        return comm[:0]
    sent = facts.trace.links.launch_of[comm] if on_device else comm
    at = bounds.searchsorted(starts[np.maximum(sent, 0)], side="right")
    if len(np.unique(at[sent >= 0])) < 0.8 * len(forward):
        return comm[:0]
    group = np.sort(starts[optimizer]).searchsorted(bounds, side="right")
    last = [int((group == g).nonzero()[0][-1]) + 1 for g in np.unique(group)]
    found = comm[~np.isin(at, last) & (sent >= 0)]
    return found if on_device else facts.in_steps(found)


def _held_ns(facts: Facts, forward: I32, needless: I32) -> int:
    """Time in each micro step from its first all-reduce to the end of its last mark of the reducer, ns.

    Nodes of the backward pass that reduce nothing are left out of it.
    """
    sl, ends = facts.trace.slices, facts.trace.end_ns
    bounds = np.sort(sl.start_ns[forward])
    nodes = facts.matching(_BACKWARD, SliceKind.CPU_OP)
    nodes = nodes[needless.searchsorted(sl.subtree_end[nodes]) == needless.searchsorted(nodes)]
    marks = facts.matching(_MARKS, SliceKind.CPU_OP)
    micros, first = np.unique(bounds.searchsorted(sl.start_ns[needless], side="right"), return_index=True)
    begun = sl.start_ns[needless[first]]
    of_mark = bounds.searchsorted(sl.start_ns[marks], side="right")
    ended = np.asarray([ends[marks[of_mark == micro]].max() for micro in micros], dtype=np.int64)
    busy = coverage(union(sl.start_ns[nodes], ends[nodes]), begun, ended)
    return int((ended - begun - busy).sum())
