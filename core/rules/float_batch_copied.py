"""The batch is normalised on the GPU in several passes over it.

What it finds
-------------
A batch that was copied as bytes, converted to float (``aten::to``) and then divided, subtracted from and divided
again by separate operators of the same full shape, one kernel each.

Why it costs time
-----------------
Each of these kernels reads and writes the whole batch; the GPU's memory is the limit, not its arithmetic. Four passes
over a large batch can cost as much as a layer.

Blind spots
-----------
Augmentations between the passes are needed. Whether a float batch could have been sent as bytes cannot be told from a
trace, so that is not reported.

How to fix
----------
Send bytes, and do it in place in one pass, or let ``torch.compile`` fuse it.

Sources
-------
Arithmetic on the reference article (5.8 GB of traffic per step that no fix of it touches); PyTorch performance tuning
guide, 'Fuse operations'.
"""

from __future__ import annotations

from core.rule_tools.facts import facts_of
from core.rule_tools.normalise import normalise_runs
from core.rule_tools.report import evidence, suggestion, total_ns
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="float-batch-copied",
    title="The batch is normalised in several passes",
    needs=Needs.DEVICE | Needs.STEPS | Needs.OPS,
    params=(
        Param("min_passes", 3, "kernels", "two passes are hard to merge by hand"),
        Param("min_share", 0.02, "share of the step", "small batches are not worth it"),
    ),
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Find runs of arithmetic right after a conversion outside any other operator."""
    facts = facts_of(ctx)
    runs = normalise_runs(facts, int(ctx.params["min_passes"]))
    if not runs:
        return []
    ops = [op for run in runs for op in run]
    kernels = facts.device_below_all(ops)
    took = total_ns(facts, kernels)
    if took < ctx.params["min_share"] * facts.sustained_ns * max(facts.n_steps, 1):
        return []
    passes = len(ops) / len(runs)
    return [
        suggestion(
            ctx,
            RULE.id,
            "The batch is normalised in {passes:.0f} separate passes",
            "Each pass reads the whole batch from the GPU's memory and writes it back: {took_ms:time} for {count} "
            "{count|kernel|kernels}. In one pass it would take about {one_ms:time}.",
            Fix(
                "Do it in one pass.",
                "x = (x.to(torch.float32) / 255. - 0.5) / 0.5",
                "@torch.compile\ndef normalise(x):\n    return x.to(torch.float32) * (2 / 255) - 1\n\nx = normalise(x)",
                "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
                "The result may differ in the last digit.",
            ),
            [
                evidence(facts, "Kernels over the whole batch", len(kernels), "", kernels),
                evidence(facts, "Their time", took / 1e6, "ms", kernels),
            ],
            values={"passes": passes, "count": len(kernels), "took_ms": took / 1e6, "one_ms": took / passes / 1e6},
            anchors=[run[0] for run in runs],
            effects=[
                Effect(EffectKind.REMOVE_WORK, tuple(op for run in runs for op in run[1:])),
                Effect(EffectKind.SCALE_DEVICE, tuple(int(k) for r in runs for k in facts.device_below(r[0])), 1.0),
            ],
            hint="call:to,float",
        )
    ]
