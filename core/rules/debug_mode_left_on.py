"""A debugging mode is on: blocking launches, anomaly detection, or checks of gradients.

What it finds
-------------
Blocking launches: nearly every kernel has ended when the call that launched it returns. Anomaly detection: Python
frames of ``torch/autograd/anomaly_mode.py`` or stack formatting in the forward pass, or ``aten::isnan`` right below the
nodes of the backward pass; on a CPU as well. Checks of gradients: Python frames of ``gradcheck`` and ``gradgradcheck``.

Why it costs time
-----------------
With ``CUDA_LAUNCH_BLOCKING=1`` the CPU and the GPU take turns instead of working side by side. Anomaly detection
records a stack for every operation and checks every gradient. ``gradcheck`` runs the function once or twice for each
element of its inputs.

Blind spots
-----------
Very small kernels on a slow driver can end before their launch returns; only kernels that outlast a usual launch are
looked at. The environment of a run is not in a trace. ``torch.compile`` switches anomaly detection on while it traces;
its frames are left out. ``emit_nvtx`` leaves no mark in a trace.

How to fix
----------
Unset the variable; switch anomaly detection off; check gradients in a test.

Sources
-------
PyTorch performance tuning guide, 'Disable debugging APIs'; CUDA documentation of CUDA_LAUNCH_BLOCKING.
"""

from __future__ import annotations

import ast

import numpy as np

from core.kinds import HOST_CALLS, SliceKind
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.making import called_name, where_made
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import need
from core.sets import among
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion
from core.tables import I32

RULE = Rule(
    id="debug-mode-left-on",
    title="A debugging mode is on",
    needs=Needs.NOTHING,
    params=(
        Param(
            "min_share", 0.9, "share of the launches", "with blocking launches it is all of them; a few are truncated"
        ),
        Param("min_kernel_us", 20, "us", "a shorter kernel can end before a usual launch returns"),
        Param("min_kernels", 20, "kernels", "fewer prove nothing"),
    ),
)
URL = "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html"


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each mode once."""
    facts = facts_of(ctx)
    found = [*_blocking_launches(ctx), *_anomaly(ctx), *_gradient_checks(ctx)]
    enough = len(_long_kernels(ctx)[0]) >= ctx.params["min_kernels"]
    if not facts.trace.has_device_work:
        need(bool(found) or bool(len(_nodes(facts))), "the trace holds no launches and no backward pass.")
        return found
    need(bool(found) or enough, "too few kernels are long enough to show whether each launch waits for its kernel.")
    return found


def _nodes(facts: Facts) -> I32:
    return facts.matching(r"^autograd::engine::evaluate_function", SliceKind.CPU_OP)


def _long_kernels(ctx: RuleContext) -> tuple[I32, I32]:
    """Kernels that are longer than any launch, and the calls that launched them."""
    facts, trace = facts_of(ctx), ctx.trace
    work = facts.kernels[trace.slices.dur_ns[facts.kernels] >= ctx.params["min_kernel_us"] * 1e3]
    launch = trace.links.launch_of[work]
    known = launch >= 0
    known &= among(trace.slices.kind[np.maximum(launch, 0)], HOST_CALLS)
    return work[known], launch[known]


def _blocking_launches(ctx: RuleContext) -> list[Suggestion]:
    facts, trace = facts_of(ctx), ctx.trace
    work, launch = _long_kernels(ctx)
    if len(work) < ctx.params["min_kernels"]:
        return []
    done = trace.end_ns[launch] >= trace.end_ns[work] - 2000
    if float(done.mean()) < ctx.params["min_share"]:
        return []
    ids = launch[done]
    return [
        suggestion(
            ctx,
            RULE.id,
            "Every launch waits for its kernel: CUDA_LAUNCH_BLOCKING?",
            "{count} of {of} launches returned only after their kernel was done. So the CPU and the GPU take turns "
            "instead of working side by side: the CPU spent {took_ms:time} in these calls.",
            Fix("Unset the variable.", "CUDA_LAUNCH_BLOCKING=1 python train.py", "python train.py", URL),
            [
                evidence(facts, "Launches that returned after their kernel", len(ids), "", ids),
                evidence(facts, "CPU time inside them", total_ns(facts, ids) / 1e6, "ms", ids),
            ],
            values={"count": len(ids), "of": len(work), "took_ms": total_ns(facts, ids) / 1e6},
            anchors=ids,
            effects=[Effect(EffectKind.REMOVE_WAIT, tuple(int(i) for i in ids))],
        )
    ]


def _anomaly(ctx: RuleContext) -> list[Suggestion]:
    facts = facts_of(ctx)
    frames = facts.in_steps(
        facts.matching(r"torch/autograd/anomaly_mode\.py|torch/fx/traceback\.py\(\d+\): format_stack", SliceKind.PYTHON)
    )
    compiler = facts.matching(r"torch/(_dynamo|_functorch|_inductor)/", SliceKind.PYTHON)
    frames = frames[~facts.inside(frames, compiler)]  # while it traces, it looks for anomalies of its own accord
    checks = _checks(facts)
    if not len(checks) and not len(facts.matching(r"traceback\.py\(\d+\): format_stack$", SliceKind.PYTHON)):
        return []  # ``set_detect_anomaly(False)`` makes frames of that module, too
    if len(frames) < 2 and len(checks) < 2:
        return []
    frames = frames[~facts.inside(frames, frames)]
    took = total_ns(facts, frames) + total_ns(facts, checks)
    shown = frames if len(frames) else checks
    found = suggestion(
        ctx,
        RULE.id,
        "Autograd's anomaly detection is on",
        "It keeps a Python stack for each operation of the forward pass and looks for NaN in each gradient of the "
        "backward pass: {took_ms:time} of CPU time here. On a GPU each of these looks waits for it. Recording "
        "stacks makes the part of the forward pass look longer than it is.",
        Fix(
            "Switch it off.",
            "torch.autograd.set_detect_anomaly(True)",
            "torch.autograd.set_detect_anomaly(False)   # on only while searching a NaN",
            URL,
        ),
        [
            *([evidence(facts, "Frames of anomaly detection", len(frames), "", frames)] if len(frames) else []),
            *([evidence(facts, "Looks for NaN", len(checks), "", checks)] if len(checks) else []),
        ],
        values={"took_ms": took / 1e6},
        anchors=shown,
        effects=[
            *([Effect(EffectKind.REMOVE_WORK, tuple(checks.tolist()))] if len(checks) else []),
            *([Effect(EffectKind.REMOVE_WORK, tuple(frames.tolist()), assumed=True)] if len(frames) else []),
        ],
        hint="call:set_detect_anomaly,detect_anomaly",
    )
    return [where_made(ctx, found, int(shown[0]), _switches_on, reason="it is switched on here")]


def _switches_on(call: ast.Call) -> bool:
    off = any(isinstance(a, ast.Constant) and a.value is False for a in call.args)
    return called_name(call) in ("set_detect_anomaly", "detect_anomaly") and not off


def _gradient_checks(ctx: RuleContext) -> list[Suggestion]:
    facts = facts_of(ctx)
    frames = facts.matching(
        r"torch[/\\]autograd[/\\]gradcheck\.py\(\d+\): (gradcheck|gradgradcheck)$", SliceKind.PYTHON
    )
    frames = facts.in_steps(frames[~facts.inside(frames, frames)])
    if not len(frames):
        return []
    took = total_ns(facts, frames)
    return [
        suggestion(
            ctx,
            RULE.id,
            "Gradients are checked numerically in the loop",
            "gradcheck compares the gradients with differences: it runs the function once or twice for each element of "
            "its inputs, {count} {count|time|times} here: {took_ms:time}. One such check belongs in a test.",
            Fix(
                "Check gradients in a test, outside the training loop.",
                "assert torch.autograd.gradcheck(loss_fn, (x.double(),))\nloss_fn(x).backward()",
                "loss_fn(x).backward()     # gradcheck runs once, in a test of loss_fn",
                "https://pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html",
            ),
            [
                evidence(facts, "Checks of gradients", len(frames), "", frames),
                evidence(facts, "Their CPU time", took / 1e6, "ms", frames),
            ],
            values={"count": len(frames), "took_ms": took / 1e6},
            anchors=frames,
            effects=[Effect(EffectKind.REMOVE_WORK, tuple(frames.tolist()))],
            hint="call:gradcheck,gradgradcheck",
            informational=not facts.n_steps and len(frames) == 1,
        )
    ]


def _checks(facts: Facts) -> I32:
    """int32[k]: operators right below nodes of the backward pass that look for NaN: isnan, any, and the read of it."""
    sl, nodes = facts.trace.slices, _nodes(facts)
    looks = facts.in_steps(facts.ops("aten::isnan"))
    looks = looks[among(sl.parent_id[looks], nodes)]
    parts = facts.ops("aten::isnan", "aten::any", "aten::_is_any_true", "aten::item", "aten::is_nonzero")
    found: I32 = parts[among(sl.parent_id[parts], sl.parent_id[looks])] if len(looks) else looks
    return found
