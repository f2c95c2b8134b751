"""Memory grows from step to step.

What it finds
-------------
The least memory in use of each step, growing in every one of at least five steps.

Why it costs time
-----------------
Sooner or later the memory is full. Often a list keeps losses together with their graphs.

Blind spots
-----------
Three steps cannot decide it. Optimizer state appears in the first step. On a CPU, where the first step is left out,
four decide it if each adds about the same.

How to fix
----------
Keep numbers, not graphs: ``loss.detach()``.

Sources
-------
PyTorch FAQ, 'My model reports cuda runtime error(2): out of memory'.
"""

from __future__ import annotations

import re

import numpy as np

from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.memory import per_step
from core.rule_tools.report import evidence, suggestion
from core.suggestions import Fix, Needs, NotChecked, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="memory-creep",
    title="Memory grows",
    severity_floor="medium",
    needs=Needs.MEMORY | Needs.STEPS,
    params=(
        Param("min_steps", 5, "steps", "fewer cannot tell growth from noise"),
        Param("min_growth", 1e6, "bytes per step", "smaller growth is fragmentation"),
    ),
)
_LEAST_ALIKE, _ALIKE = 3, 1.05  # growths in a row, and the largest of them against the smallest


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts = facts_of(ctx)
    low = [(row, int(allocated.min())) for row, allocated, _ in per_step(facts) if len(allocated)]
    if low and (_number(facts, low[0][0]) < 2 or not bool((ctx.trace.memory.device >= 0).any())):
        # optimizer state appears in the first step of the program; on a CPU the profiler counts from its own start
        low = low[1:]
    growth = np.diff([value for _, value in low])
    # of five steps of a CPU four are left: they tell where each adds the same
    alike = len(growth) >= _LEAST_ALIKE and growth.min() > 0 and growth.max() <= _ALIKE * growth.min()
    if len(low) < ctx.params["min_steps"] and not alike:
        raise NotChecked(
            "Fewer than five steps hold memory events: growth cannot be told from noise. Record more steps."
        )
    steps = ctx.figures.steps
    shown = [int(steps.slice_id[r]) for r, _ in low if steps.slice_id[r] >= 0]
    if not shown or not bool((growth > 0).all()) or float(growth.mean()) < ctx.params["min_growth"]:
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "Memory grows by {growth_bytes:size} with every step",
            "Even the least memory in use grows from step to step, in {count} {count|step|steps} in a row. "
            "Something keeps tensors alive, "
            "most often a list of losses that keeps their graphs, too.",
            Fix(
                "Keep numbers, not graphs.",
                "losses.append(loss)",
                "losses.append(loss.detach())",
                "https://pytorch.org/docs/stable/notes/faq.html",
                "Detached tensors cannot be differentiated any more.",
            ),
            [evidence(facts, "Steps with growing memory", len(shown), "", shown)],
            values={"growth_bytes": float(growth.mean()), "count": len(low)},
            anchors=shown,
            at=-1,
        )
    ]


def _number(facts: Facts, row: int) -> int:
    """Number that the program gave to a step, 0 unknown."""
    slice_id = int(facts.figures.steps.slice_id[row])
    digits = re.search(r"#(\d+)$", facts.trace.name(slice_id)) if slice_id >= 0 else None
    return int(digits[1]) if digits else 0
