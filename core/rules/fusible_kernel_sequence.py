"""The same small kernels follow each other again and again and could be one.

What it finds
-------------
A sequence of at least three element-wise kernels directly after each other under operators next to each other, that
repeats in every counted step and takes a good part of the kernels' time. Of a program on the CPU, the same of operators
that take long each and a good part of the step.

Why it costs time
-----------------
Each kernel reads its input from memory and writes its result back; fused, the data is read and written once.

Blind spots
-----------
Whether a compiler can fuse them is not in the trace: the saving assumes that the memory traffic of the sequence
shrinks to that of one kernel, and only a test proves it. Hand-written losses and attention have rules of their own. On
a CPU short operators are left out: measured, a compiled chain of seven on 16 000 elements took 1.4 times as long as
the operators, on 260 000 and 4 million a fifth of their time.

How to fix
----------
``torch.compile`` on the module.

Sources
-------
HolisticTraceAnalysis (frequent kernel sequences); MindStudio's fusible operators.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from core.kinds import SliceKind
from core.rule_tools.backward import nodes_of
from core.rule_tools.compiled import CODE, with_compiled
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.fusion import elementwise_runs
from core.rule_tools.report import counted_kernels, evidence, group_by_frame, suggestion, total_ns
from core.suggestions import Effect, EffectKind, Fix, Needs, NotChecked, Param, Rule, RuleContext, Suggestion
from core.tables import I32

RULE = Rule(
    id="fusible-kernel-sequence",
    title="Small kernels that could be fused",
    needs=Needs.OPS,
    params=(
        Param("min_length", 3, "kernels", "pairs are common and gain little"),
        Param("min_share", 0.05, "share of the kernels' time", "below it a compiler is not worth its trouble"),
        Param("min_repeats", 3, "times", "a sequence that happens once is not worth fusing"),
        Param("cpu_op_us", 50, "us per operator", "on a CPU: compiled code takes about as long to start as several"),
        Param("cpu_share", 0.1, "share of the step", "on a CPU: a compiler for C++ is needed as well"),
        Param("cpu_left", 0.3, "of the time", "a chain of seven compiled for a CPU, measured: 0.16 to 0.25"),
    ),
)

_URL = "https://pytorch.org/docs/stable/torch.compiler.html"
_RISK = "The first calls compile and take long; changing shapes compile again."
_FIX = Fix("Let the compiler fuse them.", "y = block(x)", "block = torch.compile(block)\ny = block(x)", _URL, _RISK)
_FIX_ON_CPU = replace(
    _FIX, risk="The first calls compile, which needs a compiler for C++, and take long; changing shapes compile again."
)
_WHY = (
    "{count} {count|time|times}, {length:.0f} small element-wise operators pass over the same data one after the other "
    "({names}, ...): {took_ms:time}. A compiler can make one kernel of each sequence, which reads and writes memory "
    "once. The saving assumes that the memory is the limit, so that a fused kernel takes the time of one of them; only "
    "a test shows how much it gains."
)
_WHY_ON_CPU = (
    "{count} {count|time|times}, {length:.0f} element-wise operators pass over their data one after the other "
    "({names}, ...): {took_ms:time}, their backward pass included. A compiler can make one loop of each sequence, "
    "which reads and writes memory once. The saving assumes that {left_pct:.0f} % of the time is left; only a test "
    "shows how much it gains."
)
_COMPILED = Fix(
    "Let the compiler fuse these as well: compile their part too, or look for what splits it (TORCH_LOGS=graph_breaks) "
    "and for a backend that fuses (inductor does).",
    url=_URL,
    risk=_RISK,
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    facts = facts_of(ctx)
    facts.require_compute()
    if not facts.on_cpu and not len(facts.kernels):
        raise NotChecked("The GPU's work in this trace is copies only: there is no kernel.")
    runs = elementwise_runs(facts, int(ctx.params["min_length"]), round(1e3 * ctx.params["cpu_op_us"]))
    by_start = {int(run[0]): run for run in runs}
    out = []
    for starts in group_by_frame(ctx, facts, by_start).values():
        if len(starts) < ctx.params["min_repeats"]:
            continue
        ops = np.concatenate([by_start[s] for s in starts])
        nodes = nodes_of(facts, ops)  # a compiler fuses the backward pass as well
        made = (_on_cpu if facts.on_cpu else _on_gpu)(ctx, facts, starts, ops, nodes)
        if made is not None:
            out.append(made)
    return out


def _on_gpu(ctx: RuleContext, facts: Facts, starts: list[int], ops: I32, nodes: list[int]) -> Suggestion | None:
    work = counted_kernels(facts, facts.device_below_all(np.append(ops, nodes).astype(np.int32)))
    took = total_ns(facts, work)
    if took < ctx.params["min_share"] * max(facts.kernel_ns, 1):
        return None
    length = len(ops) / len(starts)
    made = suggestion(
        ctx,
        RULE.id,
        "Small kernels could be fused: {share_pct:.0f} % of the kernel time",
        _WHY,
        _FIX,
        [
            evidence(facts, "Sequences", len(starts), "", starts),
            evidence(facts, "Kernels", len(work), "", work),
            evidence(facts, "Their time", took / 1e6, "ms", work),
        ],
        values=_values(ctx, starts, ops, took, facts.kernel_ns),
        anchors=starts,
        effects=[Effect(EffectKind.SCALE_DEVICE, tuple(work.tolist()), 1.0 / max(length, 1.0))],
    )
    return with_compiled(facts, made, work, _COMPILED)


def _on_cpu(ctx: RuleContext, facts: Facts, starts: list[int], ops: I32, nodes: list[int]) -> Suggestion | None:
    work = np.append(ops, nodes).astype(np.int32)
    took = total_ns(facts, work)
    if took < ctx.params["cpu_share"] * max(facts.window_ns, 1) or len(facts.matching(CODE, SliceKind.CPU_OP)):
        return None
    left = max(ctx.params["cpu_left"], len(starts) / len(ops))
    return suggestion(
        ctx,
        RULE.id,
        "Element-wise operators could be fused: {share_pct:.0f} % of the step",
        _WHY_ON_CPU,
        _FIX_ON_CPU,
        [
            evidence(facts, "Sequences", len(starts), "", starts),
            evidence(facts, "Operators, with their backward pass", len(work), "", work),
            evidence(facts, "Their CPU time", took / 1e6, "ms", work),
        ],
        values=_values(ctx, starts, ops, took, facts.window_ns) | {"left_pct": 100 * left},
        anchors=starts,
        effects=[Effect(EffectKind.SCALE_HOST, tuple(work.tolist()), left)],
    )


def _values(ctx: RuleContext, starts: list[int], ops: I32, took: int, of_ns: float) -> dict[str, Any]:
    length = len(ops) / len(starts)
    return {
        "length": length,
        "count": len(starts),
        "names": ", ".join(ctx.trace.name(int(o)) for o in ops[:3]),
        "took_ms": took / 1e6,
        "share_pct": 100 * took / max(of_ns, 1),
    }
