"""Memory: what a short recording of a CPU can tell, and growth that is none of a program's fault."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from core.suggestions import Outcome
from tests.core.rules.kit import built, run_rule, steps
from tests.trace_builder import TraceBuilder

MIB = 1 << 20


def held(builder: TraceBuilder, low: Sequence[int], device: int) -> TraceBuilder:
    """In each step of a millisecond at least so many MiB are held, and one more for a while."""
    for number, least in enumerate(low):
        at = number * 1000.0 + 20
        builder.op("aten::mm", at, 900)
        for k, value in enumerate((least, least + 1, least)):
            builder.memory(at + 30 * (k + 1), MIB, allocated=value * MIB, reserved=64 * MIB, device=device)
    return builder


@pytest.mark.parametrize(
    ("low", "outcome"),
    [
        ((0, 10, 13, 16, 19), Outcome.FOUND),  # the first step of a CPU is left out: four are left, and alike
        ((0, 10, 13, 14, 19), Outcome.NOT_CHECKED),  # so few that differ may be chance
        ((0, 10, 13, 13, 16), Outcome.NOT_CHECKED),
        ((0, 10, 13, 16), Outcome.NOT_CHECKED),
    ],
)
def test_four_steps_of_a_cpu_tell_growth_where_each_adds_the_same(low: tuple[int, ...], outcome: Outcome) -> None:
    result = run_rule("memory-creep", built(held(steps(len(low), gpu=None), low, -1)))
    assert result.outcome is outcome
    if outcome is Outcome.FOUND:
        assert result.suggestions[0].headline == "Memory grows by 3 MiB with every step"


def test_a_pool_that_only_grows_once_does_not_thrash() -> None:
    builder = steps(5)
    for number, reserved in enumerate((64, 64, 128, 128, 128)):  # a longer batch, once: the pool keeps what it got
        at = number * 1000.0 + 20
        builder.op("aten::mm", at, 900).launch("gemm", at + 10, 5, at + 20, 100)
        builder.memory(at + 30, MIB, allocated=32 * MIB, reserved=reserved * MIB)
    assert run_rule("allocator-thrash", built(builder)).outcome is Outcome.CLEAN
