"""The same small kernels follow each other again and again and could be one.

What it finds
-------------
A sequence of at least three element-wise kernels directly after each other under operators next to each other, that
repeats in every counted step and takes a good part of the kernels' time.

Why it costs time
-----------------
Each kernel reads its input from memory and writes its result back; fused, the data is read and written once.

Blind spots
-----------
Whether a compiler can fuse them is not in the trace: the saving assumes that the memory traffic of the sequence
shrinks to that of one kernel, and only a test proves it. Hand-written losses and attention have rules of their own.

How to fix
----------
``torch.compile`` on the module.

Sources
-------
HolisticTraceAnalysis (frequent kernel sequences); MindStudio's fusible operators.
"""

from __future__ import annotations

import numpy as np

from core.rule_tools.backward import nodes_of
from core.rule_tools.compiled import with_compiled
from core.rule_tools.facts import facts_of
from core.rule_tools.fusion import elementwise_runs
from core.rule_tools.report import counted_kernels, evidence, group_by_frame, suggestion, total_ns
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="fusible-kernel-sequence",
    title="Small kernels that could be fused",
    needs=Needs.DEVICE | Needs.KERNELS | Needs.OPS,
    params=(
        Param("min_length", 3, "kernels", "pairs are common and gain little"),
        Param("min_share", 0.05, "share of the kernels' time", "below it a compiler is not worth its trouble"),
        Param("min_repeats", 3, "times", "a sequence that happens once is not worth fusing"),
    ),
)

_URL = "https://pytorch.org/docs/stable/torch.compiler.html"
_RISK = "The first calls compile and take long; changing shapes compile again."
_FIX = Fix("Let the compiler fuse them.", "y = block(x)", "block = torch.compile(block)\ny = block(x)", _URL, _RISK)
_COMPILED = Fix(
    "Let the compiler fuse these as well: compile their part too, or look for what splits it (TORCH_LOGS=graph_breaks) "
    "and for a backend that fuses (inductor does).",
    url=_URL,
    risk=_RISK,
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    facts = facts_of(ctx)
    runs = elementwise_runs(facts, int(ctx.params["min_length"]))
    by_start = {int(run[0]): run for run in runs}
    out = []
    for starts in group_by_frame(ctx, facts, by_start).values():
        if len(starts) < ctx.params["min_repeats"]:
            continue
        ops = np.concatenate([by_start[s] for s in starts])
        nodes = nodes_of(facts, ops)  # a compiler fuses the backward pass as well
        work = counted_kernels(facts, facts.device_below_all(np.append(ops, nodes).astype(np.int32)))
        took = total_ns(facts, work)
        if took < ctx.params["min_share"] * max(facts.kernel_ns, 1):
            continue
        length = len(ops) / len(starts)
        made = suggestion(
            ctx,
            RULE.id,
            "Small kernels could be fused: {share_pct:.0f} % of the kernel time",
            "{count} {count|time|times}, {length:.0f} small element-wise operators pass over the same data one "
            "after the other "
            "({names}, ...): "
            "{took_ms:time}. A compiler can make one kernel of each sequence, which reads and "
            "writes memory once. "
            "The saving assumes that the memory is the limit, so that a fused kernel takes the time of one of "
            "them; only a test shows how much it gains.",
            _FIX,
            [
                evidence(facts, "Sequences", len(starts), "", starts),
                evidence(facts, "Kernels", len(work), "", work),
                evidence(facts, "Their time", took / 1e6, "ms", work),
            ],
            values={
                "length": length,
                "count": len(starts),
                "names": ", ".join(ctx.trace.name(int(o)) for o in by_start[starts[0]][:3]),
                "took_ms": took / 1e6,
                "share_pct": 100 * took / max(facts.kernel_ns, 1),
            },
            anchors=starts,
            effects=[Effect(EffectKind.SCALE_DEVICE, tuple(work.tolist()), 1.0 / max(length, 1.0))],
        )
        out.append(with_compiled(facts, made, work, _COMPILED))
    return out
