"""Recordings of programs that compute on the CPU: what can be told is told, and priced by the CPU's time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core.analysis import Analysis, analyze
from core.suggestions import Outcome
from core.trace import Trace
from tests.core.rules.kit import Program, run_rule, sim
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
