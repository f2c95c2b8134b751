"""A saving that is mostly one step's says so."""

from __future__ import annotations

import pytest

from tests.core.rules.kit import run_rule
from tests.trace_builder import TraceBuilder


def _found(waits_us: list[float]) -> tuple[str, dict[str, object]]:
    """A number read back in every step, after so long a kernel each."""
    builder = TraceBuilder()
    for step, wait in enumerate(waits_us):
        at = 1000.0 * step
        builder.step(step, at, 990)
        builder.op("aten::mm", at + 5, 20).launch("gemm", at + 10, 5, at + 20, wait)
        builder.op("aten::item", at + 30, wait)
        builder.op("aten::_local_scalar_dense", at + 31, wait - 2)
        builder.copy("DtoH (Device -> Pageable)", at + 32, wait - 5, at + 20 + wait, 2)
        builder.op("aten::add", at + 900, 20).launch("add", at + 905, 5, at + 915, 20)
    (suggestion,) = run_rule("scalar-read-back", builder.build()).suggestions
    return suggestion.explanation, {e.label: e.value for e in suggestion.evidence}


def test_a_wait_that_is_mostly_one_steps_is_told_from_one_of_every_step() -> None:
    words, evidence = _found([40, 40, 40, 600, 40, 40])
    assert "in step 3" in words
    assert evidence["In the step with the longest wait"] == pytest.approx(0.595, abs=0.01)
    assert evidence["In a typical step (median)"] == pytest.approx(0.035, abs=0.01)


@pytest.mark.parametrize("waits_us", [[100, 120, 90, 110, 130], [40, 600], [100, 100, 250, 100, 100, 100]])
def test_where_no_step_stands_out_nothing_is_said(waits_us: list[float]) -> None:
    words, evidence = _found(waits_us)
    assert "Most of it is in one step" not in words
    assert "In a typical step (median)" not in evidence
