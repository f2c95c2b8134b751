"""The batch is pinned, but the copy waits all the same: ``non_blocking`` was forgotten.

What it finds
-------------
A copy to the device from pinned memory with a blocking call in the same ``aten::copy_``; on ROCm, where the copy does
not say whether its memory was pinned, any copy that waited (``hipMemcpyWithStream``).

Why it costs time
-----------------
From pinned memory the copy could run by itself; without ``non_blocking=True`` PyTorch waits for its end.

Blind spots
-----------
With ``non_blocking=True`` there is no wait below the copy, and nothing is reported.

How to fix
----------
``non_blocking=True``.

Sources
-------
PyTorch tutorial on pinned memory; PyTorch performance tuning guide.
"""

from __future__ import annotations

from core.rule_tools.report import SyncTexts, sync_suggestions
from core.suggestions import EffectKind, Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(id="blocking-pinned-copy", title="A pinned copy waits", needs=Needs.WAITS)

TEXTS = SyncTexts(
    title="A copy to the GPU holds the CPU until it ends",
    why=(
        "From pinned memory a copy runs by itself, but this call waits for its end, because non_blocking was not set."
    ),
    fix=Fix(
        summary="Copy from pinned memory without waiting.",
        before="x = x.to(device)",
        after=(
            "loader = DataLoader(data, pin_memory=True)     # where it is not pinned yet\n"
            "x = x.to(device, non_blocking=True)"
        ),
        url="https://pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
        risk="The host tensor must not be changed before the copy is over.",
    ),
    effect=EffectKind.MAKE_ASYNC,
    hint="batch",
    on_op=False,
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    return sync_suggestions(ctx, RULE.id, TEXTS)
