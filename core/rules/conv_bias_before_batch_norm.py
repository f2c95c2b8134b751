"""A convolution adds a bias that the batch norm after it takes away again.

What it finds
-------------
``aten::conv2d`` (1d, 3d) with a bias, directly followed by ``aten::batch_norm``; the counter of batches, to which a
module in training adds in between, is passed over.

Why it costs time
-----------------
The bias is added by a kernel of its own, forward and backward, and batch norm subtracts the mean, so it has no effect
at all.

Blind spots
-----------
With an activation between the two the bias matters. Batch norm in evaluation mode or with frozen statistics keeps the
bias's effect: where the trace tells the mode (its Concrete Inputs) such a one is left out. torchvision's models have no
such bias.

How to fix
----------
``bias=False``.

Sources
-------
PyTorch's former pattern matcher (Conv2dBiasFollowedByBatchNorm2d); PyTorch performance tuning guide.
"""

from __future__ import annotations

import ast

import numpy as np

from core.kinds import SliceKind
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.making import called_name, where_made
from core.rule_tools.report import evidence, group_by_frame, suggestion
from core.rule_tools.subjects import CONVOLUTIONS, need
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion
from core.tables import I32, Bool

RULE = Rule(
    id="conv-bias-before-batch-norm",
    title="A useless bias before batch norm",
    needs=Needs.SHAPES | Needs.OPS,
    params=(
        Param("look_at", 64, "operators", "arguments are read from the file: the first step's convolutions are enough"),
    ),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    facts, trace = facts_of(ctx), ctx.trace
    convs = facts.in_steps(facts.ops("aten::conv2d", "aten::conv1d", "aten::conv3d"))
    need(convs, CONVOLUTIONS)
    sl = trace.slices
    after = _norms_after(facts, convs)
    pairs: list[int] = convs[after >= 0].tolist()
    need(pairs, "no convolution is followed by a batch norm.")
    looked = pairs[: int(ctx.params["look_at"])]
    norms: list[int] = after[after >= 0][: len(looked)].tolist()
    facts.read_args(looked)
    if not any(_has_bias(facts.dims(c)) for c in looked):
        return []
    facts.read_args(norms)
    if any(_evaluates(facts, norm) for norm in norms):  # only what was looked at is known to train
        looked = [c for c, norm in zip(looked, norms, strict=True) if not _evaluates(facts, norm)]
        pairs = looked
    biased = [c for c in looked if _has_bias(facts.dims(c))]
    if not biased:
        return []
    per_layer = len(biased) / max(len(looked), 1)
    all_biased = pairs if per_layer > 0.99 else biased
    adds = [int(a) for c in all_biased for a in range(c + 1, int(sl.subtree_end[c])) if trace.name(a) == "aten::add_"]
    shown = all_biased
    return [_suggestion(ctx, ids, adds) for ids in group_by_frame(ctx, facts, shown).values()]


def _suggestion(ctx: RuleContext, ids: list[int], adds: list[int]) -> Suggestion:
    """Count modules, and name where they are made: the operators are called in each step."""
    facts = facts_of(ctx)
    modules = _modules(ctx, ids)
    found = suggestion(
        ctx,
        RULE.id,
        "Convolutions add a bias that batch norm removes",
        "{count} {count|convolution has|convolutions have} a bias, but batch norm subtracts the mean of its input, "
        "so "
        "the bias has no effect. "
        "Adding it costs a kernel each time, and another in the backward pass.",
        Fix(
            "Leave the bias out.",
            "nn.Conv2d(64, 128, 3), nn.BatchNorm2d(128)",
            "nn.Conv2d(64, 128, 3, bias=False), nn.BatchNorm2d(128)",
            "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
            "Old checkpoints hold the bias: load them with strict=False.",
        ),
        [
            evidence(facts, "Convolutions with a bias before batch norm", modules, "", ids),
            *([evidence(facts, "Additions of the bias", len(adds), "", adds)] if adds else []),
        ],
        values={"count": modules},
        anchors=ids,
        effects=[Effect(EffectKind.REMOVE_WORK, tuple(adds))] if adds else [],
        hint="call:Conv2d,conv2d",
    )
    return where_made(ctx, found, ids[0], _makes_bias, modules, sure=False)


def _modules(ctx: RuleContext, ids: list[int]) -> int:
    """How many modules ran these convolutions: by their names, else as many as ran in a step."""
    facts = facts_of(ctx)
    near = facts.in_first_step(np.asarray(ids, dtype=np.int32)).tolist()
    stacks = (ctx.source.stack(one) for one in near)
    names = {next((name for name in stack if name.startswith("nn.Module: Conv")), "") for stack in stacks}
    return len(names) if names and "" not in names else len(near)


def _makes_bias(call: ast.Call) -> bool:
    """``nn.Conv2d(...)`` without ``bias=False``."""
    off = any(k.arg == "bias" and isinstance(k.value, ast.Constant) and not k.value.value for k in call.keywords)
    return called_name(call) in ("Conv1d", "Conv2d", "Conv3d") and not off


def _norms_after(facts: Facts, convs: I32) -> I32:
    """int32[len(convs)]: the batch norm that is the next sibling of each convolution, -1 where another operator is."""
    sl = facts.trace.slices
    after = sl.subtree_end[convs].astype(np.int32)
    for _ in range(2):  # num_batches_tracked.add_(1) comes first, in training
        counting = _next_to(facts, after, "aten::add_", convs)
        after[counting] = sl.subtree_end[after[counting]]
    return np.where(_next_to(facts, after, "aten::batch_norm", convs), after, -1).astype(np.int32)


def _next_to(facts: Facts, after: I32, name: str, convs: I32) -> Bool:
    """bool[len(convs)]: whether ``after`` is an operator of this name under the same parent as the convolution."""
    sl = facts.trace.slices
    held = np.minimum(after, len(sl) - 1)  # the last slice of all has none after it
    is_named = (after < len(sl)) & (sl.name_id[held] == facts.trace.strings.id_of(name))
    found: Bool = is_named & (sl.kind[held] == int(SliceKind.CPU_OP)) & (sl.parent_id[held] == sl.parent_id[convs])
    return found


def _has_bias(dims: list[list[int]]) -> bool:
    return len(dims) >= 3 and len(dims[2]) == 1


def _evaluates(facts: Facts, norm: int) -> bool:
    """Whether ``aten::batch_norm`` is known to use its stored statistics: ``training`` is its sixth input."""
    values = facts.args(norm).get("Concrete Inputs")
    return isinstance(values, list) and len(values) > 5 and values[5] == "False"
