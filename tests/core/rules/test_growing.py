"""Tensors that grow by ``torch.cat``, on both kinds of device, and joins that only resemble that."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from core.analysis import analyze
from core.suggestions import EffectKind, Outcome, Suggestion
from core.trace import Trace
from tests.core.rules.kit import built, run_rule
from tests.trace_builder import TraceBuilder

RULE = "tensor-grown-by-cat"
CACHE = ([2, 8, 500, 64], [2, 8, 1, 64])


def joined(pairs: Sequence[Sequence[Sequence[int]]], gpu: bool = False, us: float = 100) -> Trace:
    """Steps of two milliseconds; in each one join of tensors of these sizes, and another operator."""
    builder = TraceBuilder() if gpu else TraceBuilder(gpu=None)
    for number, pair in enumerate(pairs):
        at = number * 2000.0
        builder.step(number, at, 2000).op("aten::linear", at + 5, 600)
        if gpu:
            builder.launch("gemm", at=at + 10, call=5, start=at + 20, dur=900)
        sizes = [[list(size) for size in pair], []]
        builder.op("aten::cat", at + 650, us, Input_Dims=sizes, Input_type=["TensorList", "Scalar"])
        if gpu:
            builder.launch("CatArrayBatchedCopy", at=at + 660, call=5, start=at + 930, dur=1000)
    return built(builder)


def growing(long: Sequence[int], short: Sequence[int], axis: int, rounds: int = 6) -> list[list[list[int]]]:
    out = []
    for k in range(rounds):
        size = list(long)
        size[axis] += k * short[axis]
        out.append([size, list(short)])
    return out


def card(trace: Trace) -> Suggestion | None:
    return next((s for s in analyze(trace).suggestions if s.rule_id == RULE), None)


def test_a_cache_is_priced_by_the_share_of_what_is_new() -> None:
    found = card(joined(growing(*CACHE, axis=2), us=1000))
    assert found is not None
    assert found.headline == "A cache is copied anew for each token: 50 % of the time"
    assert "500 to 505 long, to add 1 element to its dimension 2" in found.explanation
    assert found.saving.ns == pytest.approx(950_000, rel=0.02)  # all but 5 %
    assert "static" in found.fix.after


def test_on_a_gpu_its_kernels_are_what_gets_shorter() -> None:
    found = card(joined(growing(*CACHE, axis=2), gpu=True))
    assert found is not None
    assert [(e.kind, len(e.slices), e.factor) for e in found.effects] == [(EffectKind.SCALE_DEVICE, 6, 0.05)]
    assert found.saving.ns == 0  # the CPU sets the pace of these steps


def test_results_that_are_collected_have_another_cure() -> None:
    found = card(joined(growing([640, 10], [64, 10], 0), us=800))
    assert found is not None
    assert found.headline == "A tensor is grown by `torch.cat`: 40 % of the time"
    assert "Collect the pieces in a list" in found.fix.summary


@pytest.mark.parametrize(
    "pairs",
    [
        [[*CACHE]] * 6,  # a skip connection: the same sizes each time
        growing(*CACHE, axis=2, rounds=3),  # too few to tell
        growing([4, 64, 32, 32], [4, 32, 32, 32], 1),  # features of a DenseNet
        growing([4, 512, 32, 32], [4, 32, 32, 32], 1),
        growing([8, 10], [4, 10], 0),  # still short
    ],
    ids=["same", "three", "features", "many-features", "short"],
)
def test_other_joins_are_left_alone(pairs: Sequence[Sequence[Sequence[int]]]) -> None:
    assert card(joined(pairs, us=1000)) is None


def test_little_time_is_no_card_and_no_shapes_decide_nothing() -> None:
    assert card(joined(growing(*CACHE, axis=2), us=10)) is None
    builder = TraceBuilder(gpu=None).step(1, 0, 100).op("aten::cat", 5, 80)
    result = run_rule(RULE, built(builder))
    assert result.outcome is Outcome.NOT_CHECKED
    assert "record_shapes" in result.reason
