"""The GPU is little used, and nothing on the CPU explains it.

What it finds
-------------
Use of the GPU below the threshold while no wait, no loader, no launching and no compiling accounts for most of the
idle time: the CPU was in Python outside any operator, or nothing recorded says where.

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

import numpy as np

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
        Param("min_work", 20, "pieces of GPU work", "fewer are an excerpt, not a program"),
    ),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report once."""
    facts = facts_of(ctx)
    busy = facts.busy_pct()
    gaps = ctx.figures.gaps
    if busy is None or busy >= ctx.params["max_busy_pct"] or not len(gaps):
        return []
    if len(facts.work) < ctx.params["min_work"]:
        return []
    inside = gaps.step_id >= 0
    length = (gaps.end_ns - gaps.start_ns)[inside]
    unknown = np.isin(gaps.cause[inside], (GapCause.UNKNOWN, GapCause.PYTHON))
    if len(facts.kernels) >= 20 and float(np.median(ctx.trace.slices.dur_ns[facts.kernels])) <= 25e3:
        return []  # short kernels: launching them is what takes the time, and that has a rule of its own
    if not length.sum() or length[unknown].sum() < ctx.params["min_unknown"] * length.sum():
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "The GPU is used only {busy_pct:.0f} % of the time, and no wait, loader or launch explains it",
            "Most of the idle time the CPU ran code outside any operator ({python_pct:.0f} % of it "
            "in Python as far as is "
            "known). Either that code is slow, or there is simply too little work per step.",
            Fix(
                "Move work out of the loop's Python code, or try a larger batch.",
                "DataLoader(data, batch_size=32)",
                "DataLoader(data, batch_size=128)      # and adapt the learning rate",
                "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
                "A larger batch changes training; memory grows with it.",
            ),
            [evidence(facts, "GPU work", len(facts.work), "", facts.work[:2000])],
            values={
                "busy_pct": busy,
                "python_pct": 100.0 * length[gaps.cause[inside] == GapCause.PYTHON].sum() / length.sum(),
            },
            occurrences=1,
        )
    ]
