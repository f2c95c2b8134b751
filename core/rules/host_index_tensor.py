"""A GPU tensor is indexed with a CPU tensor.

What it finds
-------------
A copy to the device below ``aten::index`` or ``aten::_index_put_impl_`` whose index was not made right before from a
Python list.

Why it costs time
-----------------
PyTorch moves the index to the GPU by itself, from pageable memory, and the CPU waits for the copy.

Blind spots
-----------
Indices that a sampler makes on the CPU once per step are legitimate; then pinning them is the cure.

How to fix
----------
Build the index on the GPU, or move it there once, pinned and without waiting.

Sources
-------
pytorch/pytorch#108968; measured on recorded recommendation-model traces.
"""

from __future__ import annotations

from core.rule_tools.host_index import index_copies
from core.rule_tools.report import SyncTexts, sync_suggestions
from core.suggestions import EffectKind, Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(
    id="host-index-tensor",
    title="A GPU tensor is indexed with a CPU tensor",
    needs=Needs.WAITS,
)

TEXTS = SyncTexts(
    title="A GPU tensor is indexed with a CPU tensor",
    why=(
        "The index ({each_bytes:size}) is made or kept on the CPU, so PyTorch copies it over inside `{op}`, each time "
        "anew, and waits for the copy."
    ),
    fix=Fix(
        summary="Keep the index on the GPU.",
        before="idx = torch.randperm(n)          # on the CPU\nx = x[idx]",
        after=(
            "idx = torch.randperm(n, device=x.device)\n"
            "x = x[idx]\n"
            "# or, where it must come from the CPU:\n"
            "idx = idx.pin_memory().to(x.device, non_blocking=True)"
        ),
        url="https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        risk="Random numbers from the GPU's generator differ from those of the CPU's.",
    ),
    effect=EffectKind.REMOVE_WORK,
    hint="host-index",
    on_op=False,
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    return sync_suggestions(ctx, RULE.id, TEXTS, target=index_copies)
