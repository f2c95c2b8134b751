"""A matrix product in half precision has sizes that are no multiple of eight.

What it finds
-------------
``aten::mm``, ``bmm`` or ``addmm`` on half or bfloat16 tensors with a dimension that is not divisible by eight, among
the products that take longest.

Why it costs time
-----------------
Tensor cores work on tiles; odd sizes leave part of each tile unused or need slower kernels.

Blind spots
-----------
New cuBLAS pads by itself, so the benefit on recent GPUs is small; vocabulary sizes matter most. The saving is known
only where the same step holds a product of fitting sizes, about as large, that runs faster: padded, the odd ones are
taken to run at its pace, the work of the padding included. Traces before strides were recorded show a transposed matrix
as if it were not.

How to fix
----------
Pad the size to a multiple of 8 (64 on A100 and later).

Sources
-------
PyTorch's former pattern matcher (MatMulDimInFP16); NVIDIA's matrix multiplication guide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.rule_tools.attention import find_attention
from core.rule_tools.facts import Facts, facts_of
from core.rule_tools.report import evidence, suggestion, total_ns
from core.rule_tools.subjects import PRODUCTS, need
from core.sets import among, distinct
from core.suggestions import Effect, EffectKind, Fix, Needs, Param, Rule, RuleContext, Suggestion
from core.tables import I32

RULE = Rule(
    id="matmul-dims-misaligned",
    title="Matrix sizes that tensor cores do not like",
    needs=Needs.DEVICE | Needs.SHAPES | Needs.OPS,
    params=(
        Param("multiple", 8, "elements", "tile size of tensor cores for half precision"),
        Param("min_share", 0.05, "share of the kernels' time", "of the products concerned"),
        Param("min_part", 0.25, "of the operations", "of a product of fitting sizes that shows what pace is possible"),
        Param("look_at", 20, "operators", "arguments are read from the file: only the longest products are looked at"),
    ),
)
_WHAT = (
    "Half-precision products have sizes that are no multiple of {multiple:.0f}: {sizes}. "
    "Tensor cores work on tiles. Of the longest products of one step, {count} {count|has|have} odd sizes and "
    "{count|takes|take} {longest_ms:time}, at {now:.3g} TFLOP/s; padding adds {more_pct:.1f} % of work."
)
_PRICED = (
    "The fastest product of fitting sizes that is about as large runs at {pace:.3g} TFLOP/s. The saving assumes that "
    "the padded ones do, too, so that {left_pct:.0f} % of their time is left."
)
_UNKNOWN = (
    "What that saves is not known: no product of fitting sizes that is about as large ran faster in this recording, "
    "and how well a library copes with odd sizes is its own matter. Try it."
)
_PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")


@dataclass(frozen=True)
class _Product:
    """A product in half precision: its own floating-point operations, those with padded sizes, and its time, ns."""

    op: int
    flops: float
    padded: float
    took_ns: int
    odd: tuple[str, ...]  # operands of odd size

    @property
    def rate(self) -> float:
        """Operations per ns."""
        return self.flops / max(self.took_ns, 1)


def check(ctx: RuleContext) -> list[Suggestion]:
    """Report all products of odd size together."""
    facts = facts_of(ctx)
    every = facts.in_steps(facts.ops(*_PRODUCTS))
    need(every, PRODUCTS)
    # sizes of attention follow from the sequence, which is not padded but left to the fused form: a rule of its own
    attention = np.asarray(sorted(op for ops in find_attention(facts) for op in ops), dtype=np.int32)
    every = every[~(facts.inside(every, attention) | among(every, attention))]
    ops = facts.in_first_step(every)
    longest = ops[(-facts.device_ns(ops)).argsort(kind="stable")[: int(ctx.params["look_at"])]].tolist()
    facts.read_args(longest)
    half = [op for op in longest if any("Half" in t or "BFloat16" in t for t in facts.types(op))]
    need(half, "none of the longest matrix products is in half precision.")
    products = [_read(facts, op, int(ctx.params["multiple"])) for op in half]
    odd = [product for product in products if product.odd]
    took = sum(product.took_ns for product in odd)
    whole = facts.kernel_ns / (max(facts.n_steps, 1) if len(ops) < len(every) else 1)
    if not odd or took < ctx.params["min_share"] * max(whole, 1):
        return []
    pace = _pace(products, odd, ctx.params["min_part"])
    left = min(sum(p.padded for p in odd) / pace.rate / max(took, 1), 1.0) if pace is not None else 1.0
    sizes = sorted({size for product in odd for size in product.odd})
    work = facts.device_below_all(_in_each_step(facts, every, ops, [p.op for p in odd]))
    told: dict[str, Any] = {} if pace is None else {"pace": pace.rate / 1e3, "left_pct": 100.0 * left}
    shown = [evidence(facts, "Products of odd size", len(odd), "", [p.op for p in odd])]
    if pace is not None:
        shown.append(evidence(facts, "The fastest one of fitting size", told["pace"], "TFLOP/s", [pace.op]))
    made = suggestion(
        ctx,
        RULE.id,
        "Matrix sizes are no multiple of {multiple:.0f}, such as {size}",
        _WHAT,
        Fix(
            "Pad the sizes.",
            "nn.Embedding(50257, 768)",
            "nn.Embedding(50304, 768)       # 50257 padded to a multiple of 64",
            "https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html",
            "Padded classes must be masked in the loss.",
        ),
        [evidence(facts, "Products of odd size", len(odd), "", [p.op for p in odd])]
        + ([evidence(facts, "The fastest one of fitting size", told["pace"], "TFLOP/s", [pace.op])] if pace else []),
        values={
            "multiple": ctx.params["multiple"],
            "size": min(sizes, key=len),
            "sizes": ", ".join(sizes[:3]),
            "count": len(odd),
            "longest_ms": took / 1e6,
            "now": sum(p.flops for p in odd) / max(took, 1) / 1e3,
            "more_pct": 100.0 * (sum(p.padded for p in odd) / max(sum(p.flops for p in odd), 1.0) - 1.0),
        }
        | told,
        anchors=[p.op for p in odd],
        effects=[Effect(EffectKind.SCALE_DEVICE, tuple(work.tolist()), left)] if pace is not None else [],
    )
    return [replace(made, more=(*made.more, _PRICED if pace is not None else _UNKNOWN))]


def _read(facts: Facts, op: int, multiple: int) -> _Product:
    """Sizes and time of one product."""
    dims, strides = facts.dims(op), facts.strides(op)
    operands = [at for at, size in enumerate(dims) if len(size) >= 2]
    odd = []
    for at in operands:
        size = dims[at]
        # the size that lies in one piece is what counts: the last one, but for a transposed matrix; of the result, too
        turned = at < len(strides) and len(strides[at]) == len(size) and strides[at][-2] == 1 != strides[at][-1]
        if size[-2 if turned else -1] % multiple or (at == operands[-1] and size[-1] % multiple):
            odd.append("x".join(str(n) for n in size))
    flops = padded = 0.0
    if len(operands) >= 2:
        left, right = dims[operands[-2]], dims[operands[-1]]
        rows, sizes = 2.0 * math.prod(left[:-1]), (left[-1], right[-1])
        flops = rows * math.prod(sizes)
        padded = rows * math.prod(-(-n // multiple) * multiple for n in sizes)
    return _Product(op, flops, padded, total_ns(facts, facts.device_below(op)), tuple(odd))


def _pace(products: Sequence[_Product], odd: Sequence[_Product], min_part: float) -> _Product | None:
    """The fastest product of fitting sizes that is about as large, where it is faster than those of odd size."""
    usual = sum(p.flops for p in odd) / len(odd)
    even = [p for p in products if not p.odd and p.took_ns and p.flops >= min_part * usual]
    best = max(even, key=lambda p: p.rate, default=None)
    now = sum(p.flops for p in odd) / max(sum(p.took_ns for p in odd), 1)
    return best if best is not None and best.rate > now > 0 else None


def _in_each_step(facts: Facts, every: I32, first: I32, odd: Sequence[int]) -> I32:
    """int32[k]: the same products in all steps: those at the same places of steps with as many products."""
    places = among(first, odd).nonzero()[0]
    rows = facts.figures.step_of[every]
    steps = [every[rows == row] for row in distinct(rows).tolist()]
    found: I32 = np.concatenate([ops[places] for ops in steps if len(ops) == len(first)])
    return found
