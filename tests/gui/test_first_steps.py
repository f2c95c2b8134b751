"""A recording that only stands in for the chosen steps says so, and leaves the script's first step out of the means."""

from __future__ import annotations

import pytest

from core.analysis import analyze
from core.recorded import is_of_first_steps, left_out
from core.trace import Trace
from gui import suggestion_text
from gui.statusbar import things_to_know
from tests.trace_builder import TraceBuilder

NOTE = "These are the first steps of the script, not the chosen ones."


def recording(*, stand_in: bool, first: int = 0, steps: int = 4, **own: object) -> Trace:
    header = {"steplens": {"first_steps": True, "left_out": ["memory", "shapes"], **own}} if stand_in else {}
    builder = TraceBuilder(gpu=None, **header)
    at = 0.0
    for k in range(steps):
        took = 240.0 if k == 0 else 100.0  # not far enough from the others to be warm-up by itself
        builder.step(first + k, at, took).op("aten::mm", at + 1, took - 10)
        at += took
    return builder.build()


@pytest.mark.parametrize(
    ("stand_in", "first", "steps", "counted"),
    [(True, 0, 4, 3), (False, 0, 4, 4), (True, 5, 4, 4), (True, 0, 2, 2)],
)
def test_only_the_first_step_of_the_script_is_left_out(stand_in: bool, first: int, steps: int, counted: int) -> None:
    analysis = analyze(recording(stand_in=stand_in, first=first, steps=steps))
    assert analysis.figures.step_figures.counted.sum() == counted
    assert (analysis.figures.step_figures.why_not[0] == "warm-up: the first step of the script") is (counted < steps)
    if counted < steps:
        assert analysis.figures.summary.step_ns == pytest.approx(100_000)


def test_it_is_told_in_the_doctor_the_pill_and_above_the_plan(document_of) -> None:
    trace = recording(stand_in=True)
    document = document_of(trace)
    note = next(n for n in document.analysis.figures.doctor if n.title == NOTE)
    assert (note.code, note.severity) == ("data-not-recorded", "warning")
    assert "memory, shapes" in note.consequence
    assert NOTE in things_to_know(document)
    words = suggestion_text.first_steps(trace)
    assert "these are its first ones" in words
    assert "without memory, shapes" in words
    other = document_of(recording(stand_in=False))
    assert not any(n.title == NOTE for n in other.analysis.figures.doctor)
    assert suggestion_text.first_steps(other.trace) == ""


@pytest.fixture
def document_of(qapp: object):  # noqa: ANN201 - a function of a trace
    from gui.session import Document

    def made(trace: Trace) -> Document:
        document = Document(trace)
        document.set_analysis(analyze(trace))
        return document

    return made


@pytest.mark.parametrize("own", [{"left_out": "shapes"}, {"left_out": None}, {"first_steps": "yes"}])
def test_a_header_of_another_kind_is_not_trusted(own: dict[str, object]) -> None:
    trace = recording(stand_in=True, **own)
    assert left_out(trace) == ()
    assert is_of_first_steps(trace) is (own.get("first_steps", True) is True)
