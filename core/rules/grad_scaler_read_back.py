"""The scaler of mixed precision reads back whether gradients overflowed.

What it finds
-------------
``aten::item`` with a blocking call under ``torch/amp/grad_scaler.py``, or right after
``aten::_amp_foreach_non_finite_check_and_unscale_``.

Why it costs time
-----------------
``GradScaler.step`` must know on the CPU whether to skip the optimizer, so it waits for the whole backward pass.

Blind spots
-----------
One such read per optimizer and step is by design and often cheap, since the queue is deep at that moment: the replay
says what it costs. ``get_scale()`` in a log line adds another.

How to fix
----------
bfloat16 needs no scaler; a fused optimizer takes the flag on the GPU.

Sources
-------
pytorch/pytorch#80167; accelerate#1714.
"""

from __future__ import annotations

from dataclasses import replace

from core.rule_tools.facts import Facts
from core.rule_tools.optimizers import built, grouped_keyword, seen_class
from core.rule_tools.report import Group, SyncTexts, sync_suggestions
from core.suggestions import EffectKind, Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(id="grad-scaler-read-back", title="The gradient scaler reads back", needs=Needs.WAITS)

TEXTS = SyncTexts(
    title="The gradient scaler waits for the GPU in every step",
    why=(
        "With float16 the scaler must know on the CPU whether any gradient overflowed before it lets the optimizer run."
    ),
    fix=Fix(
        summary="Use bfloat16, which needs no scaler, or a fused optimizer.",
        before=(
            "scaler = torch.amp.GradScaler()\n"
            'with torch.autocast("cuda", dtype=torch.float16):\n'
            "    loss = model(x).sum()\n"
            "scaler.scale(loss).backward()\n"
            "scaler.step(optimizer)"
        ),
        after=(
            'with torch.autocast("cuda", dtype=torch.bfloat16):\n'
            "    loss = model(x).sum()\n"
            "loss.backward()\n"
            "optimizer.step()\n"
            "# or keep the scaler, with\n" + built("", "params, fused=True")
        ),
        url="https://pytorch.org/docs/stable/amp.html",
        risk="bfloat16 has fewer digits than float16 and needs a GPU of compute capability 8.0 or later.",
    ),
    effect=EffectKind.REMOVE_WAIT,
    hint="call:step,get_scale",
    on_op=False,
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    return sync_suggestions(ctx, RULE.id, TEXTS, advise=_advise)


def _advise(facts: Facts, group: Group) -> Fix | None:
    """The fix for the optimizer that was seen; one without a fused form leaves bfloat16 only."""
    del group
    name = seen_class(facts)
    if not name:
        return None
    after, _, _ = TEXTS.fix.after.partition("# or keep")
    if grouped_keyword(name) == "fused":
        return replace(TEXTS.fix, after=f"{after}# or keep the scaler, with\n{built(name, 'params, fused=True')}")
    return Fix("Use bfloat16, which needs no scaler.", TEXTS.fix.before, after.rstrip(), TEXTS.fix.url, TEXTS.fix.risk)
