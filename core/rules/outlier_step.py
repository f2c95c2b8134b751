"""One step does something else: a checkpoint, an evaluation, a log.

What it finds
-------------
A step of at least twice the median length that is not the first, and such steps that come back after every so many;
with stacks, the checkpoints and evaluations that ran in it, and in none of the others, are named: frames of
``torch.save``, of ``Module.eval``, or of functions called evaluate or validate.

Why it costs time
-----------------
It costs time once, not in every step; means that include it mislead. One that comes back is part of the loop: the
means include it, and what it does is worth as much as it takes.

Blind spots
-----------
A slow batch or another process on the machine looks alike. A step that only waits for work queued before it, while the
device keeps its pace, is none.

How to fix
----------
Leave it out of the comparison; do the extra work less often.

Sources
-------
measured on recorded traces.
"""

from __future__ import annotations

import numpy as np

from core.figures.lookup import view_of
from core.figures.rounds import loop_rounds
from core.figures.steps import far, keeps_pace, update_rounds
from core.kinds import SliceKind
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.report import evidence, suggestion
from core.rule_tools.subjects import need
from core.suggestions import Fix, Needs, Param, Rule, RuleContext, Suggestion
from core.tables import I32

RULE = Rule(
    id="outlier-step",
    title="One step is different",
    needs=Needs.STEPS,
    params=(Param("times", 2, "times the median", "ordinary steps differ less"),),
)

_AGAIN = "One step in {every} takes at least {times:.0f} times as long as the others"
_LEAVE_OUT = "Leave them out of comparisons; write checkpoints less often or on another thread."
_LESS_OFTEN = "Evaluate, log or write checkpoints less often, or on another thread."
_SAVES = r"torch[/\\]serialization\.py\(\d+\): (save|_save)$"
_EVALUATES = r"torch[/\\]nn[/\\]modules[/\\]module\.py\(\d+\): eval$|\(\d+\): _?(evaluate|validate|validation)(_\w+)?$"


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts = facts_of(ctx)
    steps = ctx.figures.steps
    length = (steps.end_ns - steps.start_ns).astype(float)
    need(len(length) >= 4, "fewer than four steps tell no outlier. Record more steps.")
    median = float(np.median(length))
    own = ctx.figures.step_figures
    paced = keeps_pace(steps, own.period_ns, own.device_end_ns, own.sync_wait_ns, ctx.params["times"])
    paced |= update_rounds(view_of(ctx.trace), steps, ctx.figures.step_of, ctx.params["times"])[0]
    again, _ = loop_rounds(view_of(ctx.trace), ctx.figures, ctx.params["times"])
    longer = (length >= ctx.params["times"] * median) | (
        again & far(steps.end_ns - steps.start_ns, ctx.params["times"])
    )
    rows = np.flatnonzero(longer & ~paced).tolist()
    recurring = len(rows) > 1 and bool(again[rows].all())
    rows = rows if recurring else [r for r in rows if r]
    shown = [int(steps.slice_id[r]) for r in rows if steps.slice_id[r] >= 0]
    if not shown or (len(rows) > len(length) // 3 and not recurring):
        return []
    saved, evaluated = (_only_in(facts, facts.matching(what, SliceKind.PYTHON), rows) for what in (_SAVES, _EVALUATES))
    return [
        suggestion(
            ctx,
            RULE.id,
            _AGAIN
            if recurring
            else "{count} {count|step takes|steps take} at least {times:.0f} times as long as the others",
            "The longest took {longest_ms:time}, the median is {median_ms:time}. Checkpoints written in them: {saves}; "
            "evaluations: {evaluations}.",
            Fix(_LESS_OFTEN if recurring else _LEAVE_OUT),
            [
                evidence(facts, "Long steps", len(shown), "", shown),
                *([evidence(facts, "Checkpoints", len(saved), "", saved)] if len(saved) else []),
                *([evidence(facts, "Evaluations", len(evaluated), "", evaluated)] if len(evaluated) else []),
            ],
            values={
                "count": len(shown),
                "every": int(rows[1] - rows[0]) if recurring else 0,
                "times": ctx.params["times"],
                "longest_ms": length[rows].max() / 1e6,
                "median_ms": median / 1e6,
                "saves": len(saved),
                "evaluations": len(evaluated),
            },
            anchors=shown,
            occurrences=1,
            at=-1,
            informational=True,
        )
    ]


def _only_in(facts: Facts, frames: I32, rows: list[int]) -> I32:
    """int32[k]: the outermost of these frames that run in the long steps; none where others have such frames, too."""
    frames = frames[~facts.inside(frames, frames)]
    row = facts.figures.step_of[frames]
    long = np.isin(row, rows)
    return frames[long] if not (~long & (row >= 0)).any() else frames[:0]
