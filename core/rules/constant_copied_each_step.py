"""A small tensor is built on the CPU and copied to the GPU again in every step: most often a constant.

What it finds
-------------
A copy to the device of at most 64 KiB, of the same size in at least two steps, made by ``aten::to`` or
``aten::copy_`` right after ops that create a tensor on the CPU (``aten::lift_fresh`` for ``torch.Tensor([...])`` and
``torch.tensor``, or a fill); or, with stacks, one of at most 1 MiB made inside the forward of a module. Not what a
data loader has made, nor what is moved by a function that moves batches.

Why it costs time
-----------------
The copy comes from pageable memory, so the CPU waits until the GPU has caught up; then it has to fill an empty queue
again. The size hardly matters.

Blind spots
-----------
A trace tells the size of what is copied, not its content: whether it is a constant, only the source can say. Alone the
fix may save next to nothing, because the next wait of a chain takes its place; the plan says so. The batch itself
(large, or of varying size) belongs to another rule.

How to fix
----------
If its content is the same each time, create it once, as a buffer of the module. Random numbers, and what is filled by
a call, can be created on the GPU.

Sources
-------
the reference article on a loss function with seven faults (#1); PyTorch performance tuning guide, 'Create tensors
directly on the target device'; PyTorch's former pattern matcher (ExtraCUDACopy).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.report import Group, SyncTexts, sync_suggestions
from core.rule_tools.sync_classes import Occurrence, made_from
from core.suggestions import EffectKind, Fix, Needs, Rule, RuleContext, Suggestion

RULE = Rule(
    id="constant-copied-each-step",
    title="A small tensor is copied to the GPU in every step",
    needs=Needs.WAITS,
)

MOST_LOOKED_AT = 16  # copies of a place whose making is looked at

TEXTS = SyncTexts(
    title="A small CPU tensor is copied to the GPU again and again",
    why=(
        "A tensor is made on the CPU and sent to the GPU {count} {count|time|times}, {each_bytes:size} each time. For "
        "such a copy the CPU waits until the GPU has done everything before it. If its content is the same each time, "
        "it need be sent only once."
    ),
    fix=Fix(
        summary="If its content is the same each time, make it once and keep it on the GPU.",
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


RANDOM = frozenset(("aten::rand", "aten::randn", "aten::normal_", "aten::uniform_"))
MADE_THERE = replace(
    TEXTS,
    title="Random numbers are made on the CPU and copied to the GPU",
    why=(
        "Random numbers are drawn on the CPU and sent to the GPU {count} {count|time|times}, {each_bytes:size} each "
        "time. For such a copy the CPU waits until the GPU has done everything before it."
    ),
    fix=Fix(
        summary="Draw them on the GPU.",
        before="noise = torch.randn(x.shape).cuda()",
        after="noise = torch.randn(x.shape, device=x.device)",
        url="https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        risk="The GPU's generator draws other numbers from the same seed.",
    ),
)
IN_MODULE = replace(
    TEXTS,
    title="A module copies a tensor to the GPU again and again",
    why=(
        "{count} {count|time|times}, a tensor of {each_bytes:size} that lies on the CPU is sent to the GPU from inside "
        "the forward of a module. For such a copy the CPU waits until the GPU has done everything before it. Its size "
        "is always the same; a trace does not tell whether its content is."
    ),
    fix=Fix(
        summary="If the module keeps this tensor, register it as a buffer; if it is an input, move it with the batch.",
        before=(
            "def __init__(self):\n"
            "    super().__init__()\n"
            "    self.bias = compute_bias()\n"
            "\n"
            "def forward(self, x):\n"
            "    return x + self.bias.to(x.device)"
        ),
        after=(
            "def __init__(self):\n"
            "    super().__init__()\n"
            '    self.register_buffer("bias", compute_bias(), persistent=False)   # moves with .to(device)\n'
            "\n"
            "def forward(self, x):\n"
            "    return x + self.bias"
        ),
        url="https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        risk="A buffer is part of the state_dict; persistent=False keeps old checkpoints loadable.",
    ),
)


def _makers(facts: Facts, occurrence: Occurrence) -> Iterable[int]:
    """Ops that build the tensor go with the copy."""
    return made_from(facts, occurrence.anchor)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once, by what the trace tells of the tensor's making."""
    facts = facts_of(ctx)

    def retell(group: Group) -> SyncTexts | None:
        made = [i for one in group.occurrences[:MOST_LOOKED_AT] for i in made_from(facts, one.anchor)]
        if not made:
            return IN_MODULE
        names = {facts.trace.name(c) for i in made for c in (i, *facts.children(i))}
        return MADE_THERE if names & RANDOM else None

    return sync_suggestions(ctx, RULE.id, TEXTS, extra_removed=_makers, retell=retell)
