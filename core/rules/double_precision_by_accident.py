"""Kernels compute in double precision.

What it finds
-------------
Kernels whose names say double precision (``dgemm``, ``<double``) that take a noticeable part of the time.

Why it costs time
-----------------
Double precision runs at half the speed of single precision on data centre GPUs and at a thirty-second or sixty-fourth
on others, and moves twice the bytes. It often comes from a NumPy array without a stated type.

Blind spots
-----------
Scientific programs need it. Tiny kernels of metrics do not matter and stay below the threshold. The saving assumes
half the time, the least there is to gain.

How to fix
----------
``dtype=torch.float32`` where the tensor is made.

Sources
-------
CUDA's table of arithmetic throughput; measured on recorded traces (222 such kernels).
"""

from __future__ import annotations

import numpy as np

from core.rule_tools.facts import facts_of
from core.rule_tools.kernel_names import (
    is_double,
    kernels_by_name,
)
from core.rule_tools.report import evidence, group_by_frame, suggestion, total_ns
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="double-precision-by-accident",
    title="Double precision",
    needs=Needs.DEVICE | Needs.KERNELS,
    params=(
        Param("min_share", 0.02, "share of the kernels' time", "metrics in double precision cost nothing"),
        Param("single_factor", 0.5, "of the time", "half the bytes and twice the rate at least"),
    ),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    facts = facts_of(ctx)
    picked = [ids for name, ids, _ in kernels_by_name(facts) if is_double(name)]
    work = np.concatenate(picked) if picked else np.empty(0, dtype=np.int32)
    if not len(work) or total_ns(facts, work) < ctx.params["min_share"] * max(facts.kernel_ns, 1):
        return []
    out = []
    for ids in group_by_frame(ctx, facts, [int(w) for w in work]).values():
        took = total_ns(facts, ids)
        ops = [int(o) for o in np.unique(facts.trace.links.op_of[ids]) if o >= 0]
        out.append(
            suggestion(
                ctx,
                RULE.id,
                "Double precision takes {share_pct:.1f} % of the kernel time",
                "{count} {count|kernel works|kernels work} on 64-bit numbers ({names}), {took_ms:time}. NumPy's "
                "default "
                "type is double, and "
                "one such tensor makes everything computed from it double, too. The saving assumes that "
                "{left_pct:.0f} % of the time is left.",
                Fix(
                    "State the type where the tensor is made.",
                    "x = torch.from_numpy(array).cuda()",
                    "x = torch.from_numpy(array.astype(np.float32)).cuda()",
                    "https://pytorch.org/docs/stable/tensor_attributes.html",
                    "Results have seven digits instead of sixteen.",
                ),
                [evidence(facts, "Kernels", len(ids), "", ids), evidence(facts, "Their time", took / 1e6, "ms", ids)],
                values={
                    "share_pct": 100 * took / facts.kernel_ns,
                    "count": len(ids),
                    "took_ms": took / 1e6,
                    "left_pct": 100 * ctx.params["single_factor"],
                    "names": ", ".join(sorted({ctx.trace.name(o) for o in ops})[:3]) or "unknown operators",
                },
                anchors=ops or [],
                occurrences=len(ids),
                at=ids[0],
                effects=[Effect(EffectKind.SCALE_DEVICE, tuple(ids), ctx.params["single_factor"])],
            )
        )
    return out
