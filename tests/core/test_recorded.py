"""What was recorded is told from the events where the header is silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.recorded import has_shapes
from core.reporting.json import trace_values
from tests.trace_builder import TraceBuilder


@pytest.mark.parametrize("name", ["Input Dims", "Input dims"])
def test_a_silent_header_is_not_a_no(tmp_path: Path, name: str) -> None:
    builder = TraceBuilder()
    for number in range(400):  # the first ones are of the optimizer, without
        builder.op(
            "aten::add_" if number < 30 else "aten::mm", number * 10, 5, **({name: [[2, 3]]} if number >= 30 else {})
        )
    trace = builder.build(tmp_path / "trace.json")
    assert trace.meta.record_shapes is None
    assert has_shapes(trace)
    assert trace_values(trace)["has_shapes"] is True
