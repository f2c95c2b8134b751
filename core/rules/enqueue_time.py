"""The marked steps measure only how fast work is queued.

What it finds
-------------
A CPU that runs ahead of the GPU: work of a step ends later and later after the step itself.

Why it costs time
-----------------
``ProfilerStep`` then says how long it takes to queue a step, not to do it; the true pace is that of the GPU.

Blind spots
-----------
In a short recording the queue may never fill, and the lag still grows at its end.

How to fix
----------
Compare sustained step times, not ``ProfilerStep``.

Sources
-------
pytorch/kineto#747 (30 ms measured, 200 ms shown).
"""

from __future__ import annotations

from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion
from core.suggestions import Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(id="enqueue-time", title="Steps measure queueing only", needs=Needs.DEVICE | Needs.STEPS, params=())


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts = facts_of(ctx)
    s = ctx.figures.summary
    if not s.enqueue_bound:
        return []
    rows = [int(r) for r in facts.step_rows]
    shown = [int(ctx.figures.steps.slice_id[r]) for r in rows if ctx.figures.steps.slice_id[r] >= 0]
    device = s.sustained_step_ns or s.period_ns or s.device_step_ns  # copies ahead of their step stretch the last
    if not shown or not device or not s.step_ns:
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "A step of {host_ms:time} only queues {device_ms:time} of work",
            "The CPU runs ahead: a marked step of {host_ms:time} is only the time to queue the work. "
            "The CPU does not wait for the GPU, so the marked step ends before its work is done. The "
            "pace of the loop is that of the GPU, {device_ms:time} per step.",
            Fix("Compare the sustained step time instead."),
            [evidence(facts, "Marked steps", len(shown), "", shown)],
            values={"host_ms": s.step_ns / 1e6, "device_ms": device / 1e6},
            anchors=shown,
            occurrences=len(shown),
            at=-1,
            informational=True,
        )
    ]
