"""The GPU memory is nearly full.

What it finds
-------------
A peak of allocated (or reserved) memory of at least nine tenths of the device's memory.

Why it costs time
-----------------
Near the limit the allocator frees and asks again, which waits for the GPU; the next larger input fails.

Blind spots
-----------
Reserved memory is more than is needed; other processes on the GPU are not in the trace.

How to fix
----------
Mixed precision, activation checkpointing, an optimizer with less state.

Sources
-------
torch-tb-profiler; PyTorch performance tuning guide, 'Checkpoint intermediate buffers'.
"""

from __future__ import annotations

import numpy as np

from core.rule_tools.facts import facts_of
from core.rule_tools.memory import slice_at
from core.rule_tools.report import evidence, suggestion
from core.rule_tools.subjects import GPU_MEMORY, need
from core.suggestions import Fix, Needs, NotChecked, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="memory-near-limit",
    title="Memory is nearly full",
    severity_floor="medium",
    needs=Needs.MEMORY,
    params=(Param("min_share", 0.9, "of the device's memory", "beyond it allocation starts to fail"),),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts, trace = facts_of(ctx), ctx.trace
    sizes = {d.index: d.total_memory_bytes for d in trace.meta.devices if d.total_memory_bytes}
    if not sizes:
        raise NotChecked("The trace does not say how much memory the GPU has.")
    memory = trace.memory
    need(bool((memory.device >= 0).any()), GPU_MEMORY)
    out: list[Suggestion] = []
    for device, size in sizes.items():
        mine = (memory.device == device).nonzero()[0].astype(np.int32)
        if not len(mine):
            continue
        used = np.maximum(memory.allocated_bytes[mine], memory.reserved_bytes[mine])
        peak = int(mine[np.argmax(used)])
        if used.max() < ctx.params["min_share"] * size:
            continue
        spot = slice_at(facts, int(memory.time_ns[peak]), int(memory.thread_id[peak]))
        out.append(
            suggestion(
                ctx,
                RULE.id,
                "GPU memory is {share_pct:.0f} % full at its peak",
                "At most {allocated_bytes:size} were in use and {reserved_bytes:size} held, of "
                "{size_bytes:size}. Near the "
                "limit, memory has to be given back and asked for again, and larger inputs fail.",
                Fix(
                    "Use less memory.",
                    "out = block(x)",
                    "out = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)      # or mixed precision",
                    "https://pytorch.org/docs/stable/checkpoint.html",
                    "Checkpointing computes the forward pass twice.",
                ),
                [
                    evidence(
                        facts, "Peak while this ran", int(used.max()), "bytes", [spot] if spot >= 0 else facts.work[:1]
                    )
                ],
                values={
                    "share_pct": 100 * float(used.max()) / size,
                    "allocated_bytes": float(memory.allocated_bytes[mine].max()),
                    "reserved_bytes": float(memory.reserved_bytes[mine].max()),
                    "size_bytes": float(size),
                },
                occurrences=1,
                at=spot,
            )
        )
    return out
