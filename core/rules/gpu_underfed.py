"""The GPU is little used, and nothing on the CPU explains it.

What it finds
-------------
A Python function that launches nothing and idles the GPU for a good part of the step; where no stacks were recorded,
the place between two operators in which that happens. Else use of the GPU below the threshold while no wait, no
loader, no launching and no compiling accounts for most of the idle time: the CPU was in Python outside any operator,
or nothing recorded says where.

Why it costs time
-----------------
A GPU that is given small pieces of work is idle between them. Where Python was recorded, the function in which most of
that time passes is named: the deepest one that still holds most of it.

Blind spots
-----------
Other tools give this advice for every cause of idleness; here every other cause is excluded first, so it is rare.

How to fix
----------
Do what the named function does beside the step: in the loader's workers, on a thread that prepares the next batch, once
before the loop, or on the GPU. Otherwise a larger batch (with the learning rate adapted), or several batches at once.

Sources
-------
torch-tb-profiler's utilisation advice; NVIDIA Nsight Systems expert rule 'GPU Utilization'.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from core import sets
from core.figures.lookup import of_kinds
from core.intervals import coverage, union
from core.kinds import GapCause, SliceKind
from core.rule_tools.environments import is_of_environment
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.host_functions import place_of
from core.rule_tools.report import evidence, suggestion
from core.sets import among, distinct
from core.suggestions import Effect, EffectKind, Fix, Needs, NotChecked, Param, Rule, RuleContext, Suggestion
from core.tables import I32

RULE = Rule(
    id="gpu-underfed",
    title="The GPU has too little to do",
    needs=Needs.DEVICE | Needs.STEPS,
    params=(
        Param("max_busy_pct", 50, "% of the time", "the threshold of torch-tb-profiler"),
        Param("min_unknown", 0.6, "share of the idle time", "less, and another cause explains it"),
        Param("min_work", 20, "pieces of GPU work", "fewer are an excerpt, not a program"),
        Param("min_in_one", 0.6, "share of the idle time in Python", "a function that holds less is not the cause"),
        Param("min_gap_us", 200, "us", "between two launches; in shorter pauses no single function idles the GPU"),
        Param("min_of_step", 0.1, "share of the step", "a function that launches nothing and idles the GPU so long"),
    ),
)
_NAMED_TITLE = "The GPU works {busy_pct:.0f} % of the time: the CPU is in {function}"
_IN_PYTHON = (
    "The GPU is used only {busy_pct:.0f} % of the time, and no wait, loader or launch explains it. For most of the "
    "idle time the CPU ran code outside any operator, {python_pct:.0f} % of it in Python. Either that code is slow, "
    "or there is simply too little work per step."
)
_ANYWHERE = (
    "The GPU is used only {busy_pct:.0f} % of the time, and no wait, loader or launch explains it. For most of the "
    "idle time the CPU ran code outside any operator; which, the recording does not tell. Either that code is "
    "slow, or there is simply too little work per step."
)
_NAMED_WHY = (
    "The GPU is used {busy_pct:.0f} % of the time: in the rest the CPU is in Python, mostly in {place}. "
    "For {python_pct:.0f} % of the GPU's idle time the CPU ran Python code outside any operator, {each_ms:time} per "
    "step in {place} alone ({share_pct:.0f} % of it): nothing is queued until that code is "
    "done. The saving assumes that it is done beside the step."
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report once."""
    facts = facts_of(ctx)
    busy = facts.busy_pct()
    gaps = ctx.figures.gaps
    if busy is None:
        raise NotChecked("The use of the GPU is unknown in this trace.")
    if len(facts.work) < ctx.params["min_work"] or not len(gaps):
        return []
    inside = gaps.step_id >= 0
    length = (gaps.end_ns - gaps.start_ns)[inside]
    unknown = of_kinds(gaps.cause[inside], (GapCause.UNKNOWN, GapCause.PYTHON))
    values: dict[str, Any] = {
        "busy_pct": busy,
        "python_pct": 100.0 * length[gaps.cause[inside] == int(GapCause.PYTHON)].sum() / max(length.sum(), 1),
    }
    named = _function_that_holds_most(ctx, facts)
    if named is not None and is_of_environment(facts, named[0]):
        return []  # a rule of its own
    if named is not None and _idles_the_gpu_alone(ctx, facts, named):
        return [_named(ctx, facts, named, values)]
    if not len(facts.of_kind(SliceKind.PYTHON)) and (found := _between_operators(ctx, facts, values)) is not None:
        return [found]
    if busy >= ctx.params["max_busy_pct"]:
        return []
    if len(facts.kernels) >= 20 and sets.median(ctx.trace.slices.dur_ns[facts.kernels]) <= 25e3:
        return []  # short kernels: launching them is what takes the time, and that has a rule of its own
    if not length.sum() or length[unknown].sum() < ctx.params["min_unknown"] * length.sum():
        return []
    if named is not None:
        return [_named(ctx, facts, named, values)]
    return [
        suggestion(
            ctx,
            RULE.id,
            "The GPU works only {busy_pct:.0f} % of the time, for no clear reason",
            _IN_PYTHON if values["python_pct"] >= 1 else _ANYWHERE,
            Fix(
                "Move work out of the loop's Python code, or try a larger batch.",
                "DataLoader(data, batch_size=32)",
                "DataLoader(data, batch_size=128)      # and adapt the learning rate",
                "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
                "A larger batch changes training; memory grows with it.",
            ),
            [evidence(facts, "GPU work", len(facts.work), "", facts.work[:2000])],
            values=values,
            occurrences=1,
        )
    ]


def _named(ctx: RuleContext, facts: Facts, named: tuple[I32, int, int], values: dict[str, Any]) -> Suggestion:
    """The suggestion where one Python function holds most of the idle time."""
    frames, held_ns, python_ns = named
    quiet = _quiet(ctx, frames)
    longest = int(frames[np.argmax(ctx.trace.slices.dur_ns[frames])])
    place, function = place_of(ctx.trace, longest)
    return suggestion(
        ctx,
        RULE.id,
        _NAMED_TITLE,
        _NAMED_WHY,
        Fix(
            "Do this work beside the step: in the loader's workers, on a thread that prepares the next batch, once "
            "before "
            "the loop, or on the GPU. Many small Python operations become fewer with torch.compile or CUDA graphs.",
            "for batch in batches:\n    out = model(prepare(batch))",
            "# prepare runs in worker processes while the GPU computes the batch before\n"
            "for x in DataLoader(batches, collate_fn=prepare, num_workers=4, pin_memory=True):\n"
            '    out = model(x.to("cuda", non_blocking=True))',
            "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
            "What runs beside the step must not depend on its result; each worker needs a CPU core and memory.",
        ),
        [
            evidence(facts, "Calls of this function", len(frames), "", frames),
            evidence(facts, "GPU idle during them", held_ns / 1e6, "ms", frames),
            evidence(facts, "GPU work", len(facts.work), "", facts.work[:2000]),
        ],
        values=values
        | {
            "place": place,
            "function": function,
            "each_ms": facts.per_step(held_ns) / 1e6,
            "share_pct": 100.0 * held_ns / max(python_ns, 1),
        },
        anchors=frames,
        at=longest,
        effects=[Effect(EffectKind.SCALE_HOST, tuple(quiet.tolist()), 0.0, assumed=True)] if len(quiet) else [],
    )


def _between_operators(ctx: RuleContext, facts: Facts, values: dict[str, Any]) -> Suggestion | None:
    """The suggestion where the GPU idles in long pauses between operators, and no stacks say what the CPU did."""
    gaps, sl = ctx.figures.gaps, ctx.trace.slices
    rows = ((gaps.cause == int(GapCause.PYTHON)) & (gaps.step_id >= 0)).nonzero()[0]
    rows = rows[facts.use_steps[gaps.step_id[rows]]]
    length = gaps.end_ns[rows] - gaps.start_ns[rows]
    rows, length = (one[length >= 1e3 * ctx.params["min_gap_us"]] for one in (rows, length))
    held_ns = union(gaps.start_ns[rows], gaps.end_ns[rows]).total_ns
    if held_ns < ctx.params["min_of_step"] * facts.window_ns:
        return None
    longest = int(rows[np.argmax(length)])
    middle = int(gaps.start_ns[longest] + gaps.end_ns[longest]) // 2
    of_thread = facts.of_kind(SliceKind.CPU_OP)
    of_thread = of_thread[sl.parent_id[of_thread] < 0]
    of_thread = of_thread[
        ctx.trace.tracks.thread_id[sl.track_id[of_thread]] == ctx.figures.steps.thread_id[gaps.step_id[longest]]
    ]
    over, to_come = of_thread[ctx.trace.end_ns[of_thread] <= middle], of_thread[sl.start_ns[of_thread] >= middle]
    if not len(over) or not len(to_come):
        return None
    blamed = distinct(gaps.blame_id[rows][gaps.blame_id[rows] >= 0])
    before, after = int(over[np.argmax(ctx.trace.end_ns[over])]), int(to_come[np.argmin(sl.start_ns[to_come])])
    return suggestion(
        ctx,
        RULE.id,
        "The GPU idles {each_ms:time} per step: what the CPU does then was not recorded",
        "The GPU works {busy_pct:.0f} % of the time. For {each_ms:time} per step it has nothing to do because the CPU "
        "is in code outside any operator; the longest such time lies between {before} and {after}. Without stacks "
        "nothing tells which function that is.",
        Fix(
            "Record with stacks: the function is then named, with what it costs.",
            "with profile() as prof:",
            "with profile(with_stack=True) as prof:",
            "https://pytorch.org/tutorials/recipes/recipes/profiler_recipe.html",
            "Stacks slow the CPU down: use them to find the place, not to measure the pace.",
        ),
        [
            evidence(facts, "GPU idle in long pauses between operators", held_ns / 1e6, "ms", [before, after]),
            evidence(facts, "Pauses", len(rows), "", blamed[:400] if len(blamed) else [before, after]),
        ],
        values=values
        | {
            "each_ms": facts.per_step(held_ns) / 1e6,
            "before": ctx.trace.name(before),
            "after": ctx.trace.name(after),
        },
        anchors=blamed if len(blamed) else [before, after],
        at=-1,
        occurrences=len(rows),
    )


def _quiet(ctx: RuleContext, frames: I32) -> I32:
    """Those of the calls in which nothing is launched."""
    launches = np.sort(ctx.trace.slices.start_ns[ctx.trace.links.launched_by])
    start, end = ctx.trace.slices.start_ns[frames], ctx.trace.end_ns[frames]
    quiet: I32 = frames[launches.searchsorted(start) == launches.searchsorted(end)]
    return quiet


def _idles_the_gpu_alone(ctx: RuleContext, facts: Facts, named: tuple[I32, int, int]) -> bool:
    """Whether the function launches nothing and idles the GPU for a good part of the step, however busy it is else."""
    frames, held_ns, _ = named
    return len(_quiet(ctx, frames)) == len(frames) and held_ns >= ctx.params["min_of_step"] * facts.window_ns


def _function_that_holds_most(ctx: RuleContext, facts: Facts) -> tuple[I32, int, int] | None:
    """Calls of the deepest function that holds most of the idle time in Python, that time, and all of it, ns."""
    gaps, sl, tracks = ctx.figures.gaps, ctx.trace.slices, ctx.trace.tracks
    rows = ((gaps.cause == int(GapCause.PYTHON)) & (gaps.step_id >= 0) & (gaps.blame_id >= 0)).nonzero()[0]
    rows = rows[facts.use_steps[gaps.step_id[rows]]]
    frames = facts.of_kind(SliceKind.PYTHON)
    if not len(rows) or not len(frames):
        return None
    blamed = tracks.thread_id[sl.track_id[gaps.blame_id[rows]]]
    thread = int(np.bincount(blamed[blamed >= 0]).argmax()) if (blamed >= 0).any() else -1
    frames = frames[tracks.thread_id[sl.track_id[frames]] == thread]
    idle = union(gaps.start_ns[rows], gaps.end_ns[rows])
    held = coverage(idle, sl.start_ns[frames], ctx.trace.end_ns[frames])
    total = np.bincount(sl.name_id[frames], weights=held)
    wanted = (total >= max(ctx.params["min_in_one"] * idle.total_ns, 1)).nonzero()[0]
    if not len(wanted):
        return None
    mine = frames[among(sl.name_id[frames], wanted) & (held > 0)]
    heads = {int(name): int(mine[(sl.name_id[mine] == name).nonzero()[0][0]]) for name in wanted}
    deepest = max(heads, key=lambda name: len(facts.ancestors(heads[name])))
    found: I32 = mine[sl.name_id[mine] == deepest]
    return found, min(int(total[deepest]), idle.total_ns), idle.total_ns
