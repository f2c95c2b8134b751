"""The first or last step is cut off.

What it finds
-------------
A first or last step with less than half of the median number of kernels, and those before such a last one whose device
work was not written either.

Why it costs time
-----------------
It costs nothing, but means that include it mislead.

Blind spots
-----------
Steps that differ by design (accumulation, evaluation) look alike, but not only at the border.

How to fix
----------
Nothing need be done: the step is left out of the means.

Sources
-------
torch-tb-profiler's event parser; pytorch/pytorch#192021.
"""

from __future__ import annotations

from itertools import takewhile

from core import sets
from core.figures.steps import UNWRITTEN
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion
from core.rule_tools.subjects import need
from core.suggestions import Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="steps-truncated",
    title="A step is cut off",
    needs=Needs.DEVICE | Needs.STEPS,
    params=(Param("min_share", 0.5, "of the median kernels", "a cut step has far fewer"),),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts = facts_of(ctx)
    kernels = ctx.figures.step_figures.kernels
    need(len(kernels) >= 3, "fewer than three steps were recorded. Record more steps.")
    median = sets.median(kernels[kernels > 0]) if kernels.any() else 0.0
    cut = [row for row in (0, len(kernels) - 1) if kernels[row] < ctx.params["min_share"] * median]
    if cut and cut[-1] > 0:  # where the CPU ran ahead when the recording ended, the work of several is missing
        before = range(len(kernels) - 2, 0, -1)
        cut += takewhile(lambda row: ctx.figures.step_figures.why_not[row] == UNWRITTEN, before)
    shown = [int(ctx.figures.steps.slice_id[row]) for row in cut if ctx.figures.steps.slice_id[row] >= 0]
    if not shown:
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "The recording cuts off {count} {count|step|steps} at its border",
            "Much of {count|its|their} device work is missing: a usual step has {median:.0f} kernels. Figures per step "
            "leave {count|it|them} out.",
            Fix("Nothing need be done.", "", "", "https://pytorch.org/tutorials/recipes/recipes/profiler_recipe.html"),
            [evidence(facts, "Cut steps", len(shown), "", shown)],
            values={"count": len(shown), "median": median},
            anchors=shown,
            occurrences=1,
            at=-1,
            informational=True,
        )
    ]
