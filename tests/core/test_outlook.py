"""What is said where nothing is worth doing agrees with the verdict, everywhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.analysis import OUTLOOKS, Analysis, analyze, outlook
from core.reporting.html import page
from core.reporting.text import report
from core.suggestions import Suggestion
from tests.trace_builder import TraceBuilder


def host_bound() -> TraceBuilder:
    """Three steps in which the device mostly idles, for no reason that a rule knows."""
    builder = TraceBuilder()
    for i in range(3):
        builder.step(i, i * 1000, 1000).python("train.py(3): think", i * 1000 + 10, 900)
        builder.launch("k", at=i * 1000 + 920, call=5, start=i * 1000 + 930, dur=60)
    return builder


def test_a_trace_that_is_bound_is_not_called_healthy():
    trace = host_bound().build()
    analysis = analyze(trace)
    analysis = Analysis(analysis.figures, (), (), analysis.rules)
    assert analysis.figures.summary.verdict == "host_bound"
    assert outlook(trace, analysis) == "limited"
    for shown in (report(trace, analysis), page(trace, analysis)):
        assert "No rule found a fix" in shown
        assert "Healthy" not in shown


@pytest.mark.parametrize(
    ("verdict", "key"),
    [("healthy", "healthy"), ("device_bound", "device"), ("sync_bound", "limited"), ("unknown", "unknown")],
)
def test_words_follow_the_verdict(verdict, key):
    trace = host_bound().build()
    known = analyze(trace)
    figures = replace(known.figures, summary=replace(known.figures.summary, verdict=verdict))
    note = Suggestion("no-shapes", "Shapes were not recorded", informational=True)
    assert outlook(trace, Analysis(figures, (note,))) == key
    assert ("Healthy" in OUTLOOKS[key]) is (verdict == "healthy")


def test_notes_are_pointed_to_only_where_there_are_some():
    trace = host_bound().build()
    known = analyze(trace)
    figures = replace(known.figures, summary=replace(known.figures.summary, verdict="unknown"))
    words = OUTLOOKS[outlook(trace, Analysis(figures))]
    assert "notes" not in words
    assert "say what to record" in words


def test_without_device_work():
    trace = TraceBuilder(gpu=None).step(1, 0, 100).op("aten::mm", 5, 50).build()
    assert outlook(trace, analyze(trace)) == "no_device"
