"""Work that a program does again in every step: models copied as new objects, tokens computed anew."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.analysis import analyze
from core.suggestions import Outcome
from core.trace import Trace
from tests.core.rules.cases_host import _copied, _generated
from tests.core.rules.kit import built, run_rule
from tests.trace_builder import TraceBuilder


@pytest.mark.parametrize(
    "trace",
    [
        lambda: _generated((9, 9, 9, 9, 9)),  # batches of one length
        lambda: _generated((9, 10, 11)),  # too few to tell
        lambda: _generated((9, 14, 3, 22, 7, 8)),  # lengths of a data set
        lambda: _generated((9, 10, 11, 12, 13), joins=False),  # sentences sorted by length
    ],
)
def test_other_lengths_are_no_generation(trace: Callable[[], Trace]) -> None:
    assert run_rule("generation-without-cache", trace()).outcome is Outcome.CLEAN


def test_a_backward_pass_means_training_on_batches_of_growing_length() -> None:
    builder = TraceBuilder(gpu=None)
    for number, length in enumerate((8, 9, 10, 11, 12)):
        at = number * 1000.0
        sizes = [[2, 4, length, 32]] * 3
        builder.step(number, at, 1000).op("aten::scaled_dot_product_attention", at + 5, 100, Input_Dims=sizes)
        builder.op("aten::cat", at + 200, 10).op("autograd::engine::evaluate_function: CatBackward0", at + 300, 50)
    assert run_rule("generation-without-cache", built(builder)).outcome is Outcome.CLEAN


def test_what_is_left_of_a_copy_are_its_operators() -> None:
    analysis = analyze(_copied(5))
    (found,) = [s for s in analysis.suggestions if s.rule_id == "model-copied-in-step"]
    assert found.values["tensors"] == 5
    assert found.values["left_pct"] == pytest.approx(20)  # five times 20 of 500 us
    assert found.saving.pct == pytest.approx(40, abs=1)  # 400 of 1000 us
    assert "python-work-in-step" not in {s.rule_id for s in analysis.suggestions}  # one fault, one card


@pytest.mark.parametrize(
    "trace", [lambda: _copied(1), lambda: _copied(5, caller="torch/optim/swa_utils.py(200): __init__")]
)
def test_a_single_tensor_or_a_librarys_own_copy_is_no_copy_of_a_model(trace: Callable[[], Trace]) -> None:
    assert run_rule("model-copied-in-step", trace()).outcome is Outcome.CLEAN
