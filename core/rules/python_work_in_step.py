"""Python code outside any operator takes a good part of the step, where the CPU computes.

What it finds
-------------
The function of the user's with most time outside operators, its libraries' included and torch's own left out, where
that is a good part of the step. Only where no GPU computes and stacks were recorded: Python code that idles a GPU is
`gpu-underfed`.

Why it costs time
-----------------
While Python works on numbers, lists or text one by one, no operator runs: the cores that operators use are idle. The
same work on whole tensors or arrays takes a fraction of that, and in the loader's workers it runs beside the step.

Blind spots
-----------
Recording takes time for every Python call, so that many short calls look longer than they are. What the function waits
for (a file, a network, a lock) looks like work.

How to fix
----------
Do it on whole tensors or arrays, once before the loop, or beside the step in the loader's workers.

Sources
-------
PyTorch performance tuning guide; inferred from programs that compute on the CPU.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from core.rule_tools.copies import model_copies
from core.rule_tools.environments import is_of_environment
from core.rule_tools.facts import facts_of
from core.rule_tools.host_functions import HeldTime, longest_function, place_of
from core.rule_tools.report import evidence, suggestion
from core.sets import among, distinct
from core.suggestions import Effect, EffectKind, Fix, Needs, NotChecked, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="python-work-in-step",
    title="Python code holds up the operators",
    needs=Needs.STEPS | Needs.OPS | Needs.STACKS,
    params=(
        Param("min_of_step", 0.1, "share of the step", "less is not worth another form of the program"),
        Param(
            "min_each_us", 20, "us per call", "of one around operators: less is the calls' own cost, recording's most"
        ),
        Param("min_line", 0.3, "share of the function's time", "in one thing that it calls: its line is shown"),
        Param("min_in_one", 0.6, "share of the function's time", "less in calls without operators, and none is priced"),
    ),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report the function that holds most."""
    facts = facts_of(ctx)
    if ctx.trace.has_device_work:
        raise NotChecked("A GPU computes in this trace: `gpu-underfed` is about Python code that idles it.")
    facts.require_compute()
    found = longest_function(ctx, facts)
    if found is None or found.held_ns < ctx.params["min_of_step"] * facts.window_ns:
        return []
    if is_of_environment(facts, found.alone):
        return []
    longest = int(found.calls[np.argmax(ctx.trace.slices.dur_ns[found.calls])])
    place, function = place_of(ctx.trace, longest)
    alone = found.alone if found.alone_ns >= ctx.params["min_in_one"] * found.held_ns else found.alone[:0]
    if not len(alone) and found.held_ns < 1e3 * ctx.params["min_each_us"] * len(found.calls):
        return []
    made = suggestion(
        ctx,
        RULE.id,
        "Python code of {function} takes {share_pct:.0f} % of the step",
        "In {place} the CPU runs code outside any operator for {each_ms:time} a step, {share_pct:.0f} % of it: the "
        "code of the function itself and of what it calls, torch left out. Most of that, {chief_pct:.0f} %, is "
        "the own time of {chief}. {frames:.0f} Python {frames|call is|calls are} recorded in it per step; recording "
        "takes time, so that many short calls look longer than they are.",
        Fix(
            "Do it on whole tensors or arrays, once before the loop, or beside the step in the loader's workers.",
            "for row in rows:\n    out.append(math.sqrt(abs(row.sum())))",
            "out = rows.sum(dim=1).abs().sqrt()\n"
            "# or in worker processes: DataLoader(data, collate_fn=prepare, num_workers=4)",
            "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
            "What runs beside the step must not depend on its result, and needs a core that the operators do not use.",
        ),
        [
            evidence(facts, "Calls of this function", len(found.calls), "", found.calls),
            evidence(facts, "Time outside operators per step", facts.per_step(found.held_ns) / 1e6, "ms", found.calls),
        ],
        values={
            "place": place,
            "function": function,
            "each_ms": facts.per_step(found.held_ns) / 1e6,
            "share_pct": 100.0 * found.held_ns / max(facts.window_ns, 1),
            "chief": found.chief[:60],
            "chief_pct": 100.0 * found.chief_ns / max(found.held_ns, 1),
            "frames": facts.per_step(len(found.frames_in)),
        },
        anchors=found.calls,
        at=longest,
        effects=[Effect(EffectKind.SCALE_HOST, tuple(alone.tolist()), 0.0, assumed=True)] if len(alone) else [],
    )
    called = _most_of(ctx, found)
    if called in model_copies(facts):
        return []  # a rule of its own tells of it
    if called >= 0:
        made = replace(made, source=ctx.source.of_slice(called, is_call=True) or made.source)
    return [made if made.effects else replace(made, costs_ns=facts.per_step(found.held_ns))]


def _most_of(ctx: RuleContext, found: HeldTime) -> int:
    """The longest frame that the function calls, of the name that takes a good part of its time; -1 for none."""
    sl = ctx.trace.slices
    below = np.concatenate([found.alone, found.frames_in])
    below = distinct(below[among(sl.parent_id[below], found.calls)])
    if not len(below):
        return -1
    took = np.bincount(sl.name_id[below], weights=sl.dur_ns[below])
    if took.max() < ctx.params["min_line"] * found.held_ns:
        return -1
    of_name = below[sl.name_id[below] == took.argmax()]
    return int(of_name[np.argmax(sl.dur_ns[of_name])])
