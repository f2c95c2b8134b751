"""Kernels without a launch.

What it finds
-------------
A noticeable part of the GPU's work whose launch is not in the trace.

Why it costs time
-----------------
Such work cannot be charged to an operator or a line.

Blind spots
-----------
One graph launch owns hundreds of kernels and is no orphan. Work launched before the window began is normal at its
start.

How to fix
----------
Begin the recording between two steps; use a newer torch.

Sources
-------
pytorch/pytorch#192021; pytorch/kineto#996; pytorch/pytorch#186026.
"""

from __future__ import annotations

from core.kinds import HOST_CALLS
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion
from core.suggestions import Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="orphan-kernels",
    title="Kernels without a launch",
    needs=Needs.DEVICE,
    params=(
        Param("min_share", 0.05, "share of the GPU work", "a few at the window's border are normal"),
        Param("most_at_border", 0.2, "share of the GPU work", "more than that does not lie at a border"),
    ),
)
_URL = "https://pytorch.org/tutorials/recipes/recipes/profiler_recipe.html"
_BORDER = Fix("Begin the recording between two steps, with a newer torch.", url=_URL)
_MANY = Fix(
    "So much does not lie at the border of the recording: the calls that launched it, or what links them to it, "
    "were not recorded. Use a newer torch, and a newer profiler of this device.",
    url=_URL,
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts, trace = facts_of(ctx), ctx.trace
    work = trace.device_ids
    lost = work[trace.links.launch_of[work] < 0]
    if not len(lost) or len(lost) < ctx.params["min_share"] * len(work):
        return []
    has_calls = bool(len(facts.of_kind(*HOST_CALLS)))
    return [
        suggestion(
            ctx,
            RULE.id,
            "{count} of {of} pieces of GPU work have no recorded launch",
            "They cannot be charged to an operator or a line of code, and the replay does not know "
            "what they wait for. Calls of the CPU were recorded: {calls}.",
            _BORDER if len(lost) <= ctx.params["most_at_border"] * len(work) else _MANY,
            [evidence(facts, "GPU work without a launch", len(lost), "", lost)],
            values={"count": len(lost), "of": len(work), "calls": "yes" if has_calls else "no"},
            anchors=[],
            occurrences=1,
            at=-1,
            informational=True,
        )
    ]
