"""One rank is slower, and the others wait for it.

What it finds
-------------
With several ranks open: the same collective starts much later on one rank than on the others, again and again.

Why it costs time
-----------------
All ranks leave a collective together, so all run at the pace of the slowest.

Blind spots
-----------
Clocks of several machines differ: the arrival is compared by the collective's duration, which is short on the rank
that came last. What the others lose is the time in which they do nothing beside their collectives, less that of the
slow rank. Sends and receives of a pipeline are left out: their two ends do different things.

How to fix
----------
Give the ranks equal work.

Sources
-------
HolisticTraceAnalysis; PyTorch performance tuning guide, 'Load-balance workload'.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from core.figures.lookup import view_of
from core.figures.steps import step_source
from core.rule_tools.collective_kinds import POINT_TO_POINT, kinds_of
from core.rule_tools.communication import collectives_by_rank, exposed_ns
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion
from core.rule_tools.subjects import need
from core.suggestions import Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="straggler",
    title="A rank is slower",
    needs=Needs.DEVICE | Needs.RANKS,
    params=(Param("min_share", 0.05, "share of the recording", "of waiting for the slow rank"),),
)

_LONGER = 1.05  # times as long: less is no difference to speak of
_LONGER_STEPS = (
    "The marked steps of rank {other} are the longer ones, {other_ms:time} against {own_ms:time}: they include its "
    "waiting."
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts, trace = facts_of(ctx), ctx.trace
    ranks = collectives_by_rank(facts)
    ranks = {r: ids[kinds_of(facts, ids) != POINT_TO_POINT] for r, ids in ranks.items()}
    ranks = {r: ids for r, ids in ranks.items() if len(ids)}
    need(len(ranks) >= 2, "fewer than two of the open ranks hold communication between GPUs.")
    n = min(len(ids) for ids in ranks.values())
    order = sorted(ranks)
    names = [[trace.name(int(i)) for i in ranks[r][:n]] for r in order]
    same = np.asarray([len({row[i] for row in names}) == 1 for i in range(n)])
    length = np.stack([trace.slices.dur_ns[ranks[r][:n]] for r in order])[:, same]
    need(bool(length.size), "the ranks have no communication in common.")
    wait = length - length.min(axis=0)
    slow = int(np.argmin(wait.sum(axis=1)))
    # A device that computes beside a collective loses nothing, nor does any by what the slow rank needs for it, too.
    exposed = np.asarray([exposed_ns(facts, ranks[r][:n][same]).sum() for r in order], dtype=np.float64)
    lost = max(0.0, float(np.delete(exposed, slow).mean() - exposed[slow]))
    start, end = trace.span_ns
    if lost < ctx.params["min_share"] * max(end - start, 1):
        return []
    ids = np.concatenate([ranks[r][:n][same] for r in order])
    found = suggestion(
        ctx,
        RULE.id,
        "Rank {rank} is the slowest: the others wait {lost_ms:time} for it",
        "In {count} {count|collective|collectives} rank {rank} arrives last (its own part of them is the shortest), "
        "and the other ranks wait in them. All ranks run at its pace.",
        Fix(
            "Give the ranks equal work: inputs of like length, as many batches for each, no logging or saving on "
            "one rank only.",
            url="https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
            risk="A slow machine looks the same as uneven work.",
        ),
        [evidence(facts, "Collectives compared", int(same.sum()), "", ids)],
        values={"rank": order[slow], "lost_ms": lost / 1e6, "count": int(same.sum())},
        occurrences=int(same.sum()),
        at=-1,
    )
    steps_ns = _steps_by_rank(ctx)
    longest, own_ns = max(steps_ns, key=lambda r: steps_ns[r], default=order[slow]), steps_ns.get(order[slow], 0.0)
    if own_ns and steps_ns[longest] > _LONGER * own_ns:
        shown = {"other": longest, "other_ms": steps_ns[longest] / 1e6, "own_ms": own_ns / 1e6}
        found = replace(found, values={**found.values, **shown}, more=(*found.more, _LONGER_STEPS))
    steps = len(ctx.figures.steps) / len(ranks)
    return [replace(found, costs_ns=lost / max(steps, 1.0))]


def _steps_by_rank(ctx: RuleContext) -> dict[int, float]:
    """Mean length of each rank's counted steps, ns."""
    steps, processes = ctx.figures.steps, ctx.trace.processes
    source = step_source(view_of(ctx.trace), steps)
    out: dict[int, float] = {}
    for rank, of in zip(processes.rank.tolist(), processes.source_id.tolist(), strict=True):
        mine = (source == of) & ctx.figures.step_figures.counted
        if rank >= 0 and mine.any():
            out[rank] = float((steps.end_ns - steps.start_ns)[mine].mean())
    return out
