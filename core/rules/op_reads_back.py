"""An operator waits for the GPU inside itself.

What it finds
-------------
A blocking call below any other operator: ``aten::unique``, ``aten::bincount``, ``aten::repeat_interleave``,
``aten::equal``, ``aten::multinomial``, checks of linear algebra, ops of libraries.

Why it costs time
-----------------
The operator needs a value or a size from the GPU before it can go on, so the CPU waits.

Blind spots
-----------
What waits differs between versions of torch: this is decided from the trace, never from the operator's name. First
calls of a library may wait once while it sets itself up.

How to fix
----------
Depends on the operator: give it the size it looks for, do it in the data loader, or use a form with fixed sizes.

Sources
-------
pytorch/pytorch#108968, #12461, PR #156384; measured on recorded traces.
"""

from __future__ import annotations

from core.rule_tools.facts import Facts
from core.rule_tools.report import Group, SyncTexts, sync_suggestions
from core.suggestions import EffectKind, Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(
    id="op-reads-back",
    title="An operator waits for the GPU inside itself",
    needs=Needs.WAITS,
)

TEXTS = SyncTexts(
    title="`{op}` waits for the GPU inside itself",
    why=("This operator needs something from the GPU before it can go on. Path: {op_path}."),
    fix=Fix(
        summary="Use a form of the operator that need not look at the data, or move it out of the step.",
        before="y = x.repeat_interleave(counts, dim=0)",
        after="y = x.repeat_interleave(counts, dim=0, output_size=total)   # size known: no wait",
        url="https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        risk="A size given by hand must be right.",
    ),
    effect=EffectKind.REMOVE_WAIT,
    hint="",
    on_op=False,
)

_BARRIER_URL = "https://pytorch.org/docs/stable/distributed.html#torch.distributed.barrier"
_ADVICE = {
    "aten::repeat_interleave": (
        "Say how long the result is.",
        "y = x.repeat_interleave(counts, dim=0)",
        "y = x.repeat_interleave(counts, dim=0, output_size=total)",
    ),
    "aten::unique": (
        "Find unique values before the batch goes to the GPU.",
        "ids, inverse = torch.unique(ids, return_inverse=True)",
        "# in the collate function, on the CPU\nids, inverse = torch.unique(ids, return_inverse=True)",
    ),
    "aten::bincount": (
        "Count into a tensor of fixed size.",
        "counts = torch.bincount(ids, minlength=n)",
        "counts = torch.zeros(n, device=ids.device).scatter_add_(0, ids, torch.ones_like(ids, dtype=torch.float32))",
    ),
    "aten::equal": (
        "Compare on the GPU and read the answer later, or not at all.",
        "if torch.equal(a, b): ...",
        "same = (a == b).all()          # stays on the GPU",
    ),
    "aten::randperm": (
        "Sort random keys on the GPU instead.",
        "order = torch.randperm(n, device=device)",
        "order = torch.rand(n, device=device).argsort()",
    ),
    "c10d::barrier": (
        "Take the barrier out of the loop: collectives wait for the other ranks anyway. It has its place around "
        "files that ranks share, once.",
        "for x, y in loader:\n    train_step(x, y)\n    dist.barrier()",
        "for x, y in loader:\n    train_step(x, y)",
    ),
    "aten::multinomial": (
        "Sample with exponential keys.",
        "pick = torch.multinomial(p, 1)",
        "pick = (p / torch.empty_like(p).exponential_(1)).argmax(-1, keepdim=True)",
    ),
}


def _advice(facts: Facts, group: Group) -> Fix | None:
    """The cure known for this operator, None for the general one."""
    names = group.op_path.split(" > ")
    for name, (summary, before, after) in _ADVICE.items():
        if any(n == name or n.startswith((name + "_", name.replace("::", "::_"))) for n in names):
            url = _BARRIER_URL if name == "c10d::barrier" else TEXTS.fix.url
            return Fix(summary, before, after, url, TEXTS.fix.risk if name == "aten::repeat_interleave" else "")
    op = names[0]
    if op in ("aten::repeat_interleave", ""):
        return None
    return Fix(
        "Look for a form of this operator with fixed sizes, or do it before the step.",
        "",
        "",
        TEXTS.fix.url,
        TEXTS.fix.risk,
    )


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    return sync_suggestions(ctx, RULE.id, TEXTS, advise=_advice)
