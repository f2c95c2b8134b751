"""Memory is pinned on the training thread, in the step.

What it finds
-------------
``aten::pin_memory`` (or ``cudaHostAlloc`` below it) on a thread that also launches the GPU's work.

Why it costs time
-----------------
Pinning asks the operating system to lock pages: it takes long and blocks the CPU.

Blind spots
-----------
The loader's own pin thread is the right place and is not reported. Reading a tensor after ``.to('cpu',
non_blocking=True)`` without waiting for an event is a fault too, but a trace cannot prove it.

How to fix
----------
Let the DataLoader pin, or pin one buffer once and reuse it.

Sources
-------
PyTorch tutorial on pinned memory ('pin_memory() blocks the host').
"""

from __future__ import annotations

from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, group_by_frame, suggestion, total_ns
from core.suggestions import Effect, EffectKind, Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(id="pinning-in-step", title="Memory is pinned in the step", needs=Needs.WAITS)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    facts = facts_of(ctx)
    pins = facts.in_steps(facts.ops("aten::pin_memory", "aten::_pin_memory"))
    pins = pins[~facts.inside(pins, facts.ops("aten::pin_memory"))]
    mine = [int(i) for i in pins[facts.on_launching_thread(pins)]]
    out = []
    for ids in group_by_frame(ctx, facts, mine).values():
        took = total_ns(facts, ids)
        out.append(
            suggestion(
                ctx,
                RULE.id,
                "Memory is pinned on the thread that launches work",
                "Pinning a tensor asks the operating system to lock its pages and blocks the CPU: {took_ms:time} for "
                "{count} {count|call|calls}. The DataLoader can do it on a thread of its own.",
                Fix(
                    "Let the DataLoader pin.",
                    "x = batch.pin_memory().to(device, non_blocking=True)",
                    "loader = DataLoader(data, pin_memory=True)\nx = batch.to(device, non_blocking=True)",
                    "https://pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
                    "Pinned memory cannot be swapped out.",
                ),
                [
                    evidence(facts, "Tensors pinned", len(ids), "", ids),
                    evidence(facts, "CPU time spent pinning", took / 1e6, "ms", ids),
                ],
                values={"count": len(ids), "took_ms": took / 1e6},
                anchors=ids,
                effects=[Effect(EffectKind.REMOVE_WORK, tuple(ids))],
                hint="call:pin_memory",
            )
        )
    return out
