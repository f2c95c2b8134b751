"""The first recorded step is warm-up.

What it finds
-------------
A first step that takes at least three times the median of the others, and far longer than any of them.

Why it costs time
-----------------
It costs nothing, but means that include it mislead.

Blind spots
-----------
A first step can be long for another reason: a loader that starts its workers, a checkpoint. With fewer than three
steps nothing can be said.

How to fix
----------
More ``wait`` and ``warmup`` in the profiler's schedule.

Sources
-------
schedule of the reference article; NVIDIA Nsight Systems leaves the initial gap out.
"""

from __future__ import annotations

from core import sets
from core.figures.lookup import view_of
from core.figures.rounds import loop_rounds
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion
from core.rule_tools.subjects import need
from core.suggestions import Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="warmup-captured",
    title="Warm-up is part of the recording",
    needs=Needs.STEPS,
    params=(
        Param("times", 3, "times the median", "steps of one loop differ less"),
        Param("alike", 1.5, "times the longest other step", "below it the first one does what that one does, too"),
    ),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts = facts_of(ctx)
    steps = ctx.figures.steps
    length = (steps.end_ns - steps.start_ns).astype(float)
    need(len(length) >= 3, "fewer than three steps were recorded. Record more steps.")
    need(not steps.inferred.any(), "no step is marked, and those worked out from other marks leave the start out.")
    median = sets.median(length[1:])
    paced, _ = loop_rounds(view_of(ctx.trace), ctx.figures, ctx.params["times"])
    if length[0] < ctx.params["times"] * median or not median or paced[0]:
        return []
    if length[0] < ctx.params["alike"] * length[1:].max():
        return []
    shown = [int(steps.slice_id[0])]
    return [
        suggestion(
            ctx,
            RULE.id,
            "The first step takes {times:.1f} times as long: it is warm-up",
            "It took {first_ms:time}, the others {median_ms:time} (median). Figures per step leave it out.",
            Fix(
                "Skip it in the schedule.",
                "schedule(wait=0, warmup=0, active=3)",
                "torch.profiler.schedule(wait=1, warmup=3, active=3)",
                "https://pytorch.org/tutorials/recipes/recipes/profiler_recipe.html",
            ),
            [evidence(facts, "The first step", length[0] / 1e6, "ms", shown)],
            values={"times": length[0] / median, "first_ms": length[0] / 1e6, "median_ms": median / 1e6},
            anchors=shown,
            occurrences=1,
            at=-1,
            informational=True,
        )
    ]
