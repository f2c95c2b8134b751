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

from dataclasses import replace

from core.kinds import SliceKind
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.optimizers import built, class_of, grouped_keyword
from core.rule_tools.report import Group, SyncTexts, sync_suggestions
from core.rule_tools.subjects import OPTIMIZER, need
from core.suggestions import EffectKind, Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(id="optimizer-read-back", title="The optimizer reads back", needs=Needs.WAITS)

TEXTS = SyncTexts(
    title="The optimizer reads a value back in every step",
    why=("Inside the optimizer's step the CPU waits for a value from the GPU."),
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
    need(facts_of(ctx).matching(r"^Optimizer\.step#", SliceKind.RANGE), OPTIMIZER)
    return sync_suggestions(ctx, RULE.id, TEXTS, advise=_advise)


def _advise(facts: Facts, group: Group) -> Fix | None:
    """The fix for the optimizer that was seen."""
    names = [class_of(facts.trace.name(r)) for o in group.occurrences for r in facts.ranges_around(o.calls[0])]
    name = next(filter(None, names), "")
    if not name:
        return None
    fused = ", fused=True" if grouped_keyword(name) == "fused" else ""
    before = built(name, 'params, lr=torch.tensor(1e-3, device="cuda")')
    return replace(TEXTS.fix, before=before, after=built(name, f"params, lr=1e-3{fused}"))
