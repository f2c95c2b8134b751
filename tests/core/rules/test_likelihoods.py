"""Losses of classes as people write them out: each way to write one, and what only looks like one."""

from __future__ import annotations

import pytest

from core.suggestions import EffectKind, Outcome, RuleResult
from core.trace import Trace
from tests.core.rules.kit import built, run_rule, steps

RULE = "hand-written-composite-op"
CPU = {"deviceProperties": []}
LOSS = "a negative log-likelihood loss"
SCORES, ONE_EACH = [64, 10], [64]


def _run(names: str, *, shapes: dict[str, list[int]] | None = None, frame: str = "") -> RuleResult:
    return run_rule(RULE, _trace(names, shapes or {}, frame))


def _trace(names: str, shapes: dict[str, list[int]], frame: str = "") -> Trace:
    """Three steps of operators next to each other; ``index/nonzero`` is one that calls another."""
    builder = steps(3, 10_000.0, **CPU)
    for number in range(3):
        at = number * 10_000.0 + 10
        if frame:
            builder.python(frame, at, 9_000)
        for k, name in enumerate(names.split()):
            op, _, below = name.partition("/")
            dims = {"Input_Dims": [shapes[op]]} if op in shapes else {}
            builder.op(f"aten::{op}", at + 10 + 300 * k, 200, **dims)
            if below:
                builder.op(f"aten::{below}", at + 20 + 300 * k, 50)
    return built(builder)


@pytest.mark.parametrize(
    "names",
    [
        "log_softmax unsqueeze gather mean neg",  # -logp.gather(1, y[:, None]).mean()
        "log_softmax arange index mean neg",  # -logp[torch.arange(n), y].mean()
        "log_softmax gather squeeze sum neg div",  # -logp.gather(1, y).squeeze(1).sum() / n
        "log_softmax gather sum div neg",
        "log_softmax index neg mean",
        "logsumexp sub index neg sum div",
        "exp sum log sub relu gather mean neg",
    ],
)
def test_ways_to_write_the_mean_of_the_targets(names: str) -> None:
    assert [s.values["what"] for s in _run(names).suggestions][-1] == LOSS


@pytest.mark.parametrize(
    "names",
    [
        "relu gather mean neg",  # of something that is no log-probability
        "log_softmax index/nonzero mean neg",  # a mask picks rows
        "log_softmax gather mul mean neg",  # a policy's gradient: weighted by the advantage
        "log_softmax gather mean",  # not the loss: its sign
        "log_softmax linear add relu linear add relu gather mean neg",  # too long ago
    ],
)
def test_what_only_looks_like_a_likelihood_is_none(names: str) -> None:
    assert _run(names).outcome is Outcome.CLEAN


@pytest.mark.parametrize(("left", "found"), [(ONE_EACH, True), ([64, 1], True), ([64, 5], False), ([30, 10], False)])
def test_shapes_tell_whether_one_element_of_each_row_is_picked(left: list[int], found: bool) -> None:
    result = _run("log_softmax gather mean neg", shapes={"gather": SCORES, "mean": left})
    assert bool(result.suggestions) is found


def test_a_label_smoothed_loss_is_named_as_such() -> None:
    (found,) = _run("log_softmax gather neg mean neg mul mul add mean").suggestions
    assert found.values["what"] == "a label-smoothed cross-entropy"
    assert "label_smoothing" in found.fix.after


@pytest.mark.parametrize(
    "names",
    [
        "one_hot to log_softmax mul sum mean neg",
        "log_softmax one_hot to mul sum neg mean",
        "log one_hot mul sum neg div",
    ],
)
def test_targets_made_one_hot_go_with_what_they_are_multiplied_by(names: str) -> None:
    trace = _trace(names, {})
    (found,) = run_rule(RULE, trace).suggestions
    assert found.values["what"] == "cross-entropy with one-hot targets"
    (effect,) = found.effects
    assert effect.kind is EffectKind.REMOVE_WORK
    gone = {trace.name(i) for i in effect.slices}
    assert "aten::one_hot" in gone
    assert "aten::log_softmax" not in gone


def test_soft_targets_are_no_one_hot_ones() -> None:
    assert _run("softmax log_softmax mul sum mean neg").outcome is Outcome.CLEAN
    assert _run("one_hot mul add log_softmax mul sum mean neg").outcome is Outcome.CLEAN  # smoothed by hand


@pytest.mark.parametrize("names", ["softmax log", "softmax add log"])
def test_the_logarithm_of_a_softmax_is_a_log_softmax(names: str) -> None:
    (found,) = _run(names).suggestions
    assert found.values["what"] == "log-softmax"
    assert _run(f"{names} mul sum").outcome is Outcome.CLEAN  # an entropy needs the probabilities as well


@pytest.mark.parametrize(
    "names",
    [
        "var_mean sub add sqrt div",
        "var_mean add rsqrt sub mul",
        "mean var add rsqrt sub mul",
        "mean sub square mean add sqrt div",
    ],
)
def test_ways_to_write_a_layer_norm(names: str) -> None:
    assert [s.values["what"] for s in _run(names).suggestions] == ["layer norm"]


@pytest.mark.parametrize(
    ("over", "found"), [("[-1]", True), ("[1, 2]", True), ("[0]", False), ("[0, 2]", False), ("", True)]
)
def test_a_norm_over_the_batch_is_no_layer_norm(over: str, found: bool) -> None:
    builder = steps(3, 10_000.0, **CPU)
    for number in range(3):
        for k, name in enumerate(("var_mean", "sub", "add", "sqrt", "div")):
            told = {"Input_Dims": [[8, 4, 16], []], "Concrete_Inputs": ["", over]} if not k else {}
            builder.op(f"aten::{name}", number * 10_000.0 + 10 + 300 * k, 200, **told)
    assert bool(run_rule(RULE, built(builder)).suggestions) is found


def test_what_a_library_of_torch_writes_itself_is_not_the_users_to_change() -> None:
    """``Categorical`` takes the logits' ``logsumexp`` away from them."""
    assert _run("logsumexp sub", frame="train.py(3): loss").suggestions
    assert not _run("logsumexp sub", frame="torch/distributions/categorical.py(50): __init__").suggestions
    assert not _run("logsumexp sub").suggestions  # nothing shows whose code it is


@pytest.mark.parametrize(
    ("names", "count"),
    [
        ("mul pow mul add mul tanh add mul", 1),  # 0.5 * x * (1 + torch.tanh(c * (x + 0.044715 * x ** 3)))
        (
            "pow mul add mul mul tanh add mul",
            1,
        ),  # inner = c * (x + 0.044715 * x ** 3); 0.5 * x * (1 + torch.tanh(inner))
        ("mul mul mul add mul tanh add mul mul", 1),  # 0.044715 * x * x * x, and x * (0.5 * (1 + ...))
        ("mul mul mul add mul mul tanh add mul", 1),
        ("mul mul add tanh mul", 0),  # the cell of an LSTM
        ("relu mul add mul tanh add mul relu", 0),  # no cube
    ],
)
def test_ways_to_write_a_gelu_with_tanh(names: str, count: int) -> None:
    assert [s.values["what"] for s in _run(names).suggestions] == ["GELU"] * count
