"""An environment that is stepped in Python between the model's calls, and what only resembles one."""

from __future__ import annotations

import pytest

from core.analysis import analyze
from core.suggestions import Suggestion
from core.trace import Trace
from tests.trace_builder import TraceBuilder

RULE = "environment-loop"


def moves(
    name: str = "game.py(30): step", inner: str = "", inside: bool = False, model: bool = True, op_us: float = 15
) -> Trace:
    """Steps on a CPU: twelve moves of 20 us, a model of 25 us before each, then training; two milliseconds or more."""
    builder, long_us = TraceBuilder(gpu=None), max(2000.0, 12 * (op_us + 30) + 800)
    for number in range(4):
        at = number * long_us
        builder.step(number, at, long_us).python("train.py(1): main", at, long_us - 1)
        for k in range(12):
            start = at + 5 + (op_us + 30) * k
            if model:
                builder.python("train.py(20): act", start, op_us + 5).op("aten::addmm", start + 2, op_us)
            builder.python(name, start + op_us + 6, 20)
            if inner:
                builder.python(inner, start + op_us + 7, 18)
            if inside:
                builder.op("aten::add", start + op_us + 10, 5)
        after = at + 5 + 12 * (op_us + 30)
        builder.op("aten::mm", after, at + long_us - 10 - after)
    return builder.build()


def cards(trace: Trace) -> dict[str, Suggestion]:
    return {s.rule_id: s for s in analyze(trace).suggestions}


def test_the_loop_is_one_card_with_the_time_of_environment_and_model() -> None:
    found = cards(moves())
    assert found[RULE].headline == "One environment is stepped at a time: 26 % of the step"
    assert "step (game.py:30) is called 12 times per step, with 1 operator between two calls" in found[RULE].explanation
    assert "take 515 µs per step, 240 µs of it in the environment" in found[RULE].explanation
    # 3/4 of twelve times 20 us, and 7/8 of eleven times 20 us of the model's
    assert 350_000 < (found[RULE].saving.ns or 0) < 400_000
    assert found[RULE].saving.basis == "rough"
    assert "python-work-in-step" not in found  # the same time is told once


@pytest.mark.parametrize(("op_us", "factors"), [(15, [0.25, 0.125]), (350, [0.25])])
def test_only_a_model_of_small_operators_takes_more_for_nothing(op_us: float, factors: list[float]) -> None:
    found = cards(moves(op_us=op_us))[RULE]
    assert [effect.factor for effect in found.effects] == factors
    assert ("as long for all of them" in found.explanation) == (len(factors) == 2)


@pytest.mark.parametrize(
    "trace",
    [
        moves("diffusers/schedulers/scheduling_ddim.py(300): step"),  # a sampler of a diffusion model
        moves("torch/optim/lr_scheduler.py(100): step"),
        moves("my_optimizer.py(9): step"),
        moves(inside=True),  # it computes with tensors: many worlds at once
        moves(model=False),  # nothing between: a loop of its own
        moves("game.py(30): play"),
    ],
    ids=["diffusion", "scheduler", "optimizer", "on-tensors", "no-model", "other-name"],
)
def test_what_only_resembles_an_environment_is_none(trace: Trace) -> None:
    assert RULE not in cards(trace)


def test_wrappers_are_one_environment() -> None:
    found = cards(moves("gymnasium/wrappers/common.py(90): step", inner="gymnasium/envs/classic.py(150): step"))
    assert found[RULE].occurrences == 48


def test_on_a_gpu_the_loop_is_one_card_and_the_gpu_is_not_called_underfed_for_it() -> None:
    builder = TraceBuilder()
    for number in range(4):
        at = number * 4000.0
        builder.step(number, at, 4000).python("train.py(1): main", at, 3999)
        for k in range(12):
            start = at + 5 + 300 * k
            builder.python("train.py(20): act", start, 95).op("aten::addmm", start + 2, 90)
            builder.launch("gemm", at=start + 5, call=5, start=start + 15, dur=70)
            builder.python("game.py(30): step", start + 97, 200)
        builder.op("aten::mm", at + 3650, 300).launch("gemm", at=at + 3660, call=5, start=at + 3670, dur=280)
    found = cards(builder.build())
    assert found[RULE].occurrences == 48
    assert (found[RULE].saving.pct or 0) > 30
    assert "gpu-underfed" not in found
