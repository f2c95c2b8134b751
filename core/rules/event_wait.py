"""The CPU waits for a GPU event.

What it finds
-------------
``cudaEventSynchronize`` (or HIP's) without an operator above it. ``cudaEventQuery`` only asks and is never counted.

Why it costs time
-----------------
The CPU stops until the event has happened on the GPU.

Blind spots
-----------
A watchdog of a communication library waits on a thread of its own; it holds nobody up. Waiting on an event of one
step before is good practice and costs little.

How to fix
----------
Read the event one step later; measure not every step but every N.

Sources
-------
NVIDIA Nsight Systems expert rule 'CUDA Synchronization APIs'; measured on recorded traces (DDP timing).
"""

from __future__ import annotations

from core.rule_tools.report import SyncTexts, sync_suggestions
from core.suggestions import EffectKind, Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(id="event-wait", title="The CPU waits for an event", needs=Needs.DEVICE | Needs.CALLS)

TEXTS = SyncTexts(
    title="The CPU waits for an event: `{call}`",
    why=(
        "`{call}` stops the CPU until the GPU has reached an event. It is often a time measurement (`elapsed_time`) "
        "read too early."
    ),
    fix=Fix(
        summary="Read the event one step later.",
        before="end.record()\nend.synchronize()\nms = start.elapsed_time(end)",
        after=(
            "end.record()\n"
            "# in the next step, when it is long over:\n"
            "if previous is not None:\n"
            "    ms = previous[0].elapsed_time(previous[1])\n"
            "previous = (start, end)"
        ),
        url="https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        risk="The time read is that of the step before.",
    ),
    effect=EffectKind.REMOVE_WAIT,
    hint="call:synchronize",
    on_op=False,
    once_is_note=True,
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    return sync_suggestions(ctx, RULE.id, TEXTS)
