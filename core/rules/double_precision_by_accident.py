"""The program computes in double precision.

What it finds
-------------
Kernels whose names say double precision (``dgemm``, ``<double``) that take a noticeable part of the time; on a CPU,
products and convolutions whose inputs are of type ``double`` (with shapes).

Why it costs time
-----------------
Double precision runs at half the speed of single precision on data centre GPUs and at a thirty-second or sixty-fourth
on others, at half the speed on CPUs, and moves twice the bytes. It often comes from a NumPy array without a stated
type.

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

from core.kinds import SliceKind
from core.rule_tools.backward import nodes_of
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.kernel_names import (
    is_double,
    kernels_by_name,
)
from core.rule_tools.report import evidence, group_by_frame, suggestion, total_ns
from core.rule_tools.subjects import PRODUCTS, need
from core.sets import distinct
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion
from core.tables import I32

RULE = Rule(
    id="double-precision-by-accident",
    title="Double precision",
    needs=Needs.NOTHING,
    params=(
        Param("min_share", 0.02, "share of the kernels' time", "metrics in double precision cost nothing"),
        Param("look_at", 16, "operators", "arguments are read from the file: some of a step's products are enough"),
        Param("single_factor", 0.5, "of the time", "half the bytes and twice the rate at least"),
    ),
)


_FIX = Fix(
    "State the type where the tensor is made.",
    "x = torch.from_numpy(array)",
    "x = torch.from_numpy(array.astype(np.float32))      # and no model.double()",
    "https://pytorch.org/docs/stable/tensor_attributes.html",
    "Results have seven digits instead of sixteen.",
)
_MOST = 400  # operators of one step, where only some are double
_PRODUCTS = r"^aten::(addmm|mm|bmm|baddbmm|conv\dd|_convolution|mv|addmv)$"


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report each place once."""
    facts = facts_of(ctx)
    facts.require_compute()
    if facts.on_cpu:
        return _on_cpu(ctx, facts)
    need(facts.kernels, "the GPU's work in this trace is copies only.")
    picked = [ids for name, ids, _ in kernels_by_name(facts) if is_double(name)]
    work = np.concatenate(picked) if picked else np.empty(0, dtype=np.int32)
    if not len(work) or total_ns(facts, work) < ctx.params["min_share"] * max(facts.kernel_ns, 1):
        return []
    out = []
    for ids in group_by_frame(ctx, facts, [int(w) for w in work]).values():
        took = total_ns(facts, ids)
        ops = [op for op in distinct(facts.trace.links.op_of[ids]).tolist() if op >= 0]
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
                _FIX,
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


def _double(facts: Facts, ops: I32) -> list[int]:
    facts.read_args(ops)
    return [int(op) for op in ops if "double" in facts.types(int(op))]


def _on_cpu(ctx: RuleContext, facts: Facts) -> list[Suggestion]:
    """Products of double precision on the CPU, by place."""
    ops = facts.in_steps(facts.matching(_PRODUCTS, SliceKind.CPU_OP))
    ops = ops[~facts.inside(ops, ops)]
    need(ops, PRODUCTS)
    step = facts.in_first_step(ops)
    looked = step[:: max(len(step) // int(ctx.params["look_at"]), 1)]
    double = _double(facts, looked)
    need(any(facts.types(int(op)) for op in looked), "the operators' types were not recorded (record_shapes=True).")
    if not double:
        return []
    # steps resemble each other: where all that was looked at is double, the whole program is
    double = ops.tolist() if len(double) == len(looked) else _double(facts, step[:_MOST])
    least_ns = ctx.params["min_share"] * (facts.window_ns if len(double) == len(ops) else facts.sustained_ns)
    backward = np.asarray(nodes_of(facts, double), dtype=np.int32)  # counted with the forward products that recorded it
    double = [op for op, of_pass in zip(double, facts.inside(np.asarray(double), backward), strict=True) if not of_pass]
    out = []
    for ids in group_by_frame(ctx, facts, double).values():
        nodes = nodes_of(facts, ids)
        took = total_ns(facts, [*ids, *nodes])
        if took < least_ns:
            continue
        out.append(
            suggestion(
                ctx,
                RULE.id,
                "Matrix products are computed in double precision",
                "{count} {count|product or convolution works|products and convolutions work} on 64-bit numbers, "
                "{took_ms:time} with {count|its|their} backward pass. NumPy's default type is double, and one such "
                "tensor makes everything computed from it double, too. The saving assumes that {left_pct:.0f} % of the "
                "time is left.",
                _FIX,
                [
                    evidence(facts, "Products in double precision", len(ids), "", ids),
                    evidence(facts, "Their time", took / 1e6, "ms", [*ids, *nodes]),
                ],
                values={"count": len(ids), "took_ms": took / 1e6, "left_pct": 100 * ctx.params["single_factor"]},
                anchors=ids,
                effects=[Effect(EffectKind.SCALE_HOST, (*ids, *nodes), ctx.params["single_factor"])],
            )
        )
    return out
