"""Stacks were asked for, but are not there.

What it finds
-------------
A header that says ``with_stack`` and a trace without Python frames.

Why it costs time
-----------------
Without stacks no suggestion can name a line.

Blind spots
-----------
Some versions of torch on Python 3.11 and 3.12 lose them. Stacks of old torch (on the operators) count as present.

How to fix
----------
A newer torch.

Sources
-------
pytorch/pytorch#100253, #121219, #117515.
"""

from __future__ import annotations

from core.call_stacks import has_call_stacks
from core.kinds import SliceKind
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion
from core.rule_tools.subjects import need
from core.suggestions import Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(id="stacks-missing", title="Stacks are missing", needs=Needs.OPS, params=())


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts, trace = facts_of(ctx), ctx.trace
    if len(facts.of_kind(SliceKind.PYTHON)):
        return []
    need(bool(trace.meta.with_stack), "the trace does not say that stacks were asked for (with_stack=True).")
    ops = facts.of_kind(SliceKind.CPU_OP)
    if has_call_stacks(trace):
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "Stacks were asked for, but this recording holds none",
            "torch {version} did not write any. Without them no line of code can be named.",
            Fix(
                "Record with a newer torch.",
                "",
                "pip install --upgrade torch",
                "https://pytorch.org/tutorials/recipes/recipes/profiler_recipe.html",
            ),
            [evidence(facts, "Operators without a stack", len(ops), "", ops[:2000])],
            values={"version": trace.meta.torch_version or "of an unknown version"},
            anchors=[],
            occurrences=1,
            at=-1,
            informational=True,
        )
    ]
