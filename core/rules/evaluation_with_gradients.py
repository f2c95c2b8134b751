"""An evaluation records gradients that nobody uses.

What it finds
-------------
Forward operators that get new sequence numbers (a graph is recorded) in a trace or a marked evaluation without any
backward pass.

Why it costs time
-----------------
Recording the graph costs time on the CPU and keeps all intermediate results in memory.

Blind spots
-----------
Feature extractors and adversarial training use such graphs later. A window that ends before the backward pass looks
alike.

How to fix
----------
``torch.inference_mode()``.

Sources
-------
PyTorch performance tuning guide, 'Disable gradient calculation for validation'.
"""

from __future__ import annotations

from core.kinds import SliceKind
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion
from core.rule_tools.subjects import need
from core.suggestions import Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="evaluation-with-gradients",
    title="Gradients are recorded in vain",
    needs=Needs.OPS,
    params=(
        Param("look_at", 10, "operators", "arguments are read from the file"),
        Param("min_numbers", 4, "sequence numbers", "a few come from constants"),
    ),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Say so once."""
    facts = facts_of(ctx)
    backward = facts.matching(r"^autograd::engine::evaluate_function|Backward\d*$", SliceKind.CPU_OP)
    heavy = facts.in_steps(
        facts.matching(r"^aten::(linear|conv\dd|addmm|mm|matmul|layer_norm|batch_norm|embedding)$", SliceKind.CPU_OP)
    )
    # a dropout that draws random numbers: the model is in training mode, and the recording ends before its backward
    training = facts.ops("aten::native_dropout", "aten::bernoulli_")
    if len(backward) or len(training):
        return []
    enough = len(heavy) >= ctx.params["min_numbers"]
    need(enough, "the trace holds too few operators with parameters, such as linear or conv2d.")
    heavy_here = facts.in_first_step(heavy)
    near = heavy_here if len(heavy_here) >= ctx.params["min_numbers"] else heavy
    sample = near[:: max(len(near) // int(ctx.params["look_at"]), 1)][: int(ctx.params["look_at"])]
    numbers = {facts.args(int(op)).get("Sequence number") for op in sample} - {None}
    positive = [n for n in numbers if isinstance(n, int) and n >= 0]
    if len(set(positive)) < min(ctx.params["min_numbers"], len(sample) // 2 + 1):
        return []
    return [
        suggestion(
            ctx,
            RULE.id,
            "Gradients are prepared, but there is no backward pass",
            "A graph for gradients is recorded, but there is no backward pass. "
            "{count} {count|operator was|operators were} recorded for a backward pass that does not happen in this "
            "trace. "
            "That costs time on the CPU "
            "and keeps every intermediate result in memory.",
            Fix(
                "Switch gradients off for evaluation.",
                "out = model(x)",
                "with torch.inference_mode():\n    out = model(x)",
                "https://pytorch.org/docs/stable/generated/torch.autograd.grad_mode.inference_mode.html",
                "Tensors made there cannot be used in training.",
            ),
            [evidence(facts, "Operators recorded for a backward pass", len(heavy), "", heavy)],
            values={"count": len(heavy)},
            anchors=heavy,
            hint="call:model,forward",
        )
    ]
