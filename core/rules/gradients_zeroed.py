"""Gradients are filled with zeros instead of being dropped.

What it finds
-------------
``aten::zero_`` or ``aten::_foreach_zero_`` inside ``Optimizer.zero_grad#``; with stacks, in a module's ``zero_grad``
as well.

Why it costs time
-----------------
Every gradient is written once for nothing, and then read and added to instead of simply being set.

Blind spots
-----------
Since torch 2.0 dropping is the default and the range is empty. ``p.grad.zero_()`` written in the loop itself leaves no
mark that tells it from any other clearing. Code that relies on gradients being zero (not None)
must be looked at.

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
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import need
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion

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


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each optimizer once."""
    facts, trace = facts_of(ctx), ctx.trace
    sl = trace.slices
    ranges = facts.in_steps(facts.matching(r"^Optimizer\.zero_grad#", SliceKind.RANGE))
    modules = facts.in_steps(facts.matching(_OF_MODULE, SliceKind.PYTHON))
    ranges = np.concatenate([ranges, modules]) if len(modules) else ranges
    need(ranges, "the steps hold no zero_grad of an optimizer or a module of torch.")
    zero = facts.ops("aten::zero_", "aten::_foreach_zero_")
    if not len(zero):
        return []
    ops: list[int] = []
    used: list[int] = []
    for one in ranges.tolist():
        thread = facts.thread_of(one)
        hit = zero[(sl.start_ns[zero] >= sl.start_ns[one]) & (sl.start_ns[zero] < trace.end_ns[one])]
        mine = [int(z) for z in hit if facts.thread_of(int(z)) == thread]
        if len(mine) >= ctx.params["min_tensors"] or any("_foreach_" in trace.name(z) for z in mine):
            ops.extend(mine)
            used.append(one)
    if not ops:
        return []
    work = facts.device_below_all(ops)
    owner = "model" if np.isin(used, modules).all() else "optimizer"
    return [
        suggestion(
            ctx,
            RULE.id,
            "Gradients are zeroed in every step instead of dropped",
            _ON_GPU if len(work) else _ON_CPU,
            Fix(
                "Drop the gradients.",
                f"{owner}.zero_grad(set_to_none=False)",
                f"{owner}.zero_grad(set_to_none=True)     # the default since torch 2.0",
                "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
                "Code that reads .grad before the backward pass then finds None.",
            ),
            [
                evidence(facts, "Tensors cleared", len(ops), "", ops),
                evidence(facts, "CPU time", total_ns(facts, ops) / 1e6, "ms", ops),
                *([evidence(facts, "GPU time", total_ns(facts, work) / 1e6, "ms", work)] if len(work) else []),
            ],
            values={
                "count": len(ops),
                "times": len(used),
                "each": round(len(ops) / len(used)),
                "each_host_ms": total_ns(facts, ops) / len(used) / 1e6,
                "each_device_ms": total_ns(facts, work) / len(used) / 1e6 if len(work) else 0.0,
            },
            anchors=ops,
            effects=[Effect(EffectKind.REMOVE_WORK, tuple(ops))],
            hint="call:zero_grad",
        )
    ]
