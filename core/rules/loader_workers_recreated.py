"""The loader starts its worker processes anew in every epoch.

What it finds
-------------
Python frames of ``_MultiProcessingDataLoaderIter.__init__`` more than once in the window.

Why it costs time
-----------------
Starting workers copies the data set object and imports the program again in each of them; the first batch of every
epoch comes late.

Blind spots
-----------
With one epoch in the window nothing can be said. Two different loaders (training, validation) each start workers of
their own.

How to fix
----------
``persistent_workers=True``.

Sources
-------
PyTorch's former pattern matcher (the same frames); PyTorch performance tuning guide.
"""

from __future__ import annotations

from core.kinds import SliceKind
from core.rule_tools.facts import facts_of
from core.rule_tools.loader import where_loader_is_made
from core.rule_tools.report import evidence, group_by_frame, suggestion, total_ns
from core.rule_tools.subjects import need
from core.suggestions import Effect, EffectKind, Fix, Needs, NotChecked, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="loader-workers-recreated",
    title="Loader workers are started anew",
    needs=Needs.STACKS,
    params=(Param("min_times", 2, "times", "once is the start of the program"),),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each loader that starts workers repeatedly."""
    facts = facts_of(ctx)
    made = facts.matching(r"torch/utils/data/dataloader\.py\(\d+\): _get_iterator", SliceKind.PYTHON)
    need(made, "no epoch begins in this recording. Record over the border of two epochs.")
    starts = facts.matching(
        r"(torch/utils/data/dataloader\.py\(\d+\): __init__)|(multiprocessing.*: start$)", SliceKind.PYTHON
    )
    made = made[[bool((starts > m).any() and (starts < ctx.trace.slices.subtree_end[m]).any()) for m in made]]
    if len(made) == 1:
        raise NotChecked("Only one epoch starts in this recording. Record over the border of two epochs.")
    out = []
    for ids in group_by_frame(ctx, facts, [int(m) for m in made]).values():
        if len(ids) < ctx.params["min_times"]:
            continue
        took = total_ns(facts, ids)
        within = [i for i in ids[1:] if facts.figures.step_of[i] >= 0]
        out.append(
            where_loader_is_made(
                ctx,
                suggestion(
                    ctx,
                    RULE.id,
                    "The loader's workers are started anew {count} {count|time|times}",
                    "Each time the loop over the loader begins, its workers are started again: {start_ms:time} "
                    "altogether in "
                    "this recording, and the first batch after it comes late.",
                    Fix(
                        "Keep the workers from epoch to epoch.",
                        "DataLoader(data, num_workers=4)",
                        "DataLoader(data, num_workers=4, persistent_workers=True)",
                        "https://pytorch.org/docs/stable/data.html",
                        "Workers keep their copy of the data set: changes made to it in the main process do not "
                        "reach them.",
                    ),
                    [
                        evidence(facts, "Starts", len(ids), "", ids),
                        evidence(facts, "Time spent starting", took / 1e6, "ms", ids),
                    ],
                    values={"count": len(ids), "start_ms": took / 1e6},
                    anchors=ids,
                    # between two epochs no step runs: the time of a step does not hold it, and the saving is unknown
                    effects=[Effect(EffectKind.REMOVE_WORK, tuple(within))] if within else [],
                    hint="call:enumerate,iter",
                ),
            )
        )
    return out
