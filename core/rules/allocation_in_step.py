"""GPU memory is allocated or freed with the driver in the middle of steps.

What it finds
-------------
``cudaMalloc``, ``cudaFree``, ``cudaHostAlloc`` and their HIP forms, in at least two counted steps, one of them in the
second half.

Why it costs time
-----------------
``cudaFree`` waits for the whole GPU, ``cudaMalloc`` asks the driver; PyTorch keeps freed memory precisely to avoid
both.

Blind spots
-----------
Growth while a program warms up is normal, so calls must recur and still be made late. What is ordered by a stream
(``cudaMallocAsync``, ``cudaFreeAsync``) waits for nothing and is not counted.

How to fix
----------
Remove ``torch.cuda.empty_cache()``; constant shapes; ``expandable_segments``; allocate for the longest input first.

Sources
-------
PyTorch performance tuning guide, 'Preallocate memory in case of variable input length'; MindStudio's memory advice;
CUDA's page on synchronisation behaviour.
"""

from __future__ import annotations

import numpy as np

from core.kinds import HOST_CALLS
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import LAUNCHES, need
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="allocation-in-step",
    title="Memory is allocated with the driver in the step",
    needs=Needs.DEVICE | Needs.CALLS,
    params=(
        Param("min_steps", 2, "steps", "once is warm-up"),
        Param("min_calls", 8, "calls", "where one step or none is recorded: fewer can be the start of the program"),
    ),
)
_CALLS = r"^(cuda|hip)(Malloc(Managed|Pitch|3D)?|Free(Host)?|HostAlloc|MallocHost|HostMalloc|HostFree)$"


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report all such calls together."""
    facts, trace = facts_of(ctx), ctx.trace
    need(trace.links.launched_by, LAUNCHES)
    calls = facts.in_steps(facts.matching(_CALLS, *HOST_CALLS))
    calls = calls[~facts.inside(calls, facts.ops("aten::pin_memory"))]
    if not len(calls):
        return []
    pinning = np.isin(calls, facts.where(lambda n: "Host" in n, *HOST_CALLS))
    calls = calls[~pinning | facts.on_launching_thread(calls)]  # the loader's own thread may pin as it likes
    if not len(calls):
        return []
    started = np.sort(trace.slices.start_ns[trace.links.launched_by])
    calls = calls[trace.slices.start_ns[calls] > started[0]]  # before the first launch it is the program's start
    rows = facts.rows_of(calls)
    if facts.n_steps:
        late = max(rows, default=-1) >= int(facts.step_rows[len(facts.step_rows) // 2])  # else it has grown by then
        again = len(rows) >= min(ctx.params["min_steps"], facts.n_steps) and (facts.n_steps > 1 or len(calls) >= 8)
        if not (late and again):
            return []
    else:  # without steps, only what goes on in the second half is surely no warm-up
        calls = calls[trace.slices.start_ns[calls] >= started[len(started) // 2]]
        if len(calls) < ctx.params["min_calls"]:
            return []
    took = total_ns(facts, calls)
    freed = np.asarray([int(c) for c in calls if "Free" in trace.name(int(c))], dtype=np.int32)
    found = [
        evidence(facts, "Calls to the driver's allocator", len(calls), "", calls),
        evidence(facts, "CPU time inside them", took / 1e6, "ms", calls),
    ]
    if len(freed):
        found.append(evidence(facts, "of them, calls that free (and wait for the GPU)", len(freed), "", freed))
    return [
        suggestion(
            ctx,
            RULE.id,
            "Steps allocate GPU memory with the driver: {count} {count|call|calls}"
            if facts.n_steps
            else "GPU memory is still allocated with the driver: {count} {count|call|calls}",
            "PyTorch normally keeps the memory it has once allocated. Here the driver was asked "
            "{count} {count|time|times} ({freed} {freed|time|times} to free, which waits for the whole GPU), "
            "{took_ms:time} of CPU time. "
            "In a loop, the cause is usually torch.cuda.empty_cache(), or inputs whose size keeps growing; in the "
            "first iteration it is normal.",
            Fix(
                "Keep the memory.",
                "torch.cuda.empty_cache()      # in the training loop",
                "# remove it; for changing sizes, before the program starts:\n"
                "# PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                "https://pytorch.org/docs/stable/notes/cuda.html#memory-management",
                "Another process on the same GPU may have relied on the memory being given back.",
            ),
            found,
            values={"count": len(calls), "freed": len(freed), "took_ms": took / 1e6},
            anchors=calls,
            effects=[Effect(EffectKind.REMOVE_WORK, tuple(int(c) for c in calls))],
            informational=not facts.n_steps,  # a program that runs once has to allocate once
            hint="call:empty_cache",
        )
    ]
