"""The GPU is little used, and nothing on the CPU explains it.

What it finds
-------------
Use of the GPU below the threshold while no wait, no loader, no launching and no compiling accounts for the idle time.

Why it costs time
-----------------
A GPU that is given small pieces of work is idle between them.

Blind spots
-----------
Other tools give this advice for every cause of idleness; here every other cause is excluded first, so it is rare.

How to fix
----------
A larger batch (with the learning rate adapted), or several batches at once.

Sources
-------
torch-tb-profiler's utilisation advice; NVIDIA Nsight Systems expert rule 'GPU Utilization'.
"""

from __future__ import annotations

from core.kinds import GapCause
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion
from core.suggestions import Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="gpu-underfed",
    title="The GPU has too little to do",
    needs=Needs.DEVICE | Needs.STEPS,
    params=(
        Param("max_busy_pct", 50, "% of the time", "the threshold of torch-tb-profiler"),
        Param("min_unknown", 0.6, "share of the idle time", "less, and another cause explains it"),
    ),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report once."""
    facts = facts_of(ctx)
    busy = facts.busy_pct()
    gaps = ctx.figures.gaps
    if busy is None or busy >= ctx.params["max_busy_pct"] or not len(gaps):
        return []
    inside = gaps.step_id >= 0
    length = (gaps.end_ns - gaps.start_ns)[inside]
    unknown = gaps.cause[inside] == GapCause.UNKNOWN
    if not length.sum() or length[unknown].sum() < ctx.params["min_unknown"] * length.sum():
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "The GPU is used only {busy_pct:.0f} % of the time, and nothing recorded on the CPU explains it",
            "No wait, no loader and no launching accounts for most of the idle time. Usually there "
            "is simply too little "
            "work per step.",
            Fix(
                "Try a larger batch.",
                "DataLoader(data, batch_size=32)",
                "DataLoader(data, batch_size=128)      # and adapt the learning rate",
                "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
                "A larger batch changes training; memory grows with it.",
            ),
            [evidence(facts, "GPU work", len(facts.work), "", facts.work[:2000])],
            values={"busy_pct": busy},
            occurrences=1,
        )
    ]
