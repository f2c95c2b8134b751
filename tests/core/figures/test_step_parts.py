"""What bound each step: as the verdict and the budget say it of their mean."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.figures.compute import compute_figures
from core.figures.model import Figures
from core.figures.step_parts import (
    DEVICE,
    EXCHANGE,
    LEFT_OUT,
    LOADING,
    OPERATORS,
    bounds_of_steps,
    shown_length_ns,
)
from core.importing import open_trace
from core.kinds import GapCause
from tests.trace_builder import TraceBuilder

US = 1000  # ns
SAMPLES = Path(__file__).resolve().parents[3] / "resources" / "samples"


def ahead(steps: int = 4) -> TraceBuilder:
    """Host steps of 100 us that each queue 1000 us of work: the first fetch its batch while the device idles."""
    made = TraceBuilder()
    for k in range(steps):
        at = k * 100
        made.step(k, at, 98)
        made.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 1, 30)
        made.op("aten::mm", at + 40, 30).launch("gemm", at=at + 45, call=10, start=60 + k * 1000, dur=1000)
    return made


def bounds(figures: Figures) -> list[int]:
    return [int(b) for b in bounds_of_steps(figures)]


def test_a_step_whose_work_is_queued_is_the_devices_and_takes_as_long_as_its_work() -> None:
    figures = compute_figures(ahead().build())
    assert bounds(figures) == [DEVICE] * 4
    parts = figures.step_parts
    assert parts is not None
    assert parts.busy_ns == pytest.approx([1000 * US] * 4, rel=0.01)
    assert shown_length_ns(figures) == pytest.approx([1000 * US] * 4, rel=0.01)  # the last one has no period
    assert figures.step_figures.period_ns[-1] == -1


def test_the_parts_of_the_steps_are_those_of_the_budget() -> None:
    made = TraceBuilder()
    for k in range(5):
        at = k * 1000
        made.step(k, at, 995).op("aten::mm", at + 600, 40)
        made.launch("gemm", at=at + 610, call=10, start=at + 640, dur=200 + 20 * k)
    figures = compute_figures(made.build())
    parts, budget = figures.step_parts, figures.budget
    assert parts is not None and budget.busy_ns is not None
    of = figures.step_figures.counted & (figures.step_figures.period_ns > 0)
    assert parts.busy_ns[of].mean() == pytest.approx(budget.busy_ns, abs=2)
    assert parts.length_ns[of].mean() == pytest.approx(budget.period_ns, abs=2)
    idle = parts.idle_ns[of].mean(axis=0)
    assert {c: round(float(ns)) for c, ns in enumerate(idle) if round(float(ns))} == pytest.approx(
        dict(budget.idle_by_cause_ns), abs=2
    )


def test_a_step_that_only_exchanges_is_called_so() -> None:
    made = TraceBuilder()
    for k in range(4):
        at = k * 1000
        made.step(k, at, 995).op("aten::mm", at + 10, 40)
        made.launch("gemm", at=at + 15, call=10, start=at + 30, dur=500)
        made.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at=at + 28, call=10, start=at + 530, dur=460)
    assert bounds(compute_figures(made.build()))[1] == EXCHANGE


def test_without_a_device_the_largest_part_of_the_cpu_counts() -> None:
    made = TraceBuilder(gpu=None)
    for k in range(4):
        made.step(k, k * 1000, 995).op("aten::mm", k * 1000 + 10, 800)
    assert set(bounds(compute_figures(made.build()))) == {OPERATORS}
    made = TraceBuilder(gpu=None)
    for k in range(4):
        made.step(k, k * 1000, 995).op("aten::mm", k * 1000 + 500, 490)
        made.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", k * 1000 + 1, 400)
    assert set(bounds(compute_figures(made.build()))) == {LOADING}


def test_the_example_that_only_queues_its_work_is_bound_by_the_device() -> None:
    figures = compute_figures(open_trace(SAMPLES / "article_stage6_simulated.json.gz"))
    assert figures.summary.verdict == "device_bound"
    assert set(bounds(figures)) == {DEVICE}
    parts = figures.step_parts
    assert parts is not None
    assert np.all(parts.busy_ns > 0.98 * parts.length_ns)


def test_what_is_left_out_of_the_means_is_neither() -> None:
    made = TraceBuilder()
    for k, (at, long) in enumerate([(0, 9000), (9000, 1000), (10000, 1000), (11000, 1000)]):
        made.step(k, at, long - 5).op("aten::mm", at + 10, 40)
        made.launch("gemm", at=at + 15, call=10, start=at + 30, dur=100)
    found = bounds(compute_figures(made.build()))
    assert found[0] == LEFT_OUT
    assert set(found[1:]) <= set(GapCause)
