"""Recordings that end while the CPU is ahead: device work of their last steps was not written any more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest

from core.analysis import Analysis, analyze
from core.figures.compute import compute_figures
from core.importing import open_trace
from tests.simulator import Machine, simulate

ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


def program(m: Machine, number: int) -> None:
    for _ in range(4):
        m.kernel_op("aten::mm", 500)


def written_until(end_us: float, path: Path) -> Path:
    """Twelve steps of 2 ms on the device, queued in 0.1 ms each, of which the device work was written up to then."""
    document = simulate(program, steps=12).to_dict()
    first = min(e["ts"] for e in document["traceEvents"] if e.get("cat") == "kernel")
    document["traceEvents"] = [
        e for e in document["traceEvents"] if e.get("cat") not in ON_DEVICE or e["ts"] + e["dur"] < first + end_us
    ]
    path.write_bytes(orjson.dumps(document))
    return path


def analysed(end_us: float, folder: Path) -> Analysis:
    return analyze(open_trace(written_until(end_us, folder / "trace.json")))


@pytest.mark.parametrize(("end_us", "whole"), [(15_500, 7), (19_000, 9)])
def test_steps_without_their_device_work_are_in_no_mean(end_us: float, whole: int, tmp_path: Path) -> None:
    analysis = analysed(end_us, tmp_path)
    own = analysis.figures.step_figures
    assert own.counted.tolist() == [True] * whole + [False] * (12 - whole)
    assert all(why.startswith("truncated") for why in own.why_not[whole:])
    assert analysis.figures.summary.sustained_step_ns == pytest.approx(2_004_000, rel=0.01)


def without_work_of(lost: range, folder: Path) -> Analysis:
    """Twenty steps whose device work takes most of their time, without that of some."""

    def synchronous(m: Machine, number: int) -> None:
        for _ in range(4):
            m.kernel_op("aten::mm", 400)
            m.item()

    document = simulate(synchronous, steps=20).to_dict()
    steps = [e for e in document["traceEvents"] if e.get("cat") == "user_annotation" and "ProfilerStep" in e["name"]]
    marks = sorted((e["ts"], e["ts"] + e["dur"]) for e in steps)
    begin, end = marks[lost[0]][0], marks[lost[-1]][1]
    document["traceEvents"] = [
        e for e in document["traceEvents"] if e.get("cat") not in ON_DEVICE or not begin <= e["ts"] < end
    ]
    path = folder / "lost.json"
    path.write_bytes(orjson.dumps(document))
    return analyze(open_trace(path))


@pytest.mark.parametrize("lost", [range(15, 20), range(8, 12)])
def test_the_device_is_as_busy_as_in_the_steps_that_count(lost: range, tmp_path: Path) -> None:
    analysis = without_work_of(lost, tmp_path)
    figures = analysis.figures
    assert np.flatnonzero(~figures.step_figures.counted).tolist() == list(lost)
    budget = figures.budget
    assert budget.busy_ns is not None and budget.period_ns is not None
    assert figures.summary.gpu_busy_pct == pytest.approx(100 * budget.busy_ns / budget.period_ns, abs=1)
    assert list(figures.busy_by_stream_pct.values()) == [pytest.approx(figures.summary.gpu_busy_pct)]
    (note,) = [note for note in figures.doctor if note.code == "steps-truncated"]
    assert f"{len(lost)} of 20 steps" in note.consequence
    assert ("not in the trace" in note.title) is (lost[-1] < 19)
    cards = [s.headline for s in analysis.suggestions if s.rule_id == "steps-truncated"]
    assert cards == ([f"The recording cuts off {len(lost)} steps at its border"] if lost[-1] == 19 else [])


def test_where_most_of_it_is_missing_there_is_no_pace(tmp_path: Path) -> None:
    analysis = analysed(3_000, tmp_path)
    assert analysis.figures.summary.verdict == "unknown"
    assert analysis.figures.summary.sustained_step_ns is None
    assert all(s.saving.ns is None for s in analysis.suggestions)


def test_work_of_other_launches_belongs_to_no_step(tmp_path: Path) -> None:
    """What runs was launched before the recording; what is launched in it was not written."""
    document = orjson.loads(written_until(1e9, tmp_path / "trace.json").read_bytes())
    for event in document["traceEvents"]:
        if event.get("cat") in ON_DEVICE:
            event["args"]["correlation"] += 100_000
            event["args"].pop("External id", None)
    (tmp_path / "trace.json").write_bytes(orjson.dumps(document))
    figures = compute_figures(open_trace(tmp_path / "trace.json"))
    assert not figures.step_figures.kernels.any() and figures.summary.period_ns is None
