"""The norm of the gradients is read back in every step.

What it finds
-------------
``aten::item`` or ``aten::is_nonzero`` with a blocking call under ``torch/nn/utils/clip_grad.py``, or right after a
burst of norms.

Why it costs time
-----------------
The norm is the last thing of the backward pass, so the CPU waits for all of it before the optimizer can be launched.

Blind spots
-----------
``clip_grad_norm_`` by itself does not read back and is not reported; ``error_if_nonfinite=True`` or ``.item()`` on
its result does.

How to fix
----------
Log the tensor, and read it every N steps.

Sources
-------
pytorch/pytorch#108968; PyTorch performance tuning guide.
"""

from __future__ import annotations

from core.rule_tools.report import SyncTexts, sync_suggestions
from core.suggestions import EffectKind, Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(id="grad-norm-read-back", title="The gradient norm is read back", needs=Needs.WAITS)

TEXTS = SyncTexts(
    title="The gradient norm is read back in every step",
    why=(
        "The norm is known only after the whole backward pass, and the CPU waits for it before it can start the "
        "optimizer."
    ),
    fix=Fix(
        summary="Keep the norm on the GPU; read it rarely.",
        before="norm = clip_grad_norm_(model.parameters(), 1.0).item()",
        after=(
            "norm = clip_grad_norm_(model.parameters(), 1.0)     # a GPU tensor\n"
            "if step % 50 == 0:\n"
            "    log(norm.item())"
        ),
        url="https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        risk="With error_if_nonfinite=False a NaN is noticed later.",
    ),
    effect=EffectKind.REMOVE_WAIT,
    hint="call:clip_grad_norm_,item",
    on_op=False,
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    return sync_suggestions(ctx, RULE.id, TEXTS)
