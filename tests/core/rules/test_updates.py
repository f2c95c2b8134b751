"""Loops of a program's own that update tensor after tensor: an average of the weights, an optimizer by hand."""

from __future__ import annotations

import pytest

from core.analysis import analyze
from core.suggestions import Suggestion
from core.trace import Trace
from tests.core.rules.kit import built, run_rule, steps
from tests.trace_builder import TraceBuilder

RULE = "single-tensor-optimizer"
EMA = ("mul_", "add_")


def loop(*names: str, tensors: int = 30, inside: str = "", gpu: bool = True, frame: str = "") -> TraceBuilder:
    """Three steps, each with a product and a loop over tensors; ``inside`` is a range or operator around the loop."""
    builder = steps(3, 4000, **({} if gpu else {"gpu": None}))
    for number in range(3):
        at = number * 4000.0
        builder.op("aten::mm", at + 5, 40)
        if gpu:
            builder.launch("gemm", at + 10, 5, at + 50, 100)
        if frame:
            builder.python(frame, at + 100, 3800)
        if inside:
            (builder.op if "::" in inside else builder.range)(inside, at + 100, 3800)
        for k in range(tensors * len(names)):
            start = at + 110 + 18 * k
            builder.op(f"aten::{names[k % len(names)]}", start, 15)
            if gpu:
                builder.launch("vectorized_elementwise_kernel", start + 5, 5, start + 12, 2)
    return builder


def found(trace: Trace) -> list[Suggestion]:
    return list(run_rule(RULE, trace).suggestions)


@pytest.mark.parametrize("names", [EMA, ("lerp_",), ("mul", "mul", "add", "copy_"), ("sub", "div", "add_")])
def test_a_loop_that_updates_tensor_by_tensor_is_found(names: tuple[str, ...]) -> None:
    tensors = 45
    listed = found(built(loop(*names, tensors=tensors, frame="train.py(7): update_ema")))
    (one,) = listed
    assert one.headline == f"A loop updates tensor by tensor: {tensors * len(names)} operators each time"
    assert (one.values["times"], one.source.function) == (3, "update_ema")
    assert "_foreach_" in one.fix.after
    assert len(one.effects[0].slices) == 3 * tensors * len(names)


def test_it_is_priced_and_not_told_to_be_fused_by_a_compiler() -> None:
    analysis = analyze(built(loop(*EMA)))
    (one,) = [s for s in analysis.suggestions if s.rule_id == RULE]
    assert one.saving.ns and one.saving.basis == "rough"
    assert "fusible-kernel-sequence" not in [s.rule_id for s in analysis.suggestions]


@pytest.mark.parametrize(
    "builder",
    [
        loop(*EMA, tensors=12),  # too few
        loop(*EMA, inside="autograd::engine::evaluate_function: AddBackward0"),  # gradients that are summed
        loop(*EMA, inside="aten::_foreach_add_"),  # how the CPU does it
        loop("mul", "add"),  # arithmetic that keeps its input
        loop("mul_", "add_", "mm"),  # a layer after the other
        loop("copy_"),  # moves
    ],
)
def test_what_only_looks_like_it_is_left_alone(builder: TraceBuilder) -> None:
    assert found(built(builder)) == []


def test_the_optimizer_s_own_is_told_once() -> None:
    (one,) = found(built(loop(*EMA, inside="Optimizer.step#SGD.step")))
    assert one.headline == "The optimizer goes tensor by tensor: 60 operators a step"


def test_on_a_cpu_only_short_operators_are_worth_a_list() -> None:
    (one,) = found(built(loop(*EMA, gpu=False)))
    assert one.values["left_pct"] == 60
    slow = steps(3, 4000, gpu=None)
    for number in range(3):
        for k in range(60):
            slow.op(f"aten::{EMA[k % 2]}", number * 4000.0 + 10 + 60 * k, 55)
    assert found(built(slow)) == []
