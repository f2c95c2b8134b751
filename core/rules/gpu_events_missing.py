"""Launches were recorded, but nothing of what the GPU did.

What it finds
-------------
Calls that launch work in the trace, and no kernel, copy or memset.

Why it costs time
-----------------
The use of the GPU is unknown then (not 0 %), and no wait can be weighed.

Blind spots
-----------
Drivers may refuse the counters to ordinary users; a second profiler may hold them; under WSL older versions cannot
record.

How to fix
----------
Record with ``ProfilerActivity.CUDA``; allow profiling (``NVreg_RestrictProfilingToAdminUsers=0``); end other
profilers.

Sources
-------
pytorch/pytorch#65393, #118982, #99615.
"""

from __future__ import annotations

from core.kinds import HOST_CALLS
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion
from core.rule_tools.subjects import need
from core.suggestions import Fix, Needs, NotChecked, Rule, RuleContext, Suggestion

RULE = Rule(id="gpu-events-missing", title="GPU events are missing", needs=Needs.NOTHING, params=())


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts, trace = facts_of(ctx), ctx.trace
    launches = facts.where(lambda n: "Launch" in n or "MemcpyAsync" in n, *HOST_CALLS)
    if trace.has_device_work:
        return []
    if trace.report.is_cut_off:
        raise NotChecked("The file ends early: the GPU's work may have come after the cut. Record or copy it again.")
    need(launches, "nothing in the trace starts work on a GPU, so it was recorded without one or without its activity.")
    return [
        suggestion(
            ctx,
            RULE.id,
            "The GPU's work is missing: {count} {count|call|calls} started some",
            "What the GPU did is unknown, so nothing can be said about its use or about waits. Most "
            "often the driver forbids profiling to ordinary users, or another profiler was running.",
            Fix(
                "Record again with the GPU's activity, and let the driver allow it.",
                "profile(activities=[ProfilerActivity.CPU])",
                "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])\n"
                "# /etc/modprobe.d/nvidia.conf:\n"
                "# options nvidia NVreg_RestrictProfilingToAdminUsers=0",
                "https://pytorch.org/tutorials/recipes/recipes/profiler_recipe.html",
            ),
            [evidence(facts, "Calls that start work on the GPU", len(launches), "", launches)],
            values={"count": len(launches)},
            anchors=launches,
            occurrences=1,
            at=-1,
            informational=True,
        )
    ]
