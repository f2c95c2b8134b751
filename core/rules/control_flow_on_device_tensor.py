"""Python decides on a tensor that is on the GPU: ``if t:``, ``assert t.max() < n``, ``while``.

What it finds
-------------
``aten::is_nonzero`` as the outermost operator with a blocking call to the GPU's runtime below it.

Why it costs time
-----------------
Python can only go on once it knows the value, so the CPU waits until the GPU has computed it and everything before
it.

Blind spots
-----------
``aten::is_nonzero`` on CPU tensors has no call below it and is never reported; without recorded GPU work nothing can
be said. The ``assert`` or ``if`` itself leaves no Python frame, so the stack names the function only; with the source
at hand the line is worked out. The scaler of mixed precision and ``clip_grad_norm_(error_if_nonfinite=True)`` do it
on purpose and have rules of their own.

How to fix
----------
Check data on the CPU, in the dataset; let the GPU check with ``torch._assert_async``; or select with ``torch.where``
instead of branching.

Sources
-------
the reference article on a loss function with seven faults (#2); pytorch/pytorch#62092; PyTorch performance tuning
guide.
"""

from __future__ import annotations

from core.rule_tools.report import SyncTexts, sync_suggestions
from core.suggestions import EffectKind, Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(
    id="control-flow-on-device-tensor",
    title="Python branches on a GPU tensor",
    needs=Needs.WAITS,
)

TEXTS = SyncTexts(
    title="Python tests a GPU tensor and waits for the answer",
    why=(
        "An if, while or assert on a "
        "tensor needs its value now, so the CPU stops until the GPU has computed it. Meanwhile no new work is "
        "queued."
    ),
    fix=Fix(
        summary="Do the check where the data is made, or let the GPU do it.",
        before="assert target.max() < 10",
        after=(
            "# in the Dataset, on the CPU, before the batch is copied:\n"
            "assert int(label) < 10\n"
            "# or on the GPU, without waiting (an error is raised later):\n"
            "torch._assert_async((target < 10).all())\n"
            "# or instead of a branch:\n"
            "x = torch.where(x.isfinite(), x, 0.0)"
        ),
        url="https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        risk="A check that no longer stops at once can let a bad batch through to the next step.",
    ),
    effect=EffectKind.REMOVE_WORK,
    hint="control-flow",
    on_op=True,
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    return sync_suggestions(ctx, RULE.id, TEXTS)
