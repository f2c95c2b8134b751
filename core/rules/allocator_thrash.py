"""The memory pool keeps growing and shrinking during the steps.

What it finds
-------------
Reserved memory that changes in at least three counted steps after the first.

Why it costs time
-----------------
Every change is a call to the driver; giving memory back waits for the GPU.

Blind spots
-----------
In the first epoch with inputs of varying size growth is normal. The calls themselves have a rule of their own
(allocation-in-step).

How to fix
----------
Inputs of a few fixed sizes; the longest first; ``expandable_segments``.

Sources
-------
PyTorch performance tuning guide, 'Preallocate memory in case of variable input length'.
"""

from __future__ import annotations

from core.rule_tools.facts import facts_of
from core.rule_tools.memory import per_step
from core.rule_tools.report import evidence, suggestion
from core.rule_tools.subjects import GPU_MEMORY, need
from core.suggestions import Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="allocator-thrash",
    title="The memory pool does not settle",
    severity_floor="medium",
    needs=Needs.MEMORY | Needs.STEPS,
    params=(Param("min_steps", 3, "steps", "a pool may grow once or twice"),),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts = facts_of(ctx)
    need(bool((ctx.trace.memory.device >= 0).any()), GPU_MEMORY)
    steps = ctx.figures.steps
    changed = []
    for row, _, reserved in per_step(facts):
        if len(reserved) > 1 and bool((reserved[1:] != reserved[:-1]).any()):
            changed.append(row)
    late = [row for row in changed if row > int(facts.step_rows.min(initial=0))]
    shown = [int(steps.slice_id[r]) for r in late if steps.slice_id[r] >= 0]
    if len(late) < ctx.params["min_steps"] or not shown:
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "The memory pool changes its size in {count} {count|step|steps}",
            "PyTorch's pool should settle after the first steps; here the driver is asked for "
            "memory, or given some back, again "
            "and again. Usually the inputs change their size.",
            Fix(
                "Keep sizes constant, or let segments grow.",
                "loader = DataLoader(texts, collate_fn=pad_to_longest)",
                "loader = DataLoader(texts, collate_fn=pad_to_bucket)      # a few fixed lengths\n"
                "# PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                "https://pytorch.org/docs/stable/notes/cuda.html#memory-management",
                "Padding computes a little more.",
            ),
            [evidence(facts, "Steps in which the pool changed", len(shown), "", shown)],
            values={"count": len(late)},
            anchors=shown,
            at=-1,
        )
    ]
