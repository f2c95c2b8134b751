"""A plan beside the step without the profiler."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.figures.model import DoctorNote
from core.reporting import phrases
from core.reporting.html import page
from core.reporting.text import Page, report
from core.reporting.units import duration
from core.unprofiled import hidden_by, longer, slowed
from tests.core.reporting.cases import SUGGESTION, training, with_suggestions


def test_device_time_is_carried_over_to_nothing():
    trace, analysis = with_suggestions(training(), SUGGESTION)  # a step of 900 us, 630 us after the plan
    found = slowed(trace, analysis, 400_000.0)
    assert found is not None
    assert (found.recorded_ns, found.wall_ns, found.projected_ns) == (900_000.0, 400_000.0, None)
    assert "unknown" in found.template


def test_without_a_device_the_share_is_carried_over():
    trace, analysis = with_suggestions(training(), SUGGESTION)
    cpu = replace(trace, slices=replace(trace.slices, kind=trace.slices.kind * 0))
    found = slowed(cpu, analysis, 400_000.0)
    assert found is not None
    assert found.projected_ns == pytest.approx(280_000.0)
    assert "{projected}" in found.template


def test_steps_that_differ_much_are_not_the_profilers_doing_alone():
    trace, analysis = with_suggestions(training(), SUGGESTION)
    note = DoctorNote("uneven-steps", "warning", "", "", "", values={"low_ms": 0.5, "high_ms": 4.0, "share": 90.0})
    figures = replace(analysis.figures, doctor=(note,))
    found = slowed(trace, replace(analysis, figures=figures), 400_000.0)
    assert found is not None
    words = found.template.format(**{name: duration(ns) for name, ns in found.times.items()})
    assert "500 µs to 4 ms" in words
    assert "other programs" in words


@pytest.mark.parametrize("wall", [None, 0.0, 800_000.0, 950_000.0])
def test_little_or_unknown_is_not_said(wall):
    assert slowed(*with_suggestions(training(), SUGGESTION), wall) is None


def test_reports_give_shares_as_the_window_does(monkeypatch):
    trace, analysis = with_suggestions(training(), SUGGESTION)
    texts = (lambda: page(trace, analysis), lambda: report(trace, analysis, Page(200)))
    for told in texts:
        assert "900 µs → 630 µs per step" in told()
    monkeypatch.setattr(phrases, "_slowed", lambda trace, analysis: slowed(trace, analysis, 400_000.0))
    for told in texts:
        words = told()
        assert "−30 % of the recorded step, predicted" in words
        assert "then 70 % of the recorded step" in words
        assert "900 µs → 630 µs" not in words
        assert "630 µs per step" not in words


def test_a_saving_within_what_the_steps_differ_by_is_told():
    _, analysis = with_suggestions(training(), SUGGESTION)
    assert hidden_by(analysis, 5.6) is None
    note = DoctorNote("uneven-steps", "warning", "", "", "", values={"low_ms": 0.5, "high_ms": 4.0, "share": 82.0})
    uneven = replace(analysis, figures=replace(analysis.figures, doctor=(note,)))
    assert hidden_by(uneven, 5.6) == 82.0
    assert hidden_by(uneven, 90.0) is None


@pytest.mark.parametrize(("wall", "recorded"), [(1_200_000.0, 900_000.0), (1_000_000.0, None), (None, None)])
def test_a_step_without_the_profiler_that_is_longer_is_told(wall, recorded):
    _, analysis = with_suggestions(training(), SUGGESTION)
    assert longer(analysis, wall) == recorded
