"""cuDNN searches for the best algorithm again in every step.

What it finds
-------------
Waits on events inside ``aten::cudnn_convolution`` (or MIOpen's) in at least two counted steps: the sign of a
benchmark run.

Why it costs time
-----------------
With ``cudnn.benchmark`` every new input size is measured with several algorithms, each run on the GPU and waited for.

Blind spots
-----------
Whether the option is set is not in the trace. In the first steps the search is expected. With constant sizes it
happens once and pays off, so its absence is no fault to report.

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
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import need
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="algorithm-search-each-step",
    title="Algorithms are searched in every step",
    needs=Needs.WAITS | Needs.STEPS,
    params=(Param("min_steps", 2, "steps", "once per size is how it is meant to be"),),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report all searches together."""
    facts = facts_of(ctx)
    convs = facts.matching(r"^aten::(cudnn_convolution|miopen_convolution)", SliceKind.CPU_OP)
    need(convs, "the trace holds no convolution of cuDNN or MIOpen.")
    waits = facts.in_steps(facts.where(lambda n: "EventSynchronize" in n or "EventElapsedTime" in n, *HOST_CALLS))
    waits = waits[facts.inside(waits, convs)]
    owner = np.unique(facts.trace.links.op_of[waits]) if len(waits) else waits
    owner = owner[owner >= 0]
    if len(facts.rows_of(owner)) < ctx.params["min_steps"]:
        return []
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
