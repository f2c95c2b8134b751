"""What held an operator up once is no saving of the fix that removes the operator."""

from __future__ import annotations

import numpy as np
import pytest

from core.figures.compute import compute_figures
from core.kinds import SliceKind
from core.replay.held_up import usual_dur_ns
from core.replay.replay import Replay
from core.suggestions import Effect, EffectKind
from core.trace import Trace
from tests.core.replay.helpers import named
from tests.trace_builder import TraceBuilder

STEPS = 5


def recorded(slow: dict[int, float], kind: str = "cpu_op") -> Trace:
    """Steps of about 90 ms, each with a small operator (20 us, or what ``slow`` says for the step), CPU only."""
    builder, at = TraceBuilder(gpu=None), 0.0
    for number in range(STEPS):
        took = slow.get(number, 20.0)
        builder.step(number, at, 90_100 + took)
        builder.op("aten::mm", at + 10, 90_000)
        builder.slice(kind, "small", at + 90_020, took)
        at += 90_110 + took
    return builder.build()


def saved_us(trace: Trace, kind: SliceKind = SliceKind.CPU_OP) -> float:
    replay = Replay(trace, compute_figures(trace))
    return replay.what_if([Effect(EffectKind.REMOVE_WORK, named(trace, "small", kind))]).saved_ns / 1e3


def test_one_held_up_operator_saves_no_more_than_the_others() -> None:
    assert saved_us(recorded({})) == pytest.approx(20.0)
    assert saved_us(recorded({3: 8000.0})) == pytest.approx(20.0)


def test_what_is_long_again_and_again_is_saved() -> None:
    assert saved_us(recorded({1: 800.0, 3: 800.0})) == pytest.approx((2 * 800 + 3 * 20) / STEPS)
    assert saved_us(recorded({3: 80.0})) == pytest.approx((80 + 4 * 20) / STEPS)


def test_a_range_of_the_users_is_taken_as_it_is() -> None:
    assert saved_us(recorded({3: 8000.0}, "user_annotation"), SliceKind.RANGE) == pytest.approx((8000 + 4 * 20) / STEPS)


def test_an_operator_that_is_long_in_every_step_is_not_held_up() -> None:
    builder = TraceBuilder(gpu=None)
    for number in range(STEPS):
        builder.step(number, number * 1000, 990).op("small", number * 1000 + 10, 20).op(
            "small", number * 1000 + 40, 700
        )
    trace = builder.build()
    ids = np.array(named(trace, "small", SliceKind.CPU_OP), dtype=np.int64)
    start = np.sort(trace.steps.start_ns)
    assert (usual_dur_ns(trace, start, start + 990_000, ids) == trace.slices.dur_ns[ids]).all()
