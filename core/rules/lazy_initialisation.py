"""The window holds the start-up of CUDA or its libraries.

What it finds
-------------
Very long single calls that set up a context or load code (``cudaDeviceGetStreamPriorityRange``,
``cuLibraryLoadData``, ``cudaFree(0)``, a first launch), or overhead slices of lazy loading.

Why it costs time
-----------------
It costs time once, not in every step: figures that include it mislead.

Blind spots
-----------
This is no fault of the program; it is a warning about the recording.

How to fix
----------
Give the profiler's schedule some warm-up steps.

Sources
-------
libkineto's names of overhead; measured on recorded traces (29.9 s in one call).
"""

from __future__ import annotations

import numpy as np

from core.kinds import HOST_CALLS, GapCause, SliceKind
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import need
from core.sets import among
from core.suggestions import Fix, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="lazy-initialisation",
    title="The recording holds start-up",
    params=(
        Param("min_ms", 20, "ms", "a call that only launches never takes as long"),
        Param("min_share", 0.05, "share of the recording", "less does not disturb the figures"),
    ),
)
_SETUP = (
    r"^(cudaDeviceGetStreamPriorityRange|cudaGetDeviceCount|cudaSetDevice|cudaFuncGetAttributes|cudaGetDeviceProperties.*"
    r"|cuLibraryLoadData|cuModuleLoad.*|cuInit|cuDevicePrimaryCtxRetain|hipModuleLoad.*|hipInit|cudaStreamCreate.*"
    r"|cudaOccupancyMax.*|cudaFuncSetAttribute|cudaLaunchKernel|cudaLaunchKernelExC|cuLaunchKernel|hipLaunchKernel"
    r"|cudaHostAlloc|cudaMalloc|cudaEventCreate.*)$"
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts, trace = facts_of(ctx), ctx.trace
    sl = trace.slices
    calls = facts.matching(_SETUP, *HOST_CALLS)
    calls = calls[sl.dur_ns[calls] >= ctx.params["min_ms"] * 1e6]
    launches = facts.where(lambda n: "Launch" in n, *HOST_CALLS)
    if len(launches):  # a launch can also be long because the queue is full: only the first ones are start-up
        early = np.sort(sl.start_ns[launches])[: max(len(launches) // 20, 1)][-1]
        calls = calls[~among(calls, launches) | (sl.start_ns[calls] <= early)]
    loading = facts.matching(r"Lazy Function Loading|Runtime Triggered Module Loading", SliceKind.OVERHEAD)
    seen = bool(len(loading) or len(facts.of_kind(*HOST_CALLS)))
    need(seen, "the trace holds no calls to a GPU's runtime.")
    shown = np.concatenate([calls, loading])
    if not len(shown):
        return []
    gaps = facts.figures.gaps  # the device may wait longer for code than single long calls show
    waited = int((gaps.end_ns - gaps.start_ns)[gaps.cause == int(GapCause.COMPILE)].sum())
    took = max(total_ns(facts, shown), waited)
    start, end = trace.span_ns
    if took < ctx.params["min_share"] * max(end - start, 1) and took < 1e9:
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "The recording holds {took_ms:time} of one-time start-up",
            "Calls set up the GPU or loaded its code ({count} of them). That is paid once per "
            "program and says nothing about a step; "
            "figures that include it mislead.",
            Fix(
                "Warm up before recording.",
                "with torch.profiler.profile() as prof: ...",
                "schedule = torch.profiler.schedule(wait=2, warmup=3, active=3)\n"
                "with torch.profiler.profile(schedule=schedule) as prof: ...",
                "https://pytorch.org/tutorials/recipes/recipes/profiler_recipe.html",
            ),
            [evidence(facts, "Calls that start something up", len(shown), "", shown)],
            values={"took_ms": took / 1e6, "count": len(shown)},
            anchors=[int(i) for i in shown],
            informational=True,
        )
    ]
