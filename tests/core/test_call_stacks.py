"""Traces of torch 1.8 to 1.11 name lines in arguments of operators: then no note may say that none can be named."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.analysis import analyze
from core.call_stacks import has_call_stacks
from tests.trace_builder import TraceBuilder


@pytest.mark.parametrize("stack", ["train.py(12): <module>", ""])
@pytest.mark.parametrize("asked", [1, 0])
def test_notes_about_stacks_know_of_old_call_stacks(tmp_path: Path, stack: str, asked: int) -> None:
    builder = TraceBuilder(with_stack=asked)
    for number in range(20):
        args = {"Call stack": stack} if stack and number % 3 == 0 else {}
        builder.op("aten::add", number * 10, 5, **args)
    trace = builder.build(tmp_path / "trace.json")
    assert has_call_stacks(trace) is bool(stack)
    analysis = analyze(trace)
    said = [s.headline + s.explanation for s in analysis.suggestions]
    said += [f"{n.title} {n.consequence}" for n in analysis.figures.doctor]
    claims = [text for text in said if "line of code" in text or "ython stacks" in text]
    assert bool(claims) is not bool(stack)


def test_a_note_on_the_whole_recording_is_no_place_to_go_to() -> None:
    trace = TraceBuilder().op("aten::add", 0, 5).build()
    note = next(s for s in analyze(trace).suggestions if s.rule_id == "data-not-recorded")
    assert note.is_about_recording
