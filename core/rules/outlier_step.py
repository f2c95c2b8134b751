"""One step does something else: a checkpoint, an evaluation, a log.

What it finds
-------------
A step of at least twice the median length that is not the first, and such steps that come back after every so many;
with stacks, the checkpoints and evaluations that ran in it, and in none of the others, are named: frames of
``torch.save``, of ``Module.eval``, or of functions called evaluate or validate. So is the function, range, operator
or call that took most of the time beside what it takes in other steps. Checkpoints that ordinary steps write again and
again are a suggestion of their own.

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

from core import sets
from core.figures.lookup import view_of
from core.figures.rounds import loop_rounds, waits_for_batches
from core.figures.steps import far, keeps_pace, update_rounds
from core.kinds import HOST_CALLS, SliceKind
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import need
from core.source_frames import parse_frame
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion
from core.tables import I32

RULE = Rule(
    id="outlier-step",
    title="One step is different",
    needs=Needs.STEPS,
    params=(
        Param("times", 2, "times the median", "ordinary steps differ less"),
        Param("alike", 1.5, "times the longest other step", "a longer first one is the start of the program"),
        Param("min_saving", 0.05, "share of the time", "checkpoints of the loop; below it they are a good insurance"),
    ),
)

_FEWEST = 4  # steps
_AGAIN = "One step in {every} takes at least {times:.0f} times as long as the others"
_LONGER = "{count} {count|step takes|steps take} at least {times:.0f} times as long as the others"
_BY = "{count} {count|step takes|steps take} far longer than the others, most of it in {what}"
_WHY = (
    "The longest took {longest_ms:time}, the median is {median_ms:time}; what {count|it takes|they take} beside that "
    "is {share_pct:.0f} % of all steps. Checkpoints written in them: {saves}; evaluations: {evaluations}."
)
_WHY_BY = (
    "The longest took {longest_ms:time}, the median is {median_ms:time}; what {count|it takes|they take} beside that "
    "is {share_pct:.0f} % of all steps, and most of that is {what}. Checkpoints written in them: {saves}; evaluations: "
    "{evaluations}."
)
_MOST = 0.6  # of the time beside an ordinary step: what takes as much of it is named
_MOST_ROWS = 64  # long steps that are looked into
_NAMED = (SliceKind.PYTHON, SliceKind.RANGE, SliceKind.CPU_OP, *HOST_CALLS, SliceKind.GC)
_LEAVE_OUT = "Leave them out of comparisons; write checkpoints less often or on another thread."
_LESS_OFTEN = "Evaluate, log or write checkpoints less often, or on another thread."
_SAVES = r"torch[/\\]serialization\.py\(\d+\): (save|_save)$"
_EVALUATES = r"torch[/\\]nn[/\\]modules[/\\]module\.py\(\d+\): eval$|\(\d+\): _?(evaluate|validate|validation)(_\w+)?$"


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once, and what checkpoints cost that belong to the loop."""
    facts = facts_of(ctx)
    saving = _checkpoints(ctx, facts)
    return [*saving, *_different(ctx, facts)] if not saving or len(ctx.figures.steps) >= _FEWEST else saving


def _checkpoints(ctx: RuleContext, facts: Facts) -> list[Suggestion]:
    """The card about checkpoints that counted steps write again and again."""
    saves = facts.matching(_SAVES, SliceKind.PYTHON)
    saves = facts.in_steps(saves[~facts.inside(saves, saves)])
    took = total_ns(facts, saves)
    if len(saves) < 2 or took < ctx.params["min_saving"] * facts.window_ns:
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "Writing checkpoints takes {share_pct:.0f} % of the CPU's step",
            "`torch.save` runs {count} {count|time|times} in {steps} {steps|step|steps}, {each_ms:time} each time, and "
            "the loop waits for it. The saving assumes that checkpoints are written seldom, or beside the loop.",
            Fix(
                "Write checkpoints less often, or a copy of the parameters on another thread.",
                "torch.save(model.state_dict(), path)            # in each step",
                "if step % 1000 == 0:\n    torch.save(model.state_dict(), path)",
                "https://pytorch.org/docs/stable/distributed.checkpoint.html",
                "Where the program ends early, what was learnt since the last checkpoint is lost.",
            ),
            [
                evidence(facts, "Checkpoints", len(saves), "", saves),
                evidence(facts, "Time in them per step", facts.per_step(took) / 1e6, "ms", saves),
            ],
            values={
                "share_pct": 100.0 * took / max(facts.window_ns, 1),
                "count": len(saves),
                "steps": facts.n_steps,
                "each_ms": took / len(saves) / 1e6,
            },
            anchors=saves,
            at=int(saves[0]),
            effects=[Effect(EffectKind.REMOVE_WORK, tuple(saves.tolist()), assumed=True)],
        )
    ]


def _different(ctx: RuleContext, facts: Facts) -> list[Suggestion]:
    """The note about steps that do something else."""
    steps = ctx.figures.steps
    length = (steps.end_ns - steps.start_ns).astype(float)
    need(len(length) >= _FEWEST, "fewer than four steps tell no outlier. Record more steps.")
    median = sets.median(length)
    own = ctx.figures.step_figures
    paced = keeps_pace(steps, own.period_ns, own.device_end_ns, own.sync_wait_ns, ctx.params["times"])
    paced |= update_rounds(view_of(ctx.trace), steps, ctx.figures.step_of, ctx.params["times"])[0]
    paced |= waits_for_batches(view_of(ctx.trace), steps, ctx.figures.step_of, ctx.params["times"])
    again, _ = loop_rounds(view_of(ctx.trace), ctx.figures, ctx.params["times"])
    longer = (length >= ctx.params["times"] * median) | (
        again & far(steps.end_ns - steps.start_ns, ctx.params["times"])
    )
    rows = (longer & ~paced).nonzero()[0].tolist()
    recurring = len(rows) > 1 and bool(again[rows].all())
    alike = len(rows) > 1 and length[0] < ctx.params["alike"] * length[rows[1:]].max()  # no start of the program, then
    rows = rows if recurring or alike else [r for r in rows if r]
    shown = [int(steps.slice_id[r]) for r in rows if steps.slice_id[r] >= 0]
    if not shown or (len(rows) > len(length) // 3 and not recurring):
        return []
    took = _took(facts, rows)
    saved, evaluated = (_only_in(facts, facts.matching(what, SliceKind.PYTHON), rows) for what in (_SAVES, _EVALUATES))
    return [
        suggestion(
            ctx,
            RULE.id,
            _AGAIN if recurring else (_BY if len(took) else _LONGER),
            _WHY_BY if len(took) else _WHY,
            Fix(_LESS_OFTEN if recurring else _LEAVE_OUT),
            [
                evidence(facts, "Long steps", len(shown), "", shown),
                *([evidence(facts, "Took most of it", len(took), "", took)] if len(took) else []),
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
                "what": _spoken(facts.trace.name(int(took[0]))) if len(took) else "",
                "share_pct": 100.0 * (length[rows] - median).sum() / length.sum(),
            },
            anchors=shown,
            occurrences=1,
            at=int(took[0]) if len(took) else -1,
            informational=True,
        )
    ]


def _only_in(facts: Facts, frames: I32, rows: list[int]) -> I32:
    """int32[k]: the outermost of these frames that run in the long steps; none where others have such frames, too."""
    frames = frames[~facts.inside(frames, frames)]
    row = facts.figures.step_of[frames]
    long = np.isin(row, rows)
    return frames[long] if not (~long & (row >= 0)).any() else frames[:0]


def _spoken(name: str) -> str:
    """A frame by its function, anything else by its name."""
    frame = parse_frame(name)
    return frame.function if frame is not None else name


def _took(facts: Facts, rows: list[int]) -> I32:
    """int32[k]: the slices of one name that took most of the time that these steps take beside the others.

    Of several that did, the outermost of those that the others have not; else the innermost. Empty where there is none.
    """
    figures, slices = facts.figures, facts.trace.slices
    others = np.setdiff1d(figures.step_figures.counted.nonzero()[0], rows)
    if not len(others):
        return np.zeros(0, dtype=np.int32)
    rows = rows[:_MOST_ROWS]
    length = figures.steps.end_ns - figures.steps.start_ns
    needed = _MOST * (float(length[rows].mean()) - float(length[others].mean()))
    ids = facts.of_kind(*_NAMED)
    row = figures.step_of[ids]
    own = (row >= 0) & (view_of(facts.trace).thread[ids] == figures.steps.thread_id[np.maximum(row, 0)])
    ids, row = ids[own], row[own]
    _, name = np.unique(slices.name_id[ids], return_inverse=True)
    long, usual = np.isin(row, rows), np.isin(row, others)
    took = np.bincount(name, weights=np.where(long, slices.dur_ns[ids], 0)) / len(rows)
    took -= np.bincount(name, weights=np.where(usual, slices.dur_ns[ids], 0)) / len(others)
    most = (took >= needed).nonzero()[0]
    if not len(most):
        return np.zeros(0, dtype=np.int32)
    whole = np.bincount(name, weights=np.where(long, slices.dur_ns[ids], 0))[most] / len(rows)
    extra = np.bincount(name, weights=~long)[most] == 0
    extra &= float(length[rows].mean()) - whole >= sets.median(length[others]) / 2  # no step's own name
    one = most[extra][whole[extra].argmax()] if extra.any() else most[whole.argmin()]
    found: I32 = ids[long & (name == one)]
    longest_first: I32 = found[(-slices.dur_ns[found]).argsort(kind="stable")][:_MOST_ROWS]
    return longest_first
