"""A file that breaks off: nothing is claimed that the missing part could overturn."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from core.analysis import Analysis, analyze
from core.importing import open_trace
from core.reporting.text import report
from core.suggestions import Outcome
from tests.trace_builder import TraceBuilder


def whole(steps: int = 4) -> bytes:
    """Text of a trace: the CPU's events first and the device's work last, as PyTorch writes it."""
    builder = TraceBuilder()
    for step in range(steps):
        at = step * 1000
        builder.step(step, at, 1000).launch("k", at=at + 500, call=3, start=at + 510, dur=300)
        builder.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 1, 450)
    return builder.to_json()


def cut(folder: Path, packed: bool, share: float) -> Analysis:
    data = gzip.compress(whole(600), 0) if packed else whole()
    path = folder / ("cut.json.gz" if packed else "cut.json")
    path.write_bytes(data[: int(len(data) * share)])
    trace = open_trace(path)
    assert trace.report.is_cut_off
    analysis = analyze(trace)
    assert "ends early" in report(trace, analysis)
    return analysis


@pytest.mark.parametrize(("packed", "share"), [(False, 0.9), (False, 0.6), (True, 0.9)])
def test_no_verdict_and_no_plan_of_a_file_that_ends_early(tmp_path: Path, packed: bool, share: float) -> None:
    analysis = cut(tmp_path, packed, share)
    summary = analysis.figures.summary
    assert summary.verdict == "unknown"
    assert "ends early" in summary.verdict_text
    assert not analysis.plan
    assert all(s.saving.ns is None for s in analysis.suggestions)
    titles = [note.title for note in analysis.figures.doctor]
    assert len(titles) == len(set(titles))
    assert sum("ends early" in title for title in titles) == 1
    codes = {note.code for note in analysis.figures.doctor}
    assert "gpu-events-missing" not in codes  # ... is what was cut off, not a fault of the recording
    assert all(r.outcome is not Outcome.FOUND for r in analysis.rules if r.rule.id == "model-on-cpu")


def test_a_whole_file_is_judged(tmp_path: Path) -> None:
    path = tmp_path / "whole.json"
    path.write_bytes(whole())
    trace = open_trace(path)
    assert not trace.report.is_cut_off
    assert analyze(trace).figures.summary.verdict == "input_bound"
