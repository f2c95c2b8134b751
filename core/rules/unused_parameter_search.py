"""DDP looks for unused parameters in every step.

What it finds
-------------
Python frames of the search for unused parameters in the forward pass of ``DistributedDataParallel``.

Why it costs time
-----------------
Before each backward pass the whole graph is walked through.

Blind spots
-----------
Where parameters are really unused the search is needed.

How to fix
----------
``find_unused_parameters=False``.

Sources
-------
PyTorch performance tuning guide, 'Match the order of layers'; DDP documentation.
"""

from __future__ import annotations

from core.kinds import SliceKind
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import PARALLEL, need
from core.suggestions import Effect, EffectKind, Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(id="unused-parameter-search", title="Unused parameters are searched", needs=Needs.STACKS, params=())


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts = facts_of(ctx)
    parallel = facts.matching(r"^DistributedDataParallel\.forward", SliceKind.RANGE, SliceKind.CPU_OP)
    need(bool(len(parallel) or len(facts.matching(r"parallel/distributed\.py", SliceKind.PYTHON))), PARALLEL)
    frames = facts.in_steps(
        facts.matching(
            r"parallel/distributed\.py\(\d+\): (_find_tensors|search_unused_parameters)$|search_unused_parameters",
            SliceKind.PYTHON,
        )
    )
    frames = frames[~facts.inside(frames, frames)]
    if not len(frames) or (facts.n_steps > 1 and len(facts.rows_of(frames)) < 2):
        return []  # a static graph is searched once
    return [
        suggestion(
            ctx,
            RULE.id,
            "DDP searches the graph for unused parameters each step",
            "DDP walks through the whole graph in every step to find unused parameters. "
            "{count} {count|search|searches} took {took_ms:time} of CPU time in Python alone. They are only "
            "needed where some parameters get "
            "no gradient.",
            Fix(
                "Switch the search off.",
                "DistributedDataParallel(model, find_unused_parameters=True)",
                "DistributedDataParallel(model, find_unused_parameters=False)",
                "https://pytorch.org/docs/stable/notes/ddp.html",
                "With parameters that really get no gradient, the backward pass then hangs or fails.",
            ),
            [evidence(facts, "Searches", len(frames), "", frames)],
            values={"count": len(frames), "took_ms": total_ns(facts, frames) / 1e6},
            anchors=frames,
            effects=[Effect(EffectKind.REMOVE_WORK, tuple(int(f) for f in frames))],
        )
    ]
