"""Recordings that end while the CPU is ahead: device work of their last steps was not written any more."""

from __future__ import annotations

from pathlib import Path

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
