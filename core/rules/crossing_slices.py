"""Slices cross each other.

What it finds
-------------
Slices of one thread or stream that overlap without one holding the other, more than the given part of all.

Why it costs time
-----------------
Time of such slices cannot be split by nesting alone; here it is done by interval arithmetic.

Blind spots
-----------
A few are normal: steps and ranges across Python frames, kernels that overlap by microseconds.

How to fix
----------
Nothing need be done.

Sources
-------
perfetto#4280 and #6284; measured on recorded traces (43 of 115).
"""

from __future__ import annotations

from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion
from core.suggestions import Fix, Needs, Param, Rule, RuleContext, Suggestion
from core.tables import FLAG_CROSSING

RULE = Rule(
    id="crossing-slices",
    title="Slices cross each other",
    needs=Needs.NOTHING,
    params=(Param("min_share", 0.02, "share of the slices", "fewer are normal"),),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts, trace = facts_of(ctx), ctx.trace
    ids = (trace.slices.flags & FLAG_CROSSING).nonzero()[0]
    if len(ids) < max(ctx.params["min_share"] * len(trace.slices), 2):
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "{count} {count|slice crosses|slices cross} others of their row",
            "They are drawn on lanes of their own. Times 'inside' them are worked out from "
            "intervals, not from nesting.",
            Fix("Nothing need be done."),
            [evidence(facts, "Crossing slices", len(ids), "", ids)],
            values={"count": len(ids)},
            anchors=[],
            occurrences=1,
            at=-1,
            informational=True,
        )
    ]
