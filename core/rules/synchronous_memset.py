"""A library clears memory with ``cudaMemset``.

What it finds
-------------
``cudaMemset`` (not ``cudaMemsetAsync``) inside a step that took noticeable time on the CPU.

Why it costs time
-----------------
On pinned host memory the call waits until the memory is cleared; on the legacy stream it also orders itself against
all other streams.

Blind spots
-----------
On device memory the call does not wait for the GPU, so it usually costs a launch and no more; then nothing is
reported.

How to fix
----------
``cudaMemsetAsync`` in the extension.

Sources
-------
NVIDIA Nsight Systems expert rule 'CUDA Synchronous Memset'; CUDA's page on synchronisation behaviour.
"""

from __future__ import annotations

import numpy as np

from core.kinds import HOST_CALLS
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="synchronous-memset",
    title="A memset call that waits is used",
    needs=Needs.DEVICE | Needs.CALLS,
    params=(Param("min_us", 50, "us", "longer than any launch: it must have waited"),),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report all calls together."""
    facts = facts_of(ctx)
    calls = facts.in_steps(facts.named(("cudaMemset", "cudaMemset2D", "hipMemset"), *HOST_CALLS))
    calls = calls[ctx.trace.slices.dur_ns[calls] >= ctx.params["min_us"] * 1e3]
    syncs = {int(c) for c in ctx.figures.syncs.slice_id}
    if not len(calls):
        return []
    took = total_ns(facts, calls)
    ops = sorted({ctx.trace.name(int(o)) for o in ctx.trace.links.op_of[calls] if o >= 0})
    return [
        suggestion(
            ctx,
            RULE.id,
            "`cudaMemset` holds the CPU up",
            "{count} {count|call|calls} took {took_ms:time} of CPU time. Owner: {owner}.",
            Fix(
                "Use cudaMemsetAsync on the current stream in the extension.",
                "cudaMemset(ptr, 0, n);",
                "cudaMemsetAsync(ptr, 0, n, at::cuda::getCurrentCUDAStream());",
                "https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html",
            ),
            [evidence(facts, "Calls", len(calls), "", calls), evidence(facts, "CPU time", took / 1e6, "ms", calls)],
            values={"count": len(calls), "took_ms": took / 1e6, "owner": ", ".join(ops) or "outside torch"},
            anchors=calls,
            effects=[Effect(EffectKind.REMOVE_WAIT, tuple(int(c) for c in calls))],
            informational=not bool(np.isin(calls, list(syncs)).any()),
        )
    ]
