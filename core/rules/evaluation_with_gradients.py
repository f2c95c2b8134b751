"""An evaluation records gradients that nobody uses.

What it finds
-------------
Forward operators that get new sequence numbers (a graph is recorded) in a trace without any backward pass; and, in a
trace with one, forward operators of at least two steps to which no node of a backward pass is linked: an evaluation
inside the training loop, a teacher, a second forward pass over the same batch.

Why it costs time
-----------------
Recording the graph costs time on the CPU and keeps all intermediate results in memory.

Blind spots
-----------
Feature extractors and adversarial training use such graphs later. A window that ends before the backward pass looks
alike, so the last step decides nothing. What is computed again in the backward pass (checkpointing) is left out, and so
is what frozen parameters compute: it records nothing.

How to fix
----------
``torch.inference_mode()``.

Sources
-------
PyTorch performance tuning guide, 'Disable gradient calculation for validation'.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from core.kinds import SliceKind
from core.rule_tools.compiled import tried_by_compiler
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.report import evidence, suggestion
from core.rule_tools.subjects import need
from core.sets import among
from core.suggestions import Fix, Needs, Param, Rule, RuleContext, Suggestion
from core.tables import I32

RULE = Rule(
    id="evaluation-with-gradients",
    title="Gradients are recorded in vain",
    needs=Needs.OPS,
    params=(
        Param("look_at", 10, "operators", "arguments are read from the file"),
        Param("min_numbers", 4, "sequence numbers", "a few come from constants"),
    ),
)


_FIX = Fix(
    "Switch gradients off for evaluation.",
    "out = model(x)",
    "with torch.inference_mode():\n    out = model(x)",
    "https://pytorch.org/docs/stable/generated/torch.autograd.grad_mode.inference_mode.html",
    "Tensors made there cannot be used in training.",
)
_HEAVY = r"^aten::(linear|conv\dd|addmm|mm|matmul|layer_norm|batch_norm|embedding)$"


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report it once where nothing is trained, else each place whose graph nobody uses."""
    facts = facts_of(ctx)
    backward = facts.matching(r"^autograd::engine::evaluate_function|Backward\d*$", SliceKind.CPU_OP)
    heavy = facts.in_steps(facts.matching(_HEAVY, SliceKind.CPU_OP))
    heavy = heavy[~tried_by_compiler(facts, heavy)]
    if len(backward):
        return _beside_training(ctx, facts, heavy)
    # a dropout that draws random numbers: the model is in training mode, and the recording ends before its backward
    if len(facts.ops("aten::native_dropout", "aten::bernoulli_")):
        return []
    enough = len(heavy) >= ctx.params["min_numbers"]
    need(enough, "the trace holds too few operators with parameters, such as linear or conv2d.")
    heavy_here = facts.in_first_step(heavy)
    near = heavy_here if len(heavy_here) >= ctx.params["min_numbers"] else heavy
    sample = near[:: max(len(near) // int(ctx.params["look_at"]), 1)][: int(ctx.params["look_at"])]
    if _numbers(facts, sample) < min(ctx.params["min_numbers"], len(sample) // 2 + 1):
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
            _FIX,
            [evidence(facts, "Operators recorded for a backward pass", len(heavy), "", heavy)],
            values={"count": len(heavy)},
            anchors=heavy,
            at=_outermost_module(facts, ctx.source.frame_around(int(heavy[0]))),
            hint="call:model,forward",
        )
    ]


def _numbers(facts: Facts, ops: I32) -> int:
    """How many different sequence numbers these operators got: one for each node of a graph."""
    numbers = (facts.args(int(op)).get("Sequence number") for op in ops)
    return len({n for n in numbers if isinstance(n, int) and n >= 0})


def _beside_training(ctx: RuleContext, facts: Facts, heavy: I32) -> list[Suggestion]:
    """Forward passes in steps that train, whose graph no backward pass uses."""
    trace = facts.trace
    linked = trace.links.forward
    if not len(linked) or not len(heavy) or facts.n_steps < 2:
        return []
    nodes = facts.matching(r"^autograd::engine::evaluate_function", SliceKind.CPU_OP)
    heavy = heavy[~facts.inside(heavy, heavy) & ~facts.inside(heavy, nodes)]
    used = linked.searchsorted(trace.slices.subtree_end[heavy]) > linked.searchsorted(heavy)
    rows = facts.figures.step_of[heavy]
    last = int(facts.step_rows[-1])  # its backward pass may come after the recording
    lost = heavy[~used & among(rows, rows[used])]
    out = []
    for ids in _by_call(ctx, facts, lost).values():
        own = np.asarray(ids, dtype=np.int32)
        sure = own[facts.figures.step_of[own] < last] if facts.n_steps > 2 else own
        if len(facts.rows_of(sure)) < 2:
            continue
        first = facts.in_first_step(sure)
        if len(first) < 2 or _numbers(facts, first[: int(ctx.params["look_at"])]) < 2:
            continue
        out.append(
            suggestion(
                ctx,
                RULE.id,
                "A forward pass prepares gradients that nothing uses",
                "Beside the training, a forward pass records a graph for gradients, and no backward pass uses it: "
                "{per_step:.0f} operators with parameters a step, such as an evaluation, a teacher, or a second look "
                "at the same batch. Recording costs time on the CPU and keeps every intermediate result in memory. How "
                "much it costs is not in the trace.",
                replace(
                    _FIX,
                    after=f"{_FIX.after}\n# or, where the same batch has been through the model: use that output",
                ),
                [evidence(facts, "Operators recorded in vain", len(own), "", own)],
                values={"per_step": len(own) / max(len(facts.rows_of(own)), 1)},
                anchors=own,
                at=_outermost_module(facts, ctx.source.frame_around(int(own[0]))),
                hint="call:model,forward",
            )
        )
    return out


def _by_call(ctx: RuleContext, facts: Facts, ops: I32) -> dict[str, list[int]]:
    """Operators by the user's function that called the model around them ("" without stacks)."""
    out: dict[str, list[int]] = {}
    for op, frame in zip(ops.tolist(), ctx.source.frames_around(ops).tolist(), strict=True):
        at = _outermost_module(facts, frame)
        caller = ctx.source.user_frame(at) if at is not None else -1
        out.setdefault(facts.trace.name(caller) if caller >= 0 else "", []).append(op)
    return out


def _outermost_module(facts: Facts, frame: int) -> int | None:
    """The call of the whole model around a Python slice, None where there is no module."""
    outer = None
    while frame >= 0:
        if facts.trace.name(frame).startswith("nn.Module: "):
            outer = frame
        frame = int(facts.trace.slices.parent_id[frame])
    return outer
