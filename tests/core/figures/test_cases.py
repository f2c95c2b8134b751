"""Faults that were reported in public, each with the figures a correct tool shows."""

from __future__ import annotations

import numpy as np
import pytest

from core.figures.compute import compute_figures
from core.figures.model import BREAKDOWN_PARTS
from core.figures.shares import device_shares, step_threads, steps_covered_ns
from core.importing import open_trace
from tests.shared import case_path, needs_shared

pytestmark = needs_shared
US = 1000


def figures_of(case: str, name: str = "a.json"):
    trace = open_trace(case_path(case, name))
    return trace, compute_figures(trace)


def row(trace, table, name: str) -> int:
    hits = np.flatnonzero(table.name_id == trace.strings.id_of(name))
    assert len(hits) == 1, name
    return int(hits[0])


def part(figures, name: str) -> np.ndarray:
    return figures.step_figures.breakdown_ns[:, BREAKDOWN_PARTS.index(name)]


def test_12_children_outlast_their_parents():
    trace, figures = figures_of("12", "a_profilerstep_crosses_frames.json")
    assert figures.step_figures.dur_ns.tolist() == [1000 * US] * 3
    assert figures.summary.step_ns == 1000 * US
    linear = row(trace, figures.operators, "aten::linear")
    assert figures.operators.calls[linear] == 3
    assert figures.operators.host_total_ns[linear] == 900 * US
    assert figures.operators.host_self_ns[linear] == 60 * US
    trace, figures = figures_of("12", "b_orphan_frame.json")
    assert (figures.python.host_self_ns >= 0).all()
    assert figures.python.host_self_ns[row(trace, figures.python, "model.py(5): forward")] >= 0


def test_14_utilisation_is_a_union():
    trace, figures = figures_of("14", "a_two_streams.json")
    (share,) = device_shares(trace, figures)
    assert [(s.stream, s.busy_pct) for s in share.streams] == [(7, pytest.approx(60.0)), (20, pytest.approx(40.0))]
    assert figures.busy_by_device_pct == {0: pytest.approx(80.0)}
    assert sorted(figures.busy_by_stream_pct.values()) == pytest.approx([40.0, 60.0])
    assert part(figures, "kernel").tolist() == [60_000 * US]
    assert part(figures, "communication").tolist() == [20_000 * US]
    _, figures = figures_of("14", "b_same_stream_id_on_three_gpus.json")
    assert figures.busy_by_device_pct == {0: pytest.approx(86.0), 1: pytest.approx(40.0), 2: pytest.approx(10.0)}
    _, figures = figures_of("14", "c_sync_records_and_annotations.json")
    assert figures.busy_by_device_pct == {0: pytest.approx(10.0)}


def test_15_durations_that_are_none():
    trace, figures = figures_of("15")
    tiny, zero = row(trace, figures.kernels, "tiny"), row(trace, figures.kernels, "zero")
    assert (figures.kernels.calls[tiny], figures.kernels.device_total_ns[tiny]) == (3, 600)
    assert (figures.kernels.min_ns[tiny], figures.kernels.calls[zero], figures.kernels.device_total_ns[zero]) == (
        200,
        1,
        0,
    )
    named = [trace.strings[int(i)] for table in (figures.kernels, figures.operators) for i in table.name_id]
    assert not {"unfinished", "no dur", "end time zero"} & set(named)
    for table in (figures.kernels, figures.operators):
        assert (table.min_ns >= 0).all()
        assert (table.host_self_ns >= 0).all()


def test_16_inferred_steps_are_called_so():
    trace, figures = figures_of("16")
    (share,) = device_shares(trace, figures)
    assert share.own_busy_pct == pytest.approx(57.143, abs=0.001)
    assert figures.summary.inferred
    assert figures.steps.inferred.all()
    assert figures.step_figures.dur_ns.tolist() == [10_000 * US] * 3
    assert figures.summary.period_ns == 10_000 * US
    assert figures.summary.gpu_busy_pct == pytest.approx(50.761, abs=0.001)
    assert "no-steps-marked" in [note.code for note in figures.doctor]


def test_18_repeated_and_overlapping_steps():
    _, figures = figures_of("18", "a_repeat.json")
    assert figures.step_figures.dur_ns.tolist() == [1000 * US, 1100 * US, 1200 * US, 1300 * US]
    assert figures.summary.step_ns == 1150 * US
    trace, figures = figures_of("18", "b_two_threads.json")
    assert [one.step_ns for one in step_threads(trace, figures)] == [1000 * US, 1500 * US]
    assert steps_covered_ns(figures) == 3200 * US
    _, figures = figures_of("18", "c_holes_and_odd_names.json")
    numbers = dict(zip(figures.steps.number.tolist(), figures.step_figures.dur_ns.tolist(), strict=True))
    assert (numbers[7], numbers[12], numbers[13]) == (1000 * US, 2000 * US, 700 * US)
    assert not set(range(8, 12)) & set(numbers)


def test_20_one_graph_launch_owns_its_kernels():
    trace, figures = figures_of("20")
    assert figures.summary.gpu_busy_pct == pytest.approx(42.0)
    assert figures.summary.kernels_per_step == 201
    assert figures.extra["launches"].tolist() == [2.0]
    for i in range(4):
        kernel = row(trace, figures.kernels, f"graph_kernel_{i}")
        assert (figures.kernels.calls[kernel], figures.kernels.device_total_ns[kernel]) == (50, 200 * US)
    linear = figures.operators.name_id == trace.strings.id_of("aten::linear")
    assert figures.operators.device_total_ns[linear].sum() == 40 * US


def test_21_kernels_without_launch():
    trace, figures = figures_of("21")
    assert figures.kernels.calls.sum() == 11
    assert figures.kernels.device_total_ns.sum() == 250 * US
    assert figures.summary.gpu_busy_pct == pytest.approx(25.0)
    assert figures.launch_delay_ns.tolist() == [30 * US] * 5
    orphans = next(note for note in figures.doctor if note.code == "orphan-kernels")
    assert (orphans.values["orphans"], orphans.values["launches"]) == (6, 3)


@pytest.mark.parametrize("name", ["a_multi_worker.json", "b_single_process.json"])
def test_31_the_loader(name):
    _, figures = figures_of("31", name)
    assert figures.summary.verdict == "input_bound"
    assert figures.summary.step_ns == 10_000 * US
    assert figures.summary.gpu_busy_pct == pytest.approx(21.0)
    assert figures.step_figures.gpu_busy_ns.tolist() == [2100 * US] * 4
    assert part(figures, "dataloader").tolist() == [7000 * US] * 4


def test_34_order_and_identical_times():
    trace, figures = figures_of("34", "a_children_first.json")
    tables = (figures.operators, figures.python, figures.ranges)
    own = {trace.strings[int(n)]: int(ns) for t in tables for n, ns in zip(t.name_id, t.host_self_ns, strict=True)}
    assert (own["root"], own["mid"], own["leaf"], own["leaf2"]) == (50 * US, 30 * US, 10 * US, 10 * US)
    for name in ("b_same_interval.json", "c_same_interval_reversed.json"):
        _, figures = figures_of("34", name)
        tables = (figures.operators, figures.python, figures.ranges)
        assert sorted(int(ns) for t in tables for ns in t.host_self_ns) == [0, 0, 50 * US]
    trace, figures = figures_of("34", "d_exact_duplicates.json")
    assert figures.step_figures.breakdown_ns.shape == (0, 8)
    assert figures.budget.busy_ns == 20 * US


def test_36_memory():
    _, figures = figures_of("36")
    assert figures.peak_memory_by_device == {-1: 500, 0: 10_000_000, 1: 3_000_000}
    assert figures.summary.peak_memory_bytes == 10_000_000
    assert figures.operators.calls.sum() == 1
    assert figures.kernels.calls.sum() == 1


def test_37_the_first_schema():
    trace, figures = figures_of("37")
    assert figures.summary.gpu_busy_pct == pytest.approx(45.2)
    assert figures.launch_delay_ns.tolist() == [150 * US]
    assert part(figures, "dataloader").tolist() == [80 * US]
    conv = row(trace, figures.operators, "aten::conv2d")
    assert figures.operators.device_total_ns[conv] == 400 * US
