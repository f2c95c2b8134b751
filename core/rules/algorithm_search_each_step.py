"""cuDNN searches for the best algorithm again in every step.

What it finds
-------------
Waits on events inside ``aten::cudnn_convolution`` (or MIOpen's) in at least two counted steps: the sign of a
benchmark run. And, as a note only, the opposite: cuDNN's convolutions that take a good part of the kernels' time with
the same shapes in every step, and no sign of such a run.

Why it costs time
-----------------
With ``cudnn.benchmark`` every new input size is measured with several algorithms, each run on the GPU and waited for.

Blind spots
-----------
Whether the option is set is not in the trace: the search may have been made before the recording, so the note only says
that it is worth a try. In the first steps the search is expected. Without shapes nothing is said.

How to fix
----------
Constant input sizes, or ``benchmark = False``.

Sources
-------
PyTorch performance tuning guide, 'Enable cuDNN auto-tuner'.
"""

from __future__ import annotations

import numpy as np

from core.kinds import HOST_CALLS, SliceKind
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.report import counted_kernels, evidence, suggestion, total_ns
from core.rule_tools.subjects import need
from core.sets import distinct
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="algorithm-search-each-step",
    title="Algorithms are searched in every step",
    needs=Needs.WAITS | Needs.STEPS,
    params=(
        Param("min_steps", 2, "steps", "once per size is how it is meant to be"),
        Param("min_share", 0.2, "share of the kernels' time", "of convolutions; below it a faster one gains little"),
        Param("look_at", 100, "operators", "arguments are read from the file: as many of each of two steps"),
    ),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report all searches together."""
    facts = facts_of(ctx)
    convs = facts.matching(r"^aten::(cudnn_convolution|miopen_convolution)", SliceKind.CPU_OP)
    need(convs, "the trace holds no convolution of cuDNN or MIOpen.")
    waits = facts.in_steps(facts.where(lambda n: "EventSynchronize" in n or "EventElapsedTime" in n, *HOST_CALLS))
    waits = waits[facts.inside(waits, convs)]
    owner = distinct(facts.trace.links.op_of[waits]) if len(waits) else waits
    owner = owner[owner >= 0]
    if len(facts.rows_of(owner)) < ctx.params["min_steps"]:
        return [] if len(owner) else _worth_a_try(ctx, facts)
    took = total_ns(facts, owner)
    return [
        suggestion(
            ctx,
            RULE.id,
            "cuDNN looks for the best algorithm again in every step",
            "{count} {count|convolution|convolutions} measured several algorithms before they ran ({took_ms:time} of "
            "CPU time), in "
            "{steps} {steps|step|steps}. That happens for every new input size.",
            Fix(
                "Keep sizes constant, or do not search.",
                "torch.backends.cudnn.benchmark = True",
                "torch.backends.cudnn.benchmark = False      # sizes change\n# or pad the inputs to a few fixed sizes",
                "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
                "Without the search, a slower algorithm may be used for sizes that occur often.",
            ),
            [evidence(facts, "Convolutions that searched", len(owner), "", owner)],
            values={"count": len(owner), "took_ms": took / 1e6, "steps": len(facts.rows_of(owner))},
            anchors=owner,
            effects=[Effect(EffectKind.REMOVE_WAIT, tuple(int(w) for w in waits))],
        )
    ]


def _worth_a_try(ctx: RuleContext, facts: Facts) -> list[Suggestion]:
    """The note that a search may pay off: cuDNN's convolutions of constant shapes take a good part of the time."""
    convs = facts.in_steps(facts.matching(r"^aten::cudnn_convolution", SliceKind.CPU_OP))
    steps = facts.step_rows[: int(ctx.params["min_steps"])]
    if len(steps) < ctx.params["min_steps"] or not len(convs):
        return []
    back = facts.in_steps(facts.ops("aten::convolution_backward"))
    # older torch nests the backward operators' names below one another: each kernel counts once
    work = distinct(facts.device_below_all(np.concatenate([convs, back])))
    took = total_ns(facts, counted_kernels(facts, work))
    if took < ctx.params["min_share"] * max(facts.kernel_ns, 1):
        return []
    row = facts.figures.step_of[convs]
    shapes = []
    for step in steps:
        near = convs[row == step][: int(ctx.params["look_at"])]
        facts.read_args(near)
        shapes.append([facts.dims(int(c)) for c in near])
    if not shapes[0] or not any(shapes[0]) or any(other != shapes[0] for other in shapes[1:]):
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "Convolutions of constant shapes: {share_pct:.0f} % of the kernel time",
            "cuDNN can measure its algorithms once for each shape and then use the fastest. Whether the program has "
            "that switched on is not in the trace; its shapes do not change from step to step, so it is worth a try.",
            Fix(
                "Let cuDNN search once, where that is not switched on yet.",
                "model = Net().cuda()",
                "torch.backends.cudnn.benchmark = True      # before the first step\nmodel = Net().cuda()",
                "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
                "The first step takes longer; results may differ in the last digits from run to run.",
            ),
            [
                evidence(facts, "Convolutions", len(convs), "", convs),
                evidence(facts, "Time of their kernels, with the backward pass", took / 1e6, "ms", convs),
            ],
            values={"share_pct": 100 * took / max(facts.kernel_ns, 1)},
            anchors=convs,
            at=-1,
            informational=True,
        )
    ]
