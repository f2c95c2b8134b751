"""The clocks of CPU and GPU disagree.

What it finds
-------------
Work that starts before the call that launched it, by more than the tolerance.

Why it costs time
-----------------
Gaps and waits around such work are wrong by as much.

Blind spots
-----------
Rounding of old recorders (a quarter of a microsecond) stays within the tolerance.

How to fix
----------
A newer driver and torch; a restart of the machine.

Sources
-------
PyTorch's trace validator (causality).
"""

from __future__ import annotations

from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion
from core.rule_tools.subjects import LAUNCHES, need
from core.suggestions import Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="clock-skew",
    title="Clocks disagree",
    needs=Needs.DEVICE,
    params=(
        Param("tolerance_us", 2, "us", "rounding of old recorders"),
        Param("min_share", 0.005, "share of the GPU work", "single ones may be damaged events"),
    ),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts, trace = facts_of(ctx), ctx.trace
    work = trace.device_ids
    launch = trace.links.launch_of[work]
    work, launch = work[launch >= 0], launch[launch >= 0]
    need(work, LAUNCHES)
    early = trace.slices.start_ns[launch] - trace.slices.start_ns[work]
    bad = early > ctx.params["tolerance_us"] * 1e3
    if int(bad.sum()) < max(ctx.params["min_share"] * len(work), 2):
        return []
    worst = float(early[bad].max()) / 1e3
    return [
        suggestion(
            ctx,
            RULE.id,
            "{count} GPU {count|slice starts|slices start} before their own launch",
            "The clocks of CPU and GPU are not aligned in this recording: times between the two are wrong by up to "
            "{worst_us:time}.",
            Fix("Record again with a newer driver and torch."),
            [evidence(facts, "Work that starts too early", int(bad.sum()), "", work[bad])],
            values={"count": int(bad.sum()), "worst_us": worst},
            anchors=[],
            occurrences=1,
            at=-1,
            informational=True,
        )
    ]
