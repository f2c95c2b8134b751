"""What was recorded is told from the events where the header is silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.analysis import analyze
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


@pytest.mark.parametrize("shapes", [False, True])
def test_the_doctor_and_the_rule_tell_the_same_of_shapes(tmp_path: Path, shapes: bool) -> None:
    builder = TraceBuilder()
    for number in range(40):
        builder.op("aten::mm", number * 10, 5, **({"Input Dims": [[2, 3]]} if shapes else {}))
    trace = builder.build(tmp_path / "trace.json")
    assert trace.meta.record_shapes is None
    analysis = analyze(trace)
    note = next(note.title for note in analysis.figures.doctor if note.code == "data-not-recorded")
    found = next(one.headline for one in analysis.suggestions if one.rule_id == "data-not-recorded")
    assert ("shapes" in note, "shapes" in found) == (not shapes, not shapes)
