"""A GPU is there, but the model computes on the CPU.

What it finds
-------------
A trace whose header names a GPU, with heavy operators (products, convolutions) on the CPU and no launch at all. Where
the GPU works: long operators that launch nothing, during which it idles for a good part of the step.

Why it costs time
-----------------
A GPU computes such operators tens of times faster.

Blind spots
-----------
A recording without GPU activity looks alike, but has launches without kernels: then nothing is reported here. Small
models can be faster on the CPU. The saving is unknown until it is tried.

How to fix
----------
``model.to('cuda')``, and the inputs too.

Sources
-------
measured on recorded traces (a laptop GPU left unused).
"""

from __future__ import annotations

import numpy as np

from core import sets
from core.kinds import HOST_CALLS, SliceKind
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.host_compute import host_compute
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import need
from core.suggestions import Effect, EffectKind, Fix, Needs, NotChecked, Param, Rule, RuleContext, Suggestion

RULE = Rule(
    id="model-on-cpu",
    title="The model runs on the CPU",
    severity_floor="high",
    needs=Needs.OPS,
    params=(
        Param("min_share", 0.3, "share of the recording", "time in products and convolutions on the CPU"),
        Param("min_ms", 1, "ms", "anything shorter is no model"),
        Param("min_typical_us", 100, "us", "per operator (median); a mere launch takes less"),
        Param("min_idle", 0.1, "share of the step", "the GPU idles for operators on the CPU"),
    ),
)
_HEAVY = (
    r"^aten::(mm|addmm|bmm|baddbmm|linear|conv\dd|mkldnn_.*|native_batch_norm|_scaled_dot_product.*|max_pool2d.*|lstm)$"
)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report once."""
    facts, trace = facts_of(ctx), ctx.trace
    if trace.has_device_work:
        return _part_of_it(ctx, facts)
    need(trace.meta.devices, "the trace names no GPU, so there may be none to move the model to.")
    if trace.report.is_cut_off:
        raise NotChecked("The file ends early: the GPU's work may have come after the cut. Record or copy it again.")
    if len(facts.where(lambda n: "Launch" in n, *HOST_CALLS)):
        raise NotChecked("Launches were recorded but no GPU work, so what ran on the GPU is unknown.")
    heavy = facts.in_steps(facts.matching(_HEAVY, SliceKind.CPU_OP))
    heavy = heavy[~facts.inside(heavy, heavy)]
    took = total_ns(facts, heavy)
    if took < max(ctx.params["min_share"] * facts.window_ns, ctx.params["min_ms"] * 1e6):
        return []
    on_cpu = len(facts.matching(r"^aten::(_?mkldnn|thnn_conv|_slow_conv)", SliceKind.CPU_OP)) > 0
    if len(trace.memory) and bool((trace.memory.device >= 0).any()):
        raise NotChecked("Memory of the GPU was used, but its work was not recorded.")
    typical = sets.median(trace.slices.dur_ns[heavy])  # the first one may load a library
    if not on_cpu and typical < ctx.params["min_typical_us"] * 1e3:
        raise NotChecked("The operators are as short as launches: they may have run on the GPU without being recorded.")
    return [
        suggestion(
            ctx,
            RULE.id,
            "The model runs on the CPU although there is a GPU",
            "{count} {count|heavy operator|heavy operators} computed on the CPU for {took_ms:time}, and nothing was "
            "launched on {device}.",
            Fix(
                "Move the model and its inputs to the GPU.",
                "model = Net()\nout = model(x)",
                'model = Net().to("cuda")\nout = model(x.to("cuda", non_blocking=True))',
                "https://pytorch.org/docs/stable/notes/cuda.html",
                "The model and a batch must fit into the GPU's memory.",
            ),
            [evidence(facts, "Heavy operators on the CPU", len(heavy), "", heavy)],
            values={"device": trace.meta.devices[0].name, "count": len(heavy), "took_ms": took / 1e6},
            anchors=heavy,
        )
    ]


def _part_of_it(ctx: RuleContext, facts: Facts) -> list[Suggestion]:
    """The suggestion where the GPU works, and idles while operators compute on the CPU."""
    found, slices = host_compute(facts), ctx.trace.slices
    if not len(found.ops) or found.idle_ns < ctx.params["min_idle"] * facts.window_ns:
        return []
    took = np.bincount(slices.name_id[found.ops], weights=slices.dur_ns[found.ops])
    longest = int(found.ops[np.argmax(slices.dur_ns[found.ops])])
    return [
        suggestion(
            ctx,
            RULE.id,
            "The GPU idles while `{op}` computes on the CPU: {share_pct:.0f} % of the step",
            "{count} {count|operator|operators} without any launch took {took_ms:time} of the CPU per step, most of "
            "that `{op}`: their tensors lie in the CPU's memory. For {idle_ms:time} of it the GPU had nothing to do. "
            "The saving assumes that this work takes next to no time on the GPU, or is done beside the step.",
            Fix(
                "Move the tensors to the GPU before they are worked on, or do this work in the loader's workers.",
                'x = augment(x)                                   # on the CPU\nx = x.to("cuda")',
                'x = x.to("cuda", non_blocking=True)\nx = augment(x)                                   # on the GPU',
                "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
                "Random numbers from the GPU's generator differ from those of the CPU's; the tensors take memory "
                "there.",
            ),
            [
                evidence(facts, "Operators on the CPU", len(found.ops), "", found.ops),
                evidence(facts, "GPU idle during them, per step", facts.per_step(found.idle_ns) / 1e6, "ms", found.ops),
            ],
            values={
                "op": ctx.trace.strings[int(took.argmax())],
                "share_pct": 100.0 * found.idle_ns / max(facts.window_ns, 1),
                "count": len(found.ops),
                "took_ms": facts.per_step(total_ns(facts, found.ops)) / 1e6,
                "idle_ms": facts.per_step(found.idle_ns) / 1e6,
            },
            anchors=found.ops,
            at=longest,
            effects=[Effect(EffectKind.SCALE_HOST, tuple(found.ops.tolist()), 0.0, assumed=True)],
        )
    ]
