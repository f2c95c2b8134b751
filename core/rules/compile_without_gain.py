"""``torch.compile`` around something too small to gain from it.

What it finds
-------------
Compiled regions (``Torch-Compiled Region``) that launch at most a few kernels each, with more CPU time in the wrapper
than those kernels run for.

Why it costs time
-----------------
Every call of a compiled function checks its guards and goes through its wrappers. With nothing to fuse, that is all
it adds.

Blind spots
-----------
Where the GPU is the limit the extra CPU time does not matter. Only a comparison with the uncompiled program proves
it.

How to fix
----------
Compile the whole model, not the leaf; or do not compile this one.

Sources
-------
the reference article on a loss function with seven faults (#7: 79 to 154 us).
"""

from __future__ import annotations

import numpy as np

from core.rule_tools.compiled import compiled_regions
from core.rule_tools.facts import facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import COMPILED, need
from core.sets import distinct
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="compile-without-gain",
    title="torch.compile gains nothing here",
    needs=Needs.DEVICE,
    params=(
        Param("max_kernels", 3, "kernels per call", "with more, there was something to fuse"),
        Param(
            "min_overhead",
            0.5,
            "share of the region's CPU time",
            "outside the launched code; below it the wrapper is cheap",
        ),
        Param("min_calls", 2, "calls", "the first call compiles"),
    ),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each compiled function once."""
    facts, trace = facts_of(ctx), ctx.trace
    found = compiled_regions(facts)
    need(found, COMPILED)
    out = []
    for name, regions in found.items():
        ids = [r for r in regions if len(facts.in_steps(np.asarray([r], dtype=np.int32)))]
        if len(ids) < ctx.params["min_calls"]:
            continue
        work = facts.device_below_all(ids)
        if len(work) > ctx.params["max_kernels"] * len(ids) or not len(work):
            continue
        host, device = total_ns(facts, ids), total_ns(facts, work)
        calls = distinct(trace.links.launch_of[work])
        launching = total_ns(facts, calls[calls >= 0])
        if host - launching < ctx.params["min_overhead"] * host or host < device:
            continue
        out.append(
            suggestion(
                ctx,
                RULE.id,
                "torch.compile wraps too little: {per_call:.0f} kernels per call",
                "{count} {count|call|calls} of the compiled function took {host_ms:time} of CPU time, of which only "
                "{launch_ms:time} "
                "launched kernels; these run for {device_ms:time}. The rest is the wrapper's own work: with so few "
                "kernels there is nothing to fuse. The saving assumes that without it the CPU needs three "
                "times what the launches alone take.",
                Fix(
                    "Compile the whole model, or leave this part alone.",
                    "criterion = torch.compile(torch.nn.CrossEntropyLoss())",
                    "criterion = torch.nn.CrossEntropyLoss()\n"
                    "model = torch.compile(model)      # where there is much to fuse",
                    "https://pytorch.org/docs/stable/torch.compiler.html",
                    "Measure both ways: only a comparison proves it.",
                ),
                [
                    evidence(facts, "Calls of the compiled function", len(ids), "", ids),
                    evidence(facts, "CPU time in them", host / 1e6, "ms", ids),
                    evidence(facts, "Kernels launched", len(work), "", work),
                ],
                values={
                    "count": len(ids),
                    "per_call": len(work) / len(ids),
                    "host_ms": host / 1e6,
                    "launch_ms": launching / 1e6,
                    "device_ms": device / 1e6,
                    "op_path": name,
                },
                anchors=ids,
                effects=[Effect(EffectKind.SCALE_HOST, tuple(ids), max(min(launching * 3 / max(host, 1), 1.0), 0.05))],
                hint="call:criterion,loss_fn,model",
            )
        )
    return out
