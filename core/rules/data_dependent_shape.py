"""The size of a result depends on the data: masks as indices, ``nonzero``, ``masked_select``.

What it finds
-------------
A blocking call below ``aten::nonzero``, ``aten::masked_select`` or ``aten::argwhere``, which is how ``x[mask]`` is
carried out too.

Why it costs time
-----------------
To allocate the result the CPU must know how many elements there are, so it waits until the GPU has counted them.

Blind spots
-----------
Detection and sparse losses need such sizes and cannot always avoid them. Assigning a number (``x[mask] = 0``) does
not wait.

How to fix
----------
``torch.where`` or multiplying by the mask; a fixed size with ``torch.nonzero_static``.

Sources
-------
pytorch/pytorch#12461 and #131256; pytorch/pytorch#62092; PyTorch performance tuning guide.
"""

from __future__ import annotations

from core.rule_tools.report import SyncTexts, sync_suggestions
from core.suggestions import EffectKind, Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(id="data-dependent-shape", title="A result's size depends on data", needs=Needs.WAITS)

TEXTS = SyncTexts(
    title="`{op}`: the CPU waits to learn the size of its result",
    why=(
        "`{op}` gives a result whose size the CPU must wait to learn. How many elements a mask selects is only "
        "known after the GPU has counted them, and the CPU needs the number to allocate the result."
    ),
    fix=Fix(
        summary="Use the mask as a factor, so that sizes stay fixed.",
        before="loss = losses[mask].mean()",
        after="loss = (losses * mask).sum() / mask.sum()\n# or\nx = torch.where(mask, a, b)",
        url="https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        risk="Masked-out elements are computed too; NaN or inf among them must be replaced with torch.where first.",
    ),
    effect=EffectKind.REMOVE_WAIT,
    hint="mask",
    on_op=False,
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    return sync_suggestions(ctx, RULE.id, TEXTS)
