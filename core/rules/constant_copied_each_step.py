"""A small constant is built on the CPU and copied to the GPU again in every step.

What it finds
-------------
A copy to the device of at most 64 KiB, of the same size in at least two steps, made by ``aten::to`` or
``aten::copy_`` right after ops that create a tensor on the CPU (``aten::lift_fresh`` for ``torch.Tensor([...])`` and
``torch.tensor``, or a fill); or, with stacks, one of at most 1 MiB made inside the forward of a module.

Why it costs time
-----------------
The copy comes from pageable memory, so the CPU waits until the GPU has caught up; then it has to fill an empty queue
again. The size hardly matters.

Blind spots
-----------
Alone the fix may save next to nothing, because the next wait of a chain takes its place; the plan says so. The batch
itself (large, or of varying size) belongs to another rule. A constant that is made differently on purpose in every
step cannot be kept.

How to fix
----------
Create it once, as a buffer of the module, or create it on the GPU.

Sources
-------
the reference article on a loss function with seven faults (#1); PyTorch performance tuning guide, 'Create tensors
directly on the target device'; PyTorch's former pattern matcher (ExtraCUDACopy).
"""

from __future__ import annotations

from collections.abc import Iterable

from core.rule_tools.facts import Facts
from core.rule_tools.report import SyncTexts, sync_suggestions
from core.rule_tools.sync_classes import Occurrence, made_from
from core.suggestions import EffectKind, Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(
    id="constant-copied-each-step",
    title="A constant is copied to the GPU in every step",
    needs=Needs.WAITS,
)

TEXTS = SyncTexts(
    title="The same small tensor is copied to the GPU again and again",
    why=(
        "A tensor of {each_bytes:size} "
        "that lives on the CPU is sent to the GPU {count} {count|time|times}, though its size never changes. For "
        "such a copy the CPU waits until the GPU has done everything before it."
    ),
    fix=Fix(
        summary="Make the constant once and keep it on the GPU.",
        before=(
            "def forward(self, input, target):\n"
            "    weight = torch.Tensor([0.1] * 10).cuda()\n"
            "    return weighted_nll(input, target, weight)"
        ),
        after=(
            "def __init__(self):\n"
            "    super().__init__()\n"
            '    self.register_buffer("weight", torch.full((10,), 0.1))   # moves with .to(device)\n'
            "\n"
            "def forward(self, input, target):\n"
            "    return weighted_nll(input, target, self.weight)"
        ),
        url="https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        risk="A buffer is part of the state_dict; use persistent=False to keep old checkpoints loadable.",
    ),
    effect=EffectKind.REMOVE_WORK,
    hint="constant",
    on_op=True,
)


def _makers(facts: Facts, occurrence: Occurrence) -> Iterable[int]:
    """Ops that build the tensor go with the copy."""
    return made_from(facts, occurrence.anchor)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    return sync_suggestions(ctx, RULE.id, TEXTS, extra_removed=_makers)
