"""The optimizer reads a value back from the GPU.

What it finds
-------------
``aten::item`` with a blocking call inside an ``Optimizer.step#`` range.

Why it costs time
-----------------
The optimizer stops in the middle until the whole backward pass is done.

Blind spots
-----------
Step counters of most optimizers are CPU tensors, whose ``aten::item`` has no call below it and is not reported.
Adafactor and LBFGS read back by design.

How to fix
----------
``fused=True`` or ``capturable=True``; a learning rate that is a Python float.

Sources
-------
PyTorch optimizer documentation (capturable, fused).
"""

from __future__ import annotations

from core.rule_tools.report import SyncTexts, sync_suggestions
from core.suggestions import EffectKind, Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(id="optimizer-read-back", title="The optimizer reads back", needs=Needs.DEVICE)

TEXTS = SyncTexts(
    title="The optimizer reads a value back from the GPU in every step",
    why=(
        "Inside the optimizer's step the CPU waits for a value from the GPU. The CPU spent {host_ms:.2f} ms of the "
        "{window_ms:.1f} ms looked at inside these {count} calls, {wait_ms:.2f} ms of it waiting for the GPU."
    ),
    fix=Fix(
        summary="Use the fused form, or a learning rate that is a plain number.",
        before='optimizer = torch.optim.Adam(params, lr=torch.tensor(1e-3, device="cuda"))',
        after="optimizer = torch.optim.Adam(params, lr=1e-3, fused=True)",
        url="https://pytorch.org/docs/stable/optim.html",
        risk="A fused step may differ in the last digits.",
    ),
    effect=EffectKind.REMOVE_WAIT,
    hint="",
    on_op=False,
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    return sync_suggestions(ctx, RULE.id, TEXTS)
