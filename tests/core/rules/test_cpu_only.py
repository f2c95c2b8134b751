"""Recordings of programs that compute on the CPU: what can be told is told, and priced by the CPU's time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core.analysis import Analysis, analyze
from core.suggestions import Outcome
from core.trace import Trace
from tests.core.rules.kit import Program, built, run_rule, sim, steps
from tests.simulator import Machine

NO_DEVICE: dict[str, Any] = {"header": {"deviceProperties": []}}


def on_cpu(program: Program) -> Callable[[], Trace]:
    return sim(program, **NO_DEVICE)


def _work(m: Machine, us: float = 2000) -> None:
    with m.op("aten::mm", us=us):
        pass


def attention(m: Machine) -> None:
    _work(m)
    for name in ("bmm", "div", "softmax", "bmm"):
        with m.op(f"aten::{name}", us=200):
            pass


def optimizer(m: Machine) -> None:
    _work(m)
    with m.range("Optimizer.step#Adam.step"):
        for _ in range(60):
            with m.op("aten::mul_", us=20):
                pass


def halves_of_cross_entropy(m: Machine) -> None:
    _work(m)
    for name in ("exp", "sum", "log", "sub", "nll_loss_nd"):
        with m.op(f"aten::{name}", us=100):
            pass


def found(analysis: Analysis, rule: str) -> Any:
    return next((s for s in analysis.suggestions if s.rule_id == rule), None)


@pytest.mark.parametrize(
    ("rule", "program", "least_pct", "most_pct"),
    [
        ("unfused-attention", attention, 10, 16),  # half of 0.8 of 2.8 ms
        ("single-tensor-optimizer", optimizer, 15, 22),  # half of 1.2 of 3.2 ms
        ("unfused-cross-entropy", halves_of_cross_entropy, 10, 14),
        ("hand-written-composite-op", halves_of_cross_entropy, 10, 14),
    ],
)
def test_found_and_priced_by_the_time_of_the_cpu(
    rule: str, program: Program, least_pct: float, most_pct: float
) -> None:
    suggestion = found(analyze(on_cpu(program)()), rule)
    assert suggestion is not None
    assert suggestion.saving.pct is not None
    assert least_pct < suggestion.saving.pct < most_pct
    assert "GPU" not in suggestion.headline
    assert "GPU" not in suggestion.explanation
    assert "kernel" not in suggestion.explanation


def test_attention_inside_an_operator_of_torch_is_not_the_program_s_to_replace() -> None:
    def fast_path(m: Machine) -> None:
        with m.op("aten::_transformer_encoder_layer_fwd"), m.op("aten::_native_multi_head_attention"):
            attention(m)

    assert found(analyze(on_cpu(fast_path)()), "unfused-attention") is None


@pytest.mark.parametrize(
    ("rule", "program"), [("unfused-attention", attention), ("single-tensor-optimizer", optimizer)]
)
def test_where_a_gpu_may_have_done_the_work_nothing_is_claimed(rule: str, program: Program) -> None:
    result = run_rule(rule, sim(program)())  # the same, but the header names a GPU
    assert result.outcome is Outcome.NOT_CHECKED
    assert "ProfilerActivity.CUDA" in result.reason


def test_a_data_set_that_makes_its_items_one_by_one_is_the_matter_of_the_loader() -> None:
    def loop(m: Machine) -> None:
        for _ in range(32):
            with m.op("aten::select", us=20):
                pass
            with m.op("aten::mul", us=40):
                pass

    def outside(m: Machine) -> None:
        _work(m)
        loop(m)

    def inside(m: Machine) -> None:
        with m.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
            loop(m)
        _work(m)

    rule = "loop-over-tensor-elements"
    assert run_rule(rule, on_cpu(inside)()).outcome is Outcome.CLEAN
    result = run_rule(rule, on_cpu(outside)())
    assert result.outcome is Outcome.FOUND
    assert "32 rounds" in result.suggestions[0].headline  # of one loop, not of all of them together


def test_a_forward_pass_in_training_mode_is_not_called_evaluation() -> None:
    def forward(m: Machine, training: bool) -> None:
        for number in range(8):
            with m.op("aten::linear", us=200, **{"Sequence number": 100 + number}):
                pass
            if training:
                with m.op("aten::dropout"), m.op("aten::bernoulli_", us=20):
                    pass

    rule = "evaluation-with-gradients"
    assert run_rule(rule, on_cpu(lambda m: forward(m, False))()).outcome is Outcome.FOUND
    assert run_rule(rule, on_cpu(lambda m: forward(m, True))()).outcome is Outcome.CLEAN


@pytest.mark.parametrize(("rule", "workers"), [("loader-without-workers", 0), ("loader-starves-step", 2)])
def test_a_slow_loader_on_the_cpu_is_told_in_words_of_the_cpu(rule: str, workers: int) -> None:
    def program(m: Machine) -> None:
        m.loader(9000, workers)
        _work(m)

    result = run_rule(rule, on_cpu(program)())
    assert result.outcome is Outcome.FOUND, result
    shown = result.suggestions[0]
    texts = [shown.headline, shown.explanation, shown.fix.summary, shown.fix.after, shown.fix.risk]
    texts += [e.label for e in shown.evidence]
    assert not any("GPU" in text or "pin_memory" in text for text in texts)
    assert "upper bound" in shown.explanation  # how many cores are free is not in the trace
    assert "free" in shown.explanation
    assert f"num_workers={4 if not workers else 2 * workers}" in shown.fix.after  # as many as the text assumes


def test_the_fix_names_the_optimizer_that_was_seen() -> None:
    def program(name: str) -> Program:
        def run(m: Machine) -> None:
            _work(m)
            with m.range(f"Optimizer.step#{name}.step"):
                for _ in range(60):
                    with m.op("aten::add_", us=20):
                        pass

        return run

    for name, before, after in (
        ("SGD", "torch.optim.SGD(", "fused=True"),
        ("RMSprop", "torch.optim.RMSprop(", "foreach=True"),
        ("Lion", "p.add_(", "_foreach_add_"),
    ):
        fix = run_rule("single-tensor-optimizer", on_cpu(program(name))()).suggestions[0].fix
        assert before in fix.before
        assert after in fix.after
        assert "AdamW" not in fix.before + fix.after


@pytest.mark.parametrize(
    ("rounds", "then", "found"), [(30, "aten::mean", True), (12, "aten::mean", False), (30, "", False)]
)
def test_rows_picked_group_by_group_are_a_loop(rounds: int, then: str, found: bool) -> None:
    """``x[neighbours[i]].mean(0)`` for each node; a dozen tensors of a batch that are indexed alike are none."""
    builder = steps(3, 4000.0, deviceProperties=[])
    for i in range(3):
        builder.op("aten::mm", i * 4000.0 + 3500, 100)
        for k in range(rounds):
            at = i * 4000.0 + 20 + 100 * k
            builder.op("aten::index", at, 30)
            if then:
                builder.op(then, at + 40, 30)
    cards = run_rule("loop-over-tensor-elements", built(builder)).suggestions
    assert bool(cards) is found
    for card in cards:
        assert card.headline == "A Python loop picks rows group by group: 30 rounds"
        assert "index_add_" in card.fix.after


def _gate(us: float, *names: str, inside: str = "") -> Callable[[], Trace]:
    def program(m: Machine) -> None:
        _work(m)
        for name in names or ("mul", "add", "clamp", "sigmoid", "mul"):
            if inside:
                with m.op(inside), m.op(f"aten::{name}", us=us):
                    pass
            else:
                with m.op(f"aten::{name}", us=us):
                    pass

    return on_cpu(program)


def test_long_elementwise_operators_of_a_cpu_could_be_compiled_into_one() -> None:
    analysis = analyze(_gate(400)())
    fusible = found(analysis, "fusible-kernel-sequence")
    assert fusible.values["share_pct"] == pytest.approx(50, abs=2)
    assert fusible.saving.basis == "rough"
    assert fusible.saving.pct == pytest.approx(0.7 * fusible.values["share_pct"], abs=2)  # three tenths are left
    assert "C++" in fusible.fix.risk


@pytest.mark.parametrize(
    "trace",
    [
        _gate(20),  # a compiled loop takes about as long to start
        _gate(400, "add", "mul"),  # too few to gain
        _gate(60, "mul", "add", "sigmoid"),  # too small a part of the step
        _gate(400, "clamp", "clamp", "clamp", "clamp"),  # of one tensor after another
        _gate(400, inside="aten::logsumexp"),  # what an operator runs itself
    ],
)
def test_what_a_compiler_would_not_gain_on_a_cpu_is_left_alone(trace: Callable[[], Trace]) -> None:
    assert run_rule("fusible-kernel-sequence", trace()).outcome is Outcome.CLEAN


def test_double_products_of_the_backward_pass_are_no_second_finding() -> None:
    double = {"Input type": ["double", "double"], "Input Dims": [[8, 8], [8, 8]]}

    def program(m: Machine) -> None:
        with m.op("aten::mm", us=900, **{"Sequence number": 7}, **double):
            pass
        with m.thread("main"), m.node("MmBackward0", 7):
            for _ in range(2):
                with m.op("aten::mm", us=900, **double):
                    pass

    (found,) = run_rule("double-precision-by-accident", on_cpu(program)()).suggestions
    assert found.values["count"] == 3  # one in each step
    assert found.values["took_ms"] > 3 * 3 * 0.9  # the backward pass included
