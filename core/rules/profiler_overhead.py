"""The profiler's own work takes a noticeable part of the recording.

What it finds
-------------
Slices of the profiler's overhead that take at least the given part of the window.

Why it costs time
-----------------
The program is faster without it: figures of the CPU's part are too high.

Blind spots
-----------
Stacks and shapes slow the CPU down without leaving such slices; only a run without the profiler shows by how much.

How to fix
----------
Record without stacks to see the pace, with stacks to see the lines.

Sources
-------
libkineto's names of overhead; pytorch/pytorch#62390.
"""

from __future__ import annotations

from core.kinds import SliceKind
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import need
from core.suggestions import Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="profiler-overhead",
    title="The profiler's own cost",
    needs=Needs.NOTHING,
    params=(Param("min_share", 0.02, "share of the recording", "less disturbs nothing"),),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts, trace = facts_of(ctx), ctx.trace
    own = facts.matching(
        r"Buffer Flush|Command Buffer Full|Activity Buffer Request|Instrumentation|Resource", SliceKind.OVERHEAD
    )
    need(facts.of_kind(SliceKind.OVERHEAD), "the profiler recorded nothing about its own work.")
    start, end = trace.span_ns
    took = total_ns(facts, own)
    if not took or took < ctx.params["min_share"] * max(end - start, 1):
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "The profiler itself took {share_pct:.0f} % of the recording",
            "The recorder paused the program for {took_ms:time} (pauses: {count}). Without the "
            "profiler the program is faster.",
            Fix(
                "Record fewer steps, without stacks and shapes, to see the pace.",
                "profile(with_stack=True, record_shapes=True, profile_memory=True)",
                "profile()      # the light form",
                "https://pytorch.org/tutorials/recipes/recipes/profiler_recipe.html",
            ),
            [evidence(facts, "Pauses of the recorder", len(own), "", own)],
            values={"share_pct": 100 * took / (end - start), "count": len(own), "took_ms": took / 1e6},
            anchors=[],
            occurrences=1,
            at=-1,
            informational=True,
        )
    ]
