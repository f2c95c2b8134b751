"""Copies that are there by design: casts of autocast, and what is written into a cache."""

from __future__ import annotations

import pytest

from core.suggestions import Outcome
from core.trace import Trace
from tests.core.rules.kit import built, run_rule, sim, steps
from tests.simulator import Machine
from tests.trace_builder import TraceBuilder

CAST = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>"


def _cast(builder: TraceBuilder, at: float, us: float) -> None:
    """``x.to(torch.bfloat16)``."""
    builder.op("aten::to", at, 14).op("aten::_to_copy", at + 1, 12).op("aten::copy_", at + 2, 10)
    builder.launch(CAST, at + 4, 4, at + 20, us)


def _layers(by_autocast: bool) -> Trace:
    """Layers whose weights are cast before they are used, by autocast within the operator or by the program itself."""
    builder = steps(3, 4000.0)
    for i in range(3):
        for k in range(4):
            at = i * 4000.0 + 50 + 400 * k
            if by_autocast:
                builder.op("aten::linear", at, 60)
            _cast(builder, at + 2, 80)
            builder.op("aten::linear", at + 20, 35).launch("gemm", at + 25, 5, at + 110, 120)
        for k in range(4):
            at = i * 4000.0 + 2000 + 400 * k
            node = "autograd::engine::evaluate_function: ToCopyBackward0"
            builder.op(node, at, 40).op("ToCopyBackward0", at + 1, 38)
            _cast(builder, at + 2, 80)
            builder.op("aten::mm", at + 50, 20).launch("gemm", at + 55, 5, at + 110, 120)
    return built(builder)


@pytest.mark.parametrize("by_autocast", [True, False])
def test_casts_by_autocast_are_by_design(by_autocast: bool) -> None:
    result = run_rule("dtype-ping-pong", _layers(by_autocast))
    assert (result.outcome is Outcome.CLEAN) is by_autocast


@pytest.mark.parametrize("taken", ["aten::slice", "aten::narrow", ""])
def test_what_is_written_into_a_cache_is_needed(taken: str) -> None:
    """``keys[:, :, at] = k``; a copy of the whole tensor can perhaps go."""

    def program(m: Machine) -> None:
        for _ in range(4):
            if taken:
                with m.op(taken), m.op("aten::slice" if taken == "aten::narrow" else "aten::as_strided"):
                    pass
            m.kernel_op("aten::copy_", 200, CAST)
            m.kernel_op("aten::mm", 300)

    result = run_rule("dtype-ping-pong", sim(program)())
    assert (result.outcome is Outcome.CLEAN) is bool(taken)
