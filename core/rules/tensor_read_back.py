"""A whole tensor is copied back to the CPU in the step: ``.cpu()``, ``.numpy()``, ``print(tensor)``.

What it finds
-------------
A copy from the device made by ``aten::to`` or ``aten::copy_`` as the outermost operator with a blocking call, or any
read under the printing of a tensor.

Why it costs time
-----------------
The copy goes to pageable memory and returns only once it is complete, after all the work queued before it.

Blind spots
-----------
A validation step or a checkpoint inside the window looks the same. The read that ends a recording is a note only.

How to fix
----------
Keep metrics on the GPU and move them every N steps; or copy into pinned memory without waiting and read after an
event.

Sources
-------
PyTorch performance tuning guide; PyTorch tutorial on pinned memory.
"""

from __future__ import annotations

from core.rule_tools.report import SyncTexts, sync_suggestions
from core.suggestions import EffectKind, Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(id="tensor-read-back", title="A tensor is copied back to the CPU", needs=Needs.WAITS)

TEXTS = SyncTexts(
    title="A tensor is copied to the CPU, which waits for it",
    why=(
        "On average {each_bytes:size} were copied back each time. The copy can only start once everything before it on "
        "the GPU is done, and the CPU queues nothing meanwhile."
    ),
    fix=Fix(
        summary="Keep it on the GPU; move it rarely, or without waiting.",
        before="preds.append(out.cpu())\nprint(out)",
        after=(
            "preds.append(out.detach())              # move once, after the loop\n"
            "# or without waiting, into pinned memory:\n"
            "host = torch.empty(out.shape, dtype=out.dtype, pin_memory=True)\n"
            "host.copy_(out, non_blocking=True)\n"
            "done = torch.cuda.Event(); done.record()\n"
            "# later: done.synchronize(); use(host)"
        ),
        url="https://pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
        risk="What stays on the GPU takes its memory; a non-blocking copy must not be read before its event.",
    ),
    effect=EffectKind.REMOVE_WAIT,
    hint="read-back",
    on_op=False,
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    return sync_suggestions(ctx, RULE.id, TEXTS)
