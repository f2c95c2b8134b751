"""``torch.compile`` breaks the program into pieces, or compiles again and again.

What it finds
-------------
Several compiled regions of growing first number one after the other in one step (graph breaks), with what the GPU idles
between them; regions whose second
number grows, or compilation inside late steps (recompiles).

Why it costs time
-----------------
Each break returns to Python and cuts what could be fused; each recompilation takes seconds.

Blind spots
-----------
Compiling in the first steps is expected; those are left out. Several separately compiled functions look like breaks:
only regions of one step that follow each other directly are counted.

How to fix
----------
``TORCH_LOGS=graph_breaks,recompiles`` names the lines; mark changing sizes as dynamic; remove read-backs, which break
graphs too.

Sources
-------
PyTorch's compiler documentation; the reference article on a loss function with seven faults.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from core.intervals import coverage, union
from core.kinds import SliceKind
from core.rule_tools.compiled import COMPILING, REGION
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import COMPILED, need
from core.sets import distinct
from core.suggestions import Effect, EffectKind, Fix, Param, Rule, RuleContext, Suggestion
from core.tables import I32

RULE = Rule(
    id="graph-break-or-recompile",
    title="Graph breaks or recompilation",
    params=(
        Param("min_breaks", 3, "regions per step", "two can be two models"),
        Param("min_idle", 0.01, "share of the step", "what the GPU idles between regions; less, and they are a note"),
        Param("min_recompiles", 2, "versions", "a function has at least one version"),
    ),
)
_IDLE = (
    "Between the regions of a step the GPU idles {idle_ms:time} per step, {idle_pct:.0f} % of it: that is what the "
    "cuts cost at most."
)
URL = "https://pytorch.org/docs/stable/torch.compiler_troubleshooting.html"


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report breaks and recompilations."""
    facts = facts_of(ctx)
    kinds = (SliceKind.CPU_OP, SliceKind.RANGE)
    compiling = facts.matching(COMPILING, SliceKind.PYTHON, *kinds)
    need(bool(len(facts.matching(REGION, *kinds)) or len(compiling)), COMPILED)
    return [*_recompiles(ctx), *_breaks(ctx)]


def _numbers(name: str) -> tuple[int, int]:
    match = re.search(r"(\d+)/(\d+)", name)
    return (int(match[1]), int(match[2])) if match else (-1, -1)


def _breaks(ctx: RuleContext) -> list[Suggestion]:
    facts = facts_of(ctx)
    regions = facts.in_steps(facts.matching(REGION, SliceKind.CPU_OP, SliceKind.RANGE))
    frames = {_numbers(ctx.trace.name(int(r)))[0] for r in regions} - {-1}
    if len(frames) < ctx.params["min_breaks"]:
        return []
    idle_ns = _idle_between(facts, regions)
    costs = idle_ns >= ctx.params["min_idle"] * facts.window_ns
    made = suggestion(
        ctx,
        RULE.id,
        "torch.compile has cut the program into {frames} pieces",
        "Compiled code runs as {frames} separate regions, {count} {count|call|calls} altogether. Between two "
        "of them Python takes "
        "over, and nothing is fused across. Different models compiled one by one look the same.",
        Fix(
            "Find what breaks the graph, and remove it.",
            "model = torch.compile(model)",
            "# names each break and its line:\n# TORCH_LOGS=graph_breaks python train.py\n"
            "model = torch.compile(model, fullgraph=True)     # raises at the first break",
            URL,
        ),
        [evidence(facts, "Compiled regions", len(regions), "", regions)],
        values={"frames": len(frames), "count": len(regions)},
        anchors=regions,
        informational=not costs,
    )
    if not costs:
        return [made]
    values = {"idle_ms": facts.per_step(idle_ns) / 1e6, "idle_pct": 100.0 * idle_ns / max(facts.window_ns, 1)}
    return [replace(made, values={**made.values, **values}, more=(_IDLE,), costs_ns=facts.per_step(idle_ns))]


def _idle_between(facts: Facts, regions: I32) -> int:
    """Time in which the GPU idles between two compiled regions of one step that follow each other, ns."""
    sl, trace, gaps = facts.trace.slices, facts.trace, facts.figures.gaps
    regions = regions[~facts.inside(regions, regions)]
    thread = trace.tracks.thread_id[sl.track_id[regions]]
    order = np.lexsort((sl.start_ns[regions], thread))
    regions, thread = regions[order], thread[order]
    step, start, end = facts.figures.step_of[regions], sl.start_ns[regions], trace.end_ns[regions]
    follows = (thread[1:] == thread[:-1]) & (step[1:] == step[:-1]) & (start[1:] > end[:-1])
    between = union(end[:-1][follows], start[1:][follows])
    idle = coverage(between, gaps.start_ns, gaps.end_ns)
    return int(idle.sum()) // max(len(distinct(gaps.device)), 1)  # of several devices the mean


def _recompiles(ctx: RuleContext) -> list[Suggestion]:
    facts = facts_of(ctx)
    late = facts.in_steps(facts.matching(COMPILING, SliceKind.PYTHON, SliceKind.CPU_OP, SliceKind.RANGE))
    if facts.n_steps:
        rows = facts.figures.step_of[late]
        late = late[rows > int(facts.step_rows.min(initial=0))]
    late = late[~facts.inside(late, late)]
    versions: dict[int, set[int]] = {}
    regions = facts.matching(REGION, SliceKind.CPU_OP, SliceKind.RANGE)
    for region in regions:
        frame, version = _numbers(ctx.trace.name(int(region)))
        versions.setdefault(frame, set()).add(version)
    many = {f for f, v in versions.items() if f >= 0 and len(v) >= ctx.params["min_recompiles"]}
    if not len(late) and not many:
        return []
    shown = (
        late
        if len(late)
        else np.asarray([int(r) for r in regions if _numbers(ctx.trace.name(int(r)))[0] in many], dtype=np.int32)
    )
    effects = [Effect(EffectKind.REMOVE_WORK, tuple(int(i) for i in late))] if len(late) else []
    return [
        suggestion(
            ctx,
            RULE.id,
            "torch.compile compiles again while the program runs"
            if len(late)
            else "torch.compile has made several versions of {functions} {functions|function|functions}",
            "{functions} compiled {functions|function exists|functions exist} in several versions, and {count} "
            "{count|compilation lies|compilations lie} inside later steps "
            "({took_ms:time}). A version is made when an input does not fit the assumptions of the "
            "one before, usually "
            "because a size has changed.",
            Fix(
                "Tell the compiler what changes, or keep it constant.",
                "model = torch.compile(model)",
                "# names each reason:\n# TORCH_LOGS=recompiles python train.py\n"
                "torch._dynamo.mark_dynamic(x, 0)      # the batch size varies",
                URL,
            ),
            [evidence(facts, "Compilations or versions", len(shown), "", shown)],
            values={"functions": len(many), "count": len(late), "took_ms": total_ns(facts, late) / 1e6},
            anchors=shown,
            effects=effects,
            informational=not len(late),  # they were made before, and choosing between them costs next to nothing
        )
    ]
