"""The optimizer, or a loop of the program's own, updates parameters one by one.

What it finds
-------------
Inside ``Optimizer.step#``: small in-place operators times the number of parameters, and no ``_foreach_``, ``_fused_``
or multi-tensor kernel. Outside of it: the same in-place operators for one tensor after the other, such as an average of
the weights (EMA) or an optimizer written by hand.

Why it costs time
-----------------
Every parameter costs several launches; a fused optimizer does all of them in a few.

Blind spots
-----------
``foreach=False`` can be chosen to save memory. With few parameters there is nothing to gain. LBFGS works on one vector
of all parameters and is left out. A loop that goes over fewer than twenty tensors, or does more than four things to
each, is not seen.

How to fix
----------
``fused=True`` (or ``foreach=True``).

Sources
-------
PyTorch's former pattern matcher (OptimizerSingleTensor); PyTorch optimizer documentation.
"""

from __future__ import annotations

import ast
from functools import partial

import numpy as np

from core.kinds import SliceKind
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.making import called_name, where_made
from core.rule_tools.optimizers import built, class_of, during, grouped_keyword
from core.rule_tools.report import evidence, group_by_frame, suggestion, total_ns
from core.rule_tools.subjects import OPTIMIZER, need
from core.rule_tools.updates import LOOP_TENSORS, update_loops
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion
from core.tables import I32

RULE = Rule(
    id="single-tensor-optimizer",
    title="The optimizer works tensor by tensor",
    needs=Needs.OPS,
    params=(
        Param("min_launches", 40, "launches per step of the optimizer", "fewer are hardly worth fusing"),
        Param(
            "fused_factor",
            0.15,
            "of the CPU time",
            "a fused step of a hundred tensors next to the loop, measured on CPUs",
        ),
        Param("cpu_factor", 0.5, "of the time", "a fused step on a CPU, measured: 0.15 to 0.57"),
        Param("foreach_factor", 0.6, "of the time", "one with foreach on a CPU, small tensors, measured: 0.56 to 0.86"),
        Param("small_us", 30, "us per operator", "on a CPU, foreach gains nothing where operators take longer"),
    ),
)
_ON_GPU = (
    "Each call of {optimizer} runs {per_step:.0f} small operators, which take {host_ms:time} of CPU time for kernels "
    "of "
    "{device_ms:time}. The fused form does the same in a few launches. The saving assumes that {left_pct:.0f} % of "
    "the CPU time is left."
)
_ON_CPU = (
    "Each call of {optimizer} runs {per_step:.0f} small operators, {host_ms:time}; each of them goes "
    "over memory by itself. The fused "
    "form goes over each parameter once. The saving assumes that {left_pct:.0f} % of the time is left."
)
_ON_CPU_FOREACH = (
    "Each call of {optimizer} runs {per_step:.0f} small operators, {host_ms:time}. They are so "
    "short that most of the time goes into starting them. Work on lists of tensors starts fewer. The saving assumes "
    "that {left_pct:.0f} % of the time is left."
)
_FLAT = ("LBFGS",)  # work on all parameters as one vector, and their step holds whole forward and backward passes
_SMALL = r"^aten::(add_|mul_|addcmul_|addcdiv_|sqrt|div_|lerp_|sub_|_addcmul_|maximum)$"


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each optimizer once."""
    facts, trace = facts_of(ctx), ctx.trace
    facts.require_compute()
    by_hand = _by_hand(ctx, facts)
    steps = facts.in_steps(facts.matching(r"^Optimizer\.step#", SliceKind.RANGE))
    need(bool(by_hand) or bool(len(steps)), OPTIMIZER)
    steps = steps[~facts.inside(steps, steps)]  # an optimizer made of others: the whole of it
    small = facts.matching(_SMALL, SliceKind.CPU_OP)
    launching = _launching(facts)
    grouped = facts.matching(r"_foreach_|_fused_|multi_tensor", SliceKind.CPU_OP)
    kernels = facts.matching(r"multi_tensor_apply|FusedAdam|fused_adam", SliceKind.KERNEL)
    out = []
    for name, ids in _by_name(facts, steps).items():
        ops = np.concatenate([during(facts, small, i) for i in ids])
        tops = ops[trace.slices.parent_id[ops] < 0] if len(ops) else ops
        ops = tops if len(tops) else ops
        if any(len(during(facts, grouped, i)) for i in ids) or _launched_within(facts, ids, kernels):
            continue
        if len(ops) < ctx.params["min_launches"] * len(ids):
            continue
        if not facts.on_cpu:  # what else such a step starts (norms, divisions) goes tensor by tensor as well
            ops = np.union1d(ops, np.concatenate([during(facts, launching, i) for i in ids]))
        host = total_ns(facts, ops)
        fused = grouped_keyword(class_of(name)) == "fused"
        factor = _left(ctx, facts, fused, host / len(ops))
        if factor is None:
            continue
        work = facts.device_below_all(ops)
        if not len(work) and not facts.on_cpu:
            continue
        found = suggestion(
            ctx,
            RULE.id,
            "The optimizer goes tensor by tensor: {per_step:.0f} operators a step",
            _ON_GPU if not facts.on_cpu else _ON_CPU if fused else _ON_CPU_FOREACH,
            _fix(class_of(name)),
            [
                evidence(facts, "Operators", len(ops), "", ops),
                evidence(facts, "Their CPU time", host / 1e6, "ms", ops),
                evidence(facts, "Optimizer steps", len(ids), "", ids),
            ],
            values={
                "optimizer": name.replace("Optimizer.step#", ""),
                "count": len(ops),
                "times": len(ids),
                "per_step": len(ops) / len(ids),
                "host_ms": host / len(ids) / 1e6,
                "device_ms": total_ns(facts, work) / len(ids) / 1e6,
                "left_pct": 100 * factor,
                "op_path": name,
            },
            anchors=ids,
            effects=[Effect(EffectKind.SCALE_HOST, tuple(ops.tolist()), factor)],
            hint="call:step",
        )
        out.append(where_made(ctx, found, int(ids[0]), partial(_makes, class_of(name))))
    return [*out, *by_hand]


def _by_hand(ctx: RuleContext, facts: Facts) -> list[Suggestion]:
    """Each loop of the program's own that updates tensor after tensor."""
    loops = {int(loop[0]): loop for loop in update_loops(facts, LOOP_TENSORS)}
    out = []
    for starts in group_by_frame(ctx, facts, loops).values():
        ops = np.concatenate([loops[start] for start in starts])
        host, times = total_ns(facts, ops), len(starts)
        factor = _left(ctx, facts, False, host / len(ops))
        if factor is None or len(ops) < ctx.params["min_launches"] * times:
            continue
        work = facts.device_below_all(ops)
        out.append(
            suggestion(
                ctx,
                RULE.id,
                "A loop updates tensor by tensor: {per_loop:.0f} operators each time",
                "{per_loop:.0f} small operators run one after the other, the same ones for each tensor ({names}): "
                "{host_ms:time} of CPU time each time, {times} {times|time|times}. Such a loop is an average of the "
                "weights (EMA), or an optimizer written by hand. Functions that take lists of tensors do the same in a "
                "few launches. The saving assumes that {left_pct:.0f} % of the CPU time is left.",
                _LISTS,
                [
                    evidence(facts, "Operators", len(ops), "", ops),
                    evidence(facts, "Their CPU time", host / 1e6, "ms", ops),
                    *([evidence(facts, "Kernels", len(work), "", work)] if len(work) else []),
                ],
                values={
                    "per_loop": len(ops) / times,
                    "times": times,
                    "names": _names(facts, loops[starts[0]]),
                    "host_ms": host / times / 1e6,
                    "left_pct": 100 * factor,
                    "op_path": "update loop",
                },
                anchors=starts,
                effects=[Effect(EffectKind.SCALE_HOST, tuple(ops.tolist()), factor)],
                hint="call:mul_,add_,lerp_,sub_,copy_",
            )
        )
    return out


def _names(facts: Facts, ops: I32) -> str:
    """What is done to each tensor: the operators of one round, in their order."""
    return ", ".join(dict.fromkeys(facts.trace.name(int(op)) for op in ops[:4]))


_LISTS = Fix(
    "Update all tensors at once with torch._foreach_ functions, which take lists of tensors.",
    "for e, p in zip(ema, params):\n    e.mul_(decay).add_(p, alpha=1 - decay)",
    "torch._foreach_lerp_(ema, params, 1 - decay)\n"
    "# or AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay)) of torch.optim.swa_utils",
    "https://pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema",
    "The results may differ in the last digits; all tensors of a list must be on one device.",
)


def _launching(facts: Facts) -> I32:
    """Outermost operators that start device work; none on a CPU."""
    tops = facts.of_kind(SliceKind.CPU_OP)
    tops = tops[facts.trace.slices.parent_id[tops] < 0] if not facts.on_cpu else tops[:0]
    launching: I32 = tops[facts.device_counts(tops) > 0]
    return launching


def _makes(optimizer: str, call: ast.Call) -> bool:
    """``AdamW(...)``, unless it is asked for in one kernel there."""
    return called_name(call) == optimizer and not any(
        k.arg == "fused" and isinstance(k.value, ast.Constant) and k.value.value for k in call.keywords
    )


def _by_name(facts: Facts, steps: I32) -> dict[str, list[int]]:
    """Calls of each optimizer, but for those that work on all parameters as one vector."""
    by_name: dict[str, list[int]] = {}
    for step in steps.tolist():
        if class_of(facts.trace.name(step)) not in _FLAT:
            by_name.setdefault(facts.trace.name(step), []).append(step)
    return by_name


def _left(ctx: RuleContext, facts: Facts, fused: bool, each_ns: float) -> float | None:
    """Share of the time that is left with the grouped form, None where it gains nothing."""
    if not facts.on_cpu:
        return ctx.params["fused_factor"]
    if fused:
        return ctx.params["cpu_factor"]
    return None if each_ns > ctx.params["small_us"] * 1e3 else ctx.params["foreach_factor"]


def _fix(optimizer: str) -> Fix:
    """The fix for the class that was seen: not every one has a fused form."""
    url, given = "https://pytorch.org/docs/stable/optim.html", "model.parameters(), lr=1e-3"
    way = grouped_keyword(optimizer)
    if way == "fused":
        return Fix(
            "Use the fused optimizer.",
            built(optimizer, f"{given}, foreach=False"),
            built(optimizer, f"{given}, fused=True"),
            url,
            "The results may differ in the last digits; on the CPU, fused=True needs torch 2.4.",
        )
    if way == "foreach":
        return Fix(
            "Let the optimizer work on all parameters at once; this class has no fused form.",
            built(optimizer, f"{given}, foreach=False"),
            built(optimizer, f"{given}, foreach=True"),
            url,
            "Takes about as much extra memory as the parameters for a moment.",
        )
    return Fix(
        "Write the optimizer's step with torch._foreach_ functions, which take lists of tensors, or use the "
        "fused class of torch.optim that does the same.",
        "for p in params:\n    p.add_(p.grad, alpha=-lr)",
        "torch._foreach_add_(params, [p.grad for p in params], alpha=-lr)",
        url,
        "The results may differ in the last digits.",
    )


def _launched_within(facts: Facts, ranges: list[int], kernels: np.ndarray) -> bool:
    launch = np.sort(facts.trace.links.launch_of[kernels])
    launch = launch[launch >= 0]
    return any(len(during(facts, launch, r)) for r in ranges)
