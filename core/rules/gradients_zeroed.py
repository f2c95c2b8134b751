"""Gradients are filled with zeros instead of being dropped.

What it finds
-------------
``aten::zero_`` or ``aten::_foreach_zero_`` inside ``Optimizer.zero_grad#``; with stacks, in a module's ``zero_grad``
as well. Else, in most steps, as many ``aten::zero_`` outside of any operator as the backward pass has gradients to
accumulate: ``p.grad.zero_()`` written in the loop itself.

Why it costs time
-----------------
Every gradient is written once for nothing, and then read and added to instead of simply being set.

Blind spots
-----------
Since torch 2.0 dropping is the default and the range is empty. ``p.grad.zero_()`` in the loop is not told from any
other clearing where steps are unknown or other tensors are cleared beside the gradients. Code that relies on gradients
being zero (not None) must be looked at.

How to fix
----------
``zero_grad(set_to_none=True)``.

Sources
-------
PyTorch's former pattern matcher (GradNotSetToNone); PyTorch performance tuning guide.
"""

from __future__ import annotations

import numpy as np

from core.kinds import SliceKind
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.optimizers import during
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import need
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion
from core.tables import I32

RULE = Rule(
    id="gradients-zeroed",
    title="Gradients are filled with zeros",
    needs=Needs.OPS,
    params=(Param("min_tensors", 2, "tensors per call", "a single one may be something else"),),
)
_OF_MODULE = r"torch[/\\]nn[/\\]modules[/\\]module\.py\(\d+\): zero_grad$"
_ON_GPU = (
    "Each of {times} {times|call|calls} fills {each:.0f} {each|tensor|tensors} with zeros: {each_host_ms:time} of CPU "
    "time and {each_device_ms:time} of the GPU. "
    "Dropped gradients need neither, and the next backward pass writes them instead of adding to them."
)
_ON_CPU = (
    "Each of {times} {times|call|calls} fills {each:.0f} {each|tensor|tensors} with zeros: {each_host_ms:time}. "
    "Dropped "
    "gradients need no clearing, and the next "
    "backward pass writes them instead of adding to them."
)


def _fix(before: str, after: str) -> Fix:
    return Fix(
        "Drop the gradients.",
        before,
        after,
        "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        "Code that reads .grad before the backward pass then finds None.",
    )


_OF_MODEL, _OF_OPTIMIZER = (
    _fix(
        f"{owner}.zero_grad(set_to_none=False)",
        f"{owner}.zero_grad(set_to_none=True)     # the default since torch 2.0",
    )
    for owner in ("model", "optimizer")
)
_BY_HAND = _fix("for p in model.parameters():\n    p.grad.zero_()", "for p in model.parameters():\n    p.grad = None")


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each optimizer once."""
    facts, trace = facts_of(ctx), ctx.trace
    ranges = facts.in_steps(facts.matching(r"^Optimizer\.zero_grad#", SliceKind.RANGE))
    modules = facts.in_steps(facts.matching(_OF_MODULE, SliceKind.PYTHON))
    ranges = np.concatenate([ranges, modules]) if len(modules) else ranges
    zero = facts.ops("aten::zero_", "aten::_foreach_zero_")
    ops, times = _by_hand(facts, zero, int(ctx.params["min_tensors"]))
    if ops:
        return [_suggestion(ctx, ops, times, _BY_HAND)]
    need(ranges, "the steps hold no zero_grad of an optimizer or a module of torch.")
    if not len(zero):
        return []
    used: list[int] = []
    for one in ranges.tolist():
        mine = during(facts, zero, one).tolist()
        if len(mine) >= ctx.params["min_tensors"] or any("_foreach_" in trace.name(z) for z in mine):
            ops.extend(mine)
            used.append(one)
    if not ops:
        return []
    return [_suggestion(ctx, ops, len(used), _OF_MODEL if np.isin(used, modules).all() else _OF_OPTIMIZER)]


def _by_hand(facts: Facts, zero: I32, min_tensors: int) -> tuple[list[int], int]:
    """Gradients that the loop itself clears one by one, and in how many steps: as many as the backward pass has.

    Without steps the recording counts as one.
    """
    if not len(zero):
        return [], 0
    sl, count = facts.trace.slices, max(len(facts.figures.steps), 1)
    step_of = facts.figures.step_of if facts.n_steps else np.zeros(len(sl), dtype=np.int32)
    alone = facts.in_steps(zero[sl.parent_id[zero] < 0])
    for calls in (facts.matching(r"^Optimizer\.", SliceKind.RANGE), facts.matching(_OF_MODULE, SliceKind.PYTHON)):
        alone = alone[~facts.within_ranges(alone, calls)]
    gradients = facts.in_steps(facts.ops("torch::autograd::AccumulateGrad"))
    cleared, made = (np.bincount(step_of[ids], minlength=count) for ids in (alone, gradients))
    fits = (cleared == made) & (cleared >= min_tensors)
    if 2 * int(fits.sum()) <= max(facts.n_steps, 1):
        return [], 0
    return alone[fits[step_of[alone]]].tolist(), int(fits.sum())


def _suggestion(ctx: RuleContext, ops: list[int], times: int, fix: Fix) -> Suggestion:
    facts = facts_of(ctx)
    work = facts.device_below_all(ops)
    return suggestion(
        ctx,
        RULE.id,
        "Gradients are zeroed in every step instead of dropped",
        _ON_GPU if len(work) else _ON_CPU,
        fix,
        [
            evidence(facts, "Tensors cleared", len(ops), "", ops),
            evidence(facts, "CPU time", total_ns(facts, ops) / 1e6, "ms", ops),
            *([evidence(facts, "GPU time", total_ns(facts, work) / 1e6, "ms", work)] if len(work) else []),
        ],
        values={
            "count": len(ops),
            "times": times,
            "each": round(len(ops) / times),
            "each_host_ms": total_ns(facts, ops) / times / 1e6,
            "each_device_ms": total_ns(facts, work) / times / 1e6 if len(work) else 0.0,
        },
        anchors=ops,
        effects=[Effect(EffectKind.REMOVE_WORK, tuple(ops))],
        hint="call:zero_,zero_grad",
    )
