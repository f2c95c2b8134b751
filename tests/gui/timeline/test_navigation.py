from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtTest import QTest

from core.figures.compute import compute_figures
from core.kinds import TrackKind
from core.trace import Trace
from gui.models.slice_facts import self_ns
from gui.timeline.navigation import flow_pairs, follow, next_sync, step_at, sync_of_slice, with_context
from gui.timeline.tooltip import header_lines, slice_lines
from gui.timeline.view import TimelineView
from tests.gui.conftest import training
from tests.trace_builder import TraceBuilder, rows


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return training().build(tmp_path / "train.json")


def test_from_launch_to_kernel_and_back(trace: Trace) -> None:
    launch, kernel = rows(trace, "cudaLaunchKernel")[1], rows(trace, "gemm_kernel")[1]
    assert follow(trace, launch, forward=True) == kernel
    assert follow(trace, kernel, forward=False) == launch
    assert follow(trace, rows(trace, "aten::mm")[1], forward=True) == kernel
    assert follow(trace, kernel, forward=True) == -1
    assert follow(trace, -1, forward=True) == -1


def test_flows_of_the_selection_alone_or_of_all_below_it(trace: Trace) -> None:
    op, launch, kernel = (rows(trace, name)[0] for name in ("aten::mm", "cudaLaunchKernel", "gemm_kernel"))
    assert flow_pairs(trace, op) == ([], [])
    assert flow_pairs(trace, op, deep=True) == ([(launch, kernel)], [True])
    assert flow_pairs(trace, kernel) == ([(launch, kernel)], [True])
    assert flow_pairs(trace, launch) == ([(launch, kernel)], [True])


def test_what_never_ended_says_so_under_the_pointer() -> None:
    made = TraceBuilder().event(ph="B", name="open", pid=1, tid=1, ts=0).op("aten::mm", 0, 50, tid=2)
    trace = made.build()
    lines = {name: slice_lines(trace, None, rows(trace, name)[0]) for name in ("open", "aten::mm")}
    assert "never ended in the trace" in lines["open"]
    assert "never ended in the trace" not in lines["aten::mm"]


def test_the_heading_of_a_named_thread_tells_its_whole_number(make_view: Callable[..., TimelineView]) -> None:
    made = TraceBuilder().op("aten::mm", 0, 50, tid=140390667650624)
    view = make_view(made.name_thread("autograd", tid=140390667650624).build())
    frame = view.canvas.frame()
    (row,) = [row for row in frame.visible_rows() if row.track_kind == TrackKind.CPU_OPS]
    assert "thread 140390667650624" in header_lines(frame, row)


def test_sync_points_one_after_the_other(trace: Trace) -> None:
    figures = compute_figures(trace)
    calls = rows(trace, "cudaMemcpyAsync")
    first = next_sync(figures, 0, -1, 1)
    assert figures.syncs.slice_id[first] == calls[0]
    assert figures.syncs.slice_id[next_sync(figures, 0, calls[0], 1)] == calls[1]
    assert next_sync(figures, 0, calls[0], -1) == -1
    assert next_sync(figures, 0, calls[-1], 1) == -1
    assert sync_of_slice(figures, calls[2]) == 2
    assert sync_of_slice(figures, 0) == -1


def test_self_time_leaves_out_the_direct_children(trace: Trace) -> None:
    assert self_ns(trace, rows(trace, "aten::mm")[0]) == 50_000
    assert self_ns(trace, rows(trace, "cudaLaunchKernel")[0]) == 10_000


def test_step_of_a_time(trace: Trace) -> None:
    assert [step_at(None, trace, t) for t in (-1, 0, 999_500, 1_000_000)] == [-1, 0, 0, 1]


def test_a_sync_point_is_shown_with_what_lies_around_it() -> None:
    assert with_context(100, 200, (0, 1_000), 1_000) == (0, 1_000)  # in view and wide enough: nothing moves
    start, end = with_context(5_000, 5_010, (0, 1_000), 1_000)
    assert (start, end) == (4_505, 5_505)  # as wide as before
    start, end = with_context(500, 510, (0, 1_000_000), 1_000)  # below a pixel
    assert end - start == pytest.approx(10 * 1_000 / 12)
    assert start < 500 < 510 < end
    start, end = with_context(5_000, 15_000, (0, 1_000), 1_000)
    assert end - start == pytest.approx(10_000 / 0.6)  # it does not fit
    assert start + end == pytest.approx(20_000)
    for dur in (4, 200, 790):  # moves only
        start, end = with_context(5_000, 5_000 + dur, (0, 1_000), 1_000)
        assert end - start == 1_000
    back = with_context(500, 600, (540, 560), 1_000, usual_ns=1_000)  # the user's width again
    assert back == (50, 1_050)


def test_going_along_sync_points_returns_to_the_users_zoom(make_view: Callable[..., TimelineView]) -> None:
    builder = TraceBuilder()
    for number, (at, wait) in enumerate(((0, 300), (20_000, 1), (40_000, 300), (60_000, 9_000), (80_000, 300))):
        builder.op("aten::mm", at + 10, 20).launch("gemm", at + 12, 5, at + 30, 70 + wait)
        builder.op("aten::item", at + 90, wait + 40)
        builder.copy("DtoH (Device -> Pageable)", at + 100, wait + 10, at + 100 + wait, 2, bytes=8)
        builder.op(f"aten::relu{number}", at + 15_000, 20)
    view = make_view(builder.build())
    figures = view.document.analysis.figures if view.document.analysis else None
    assert figures is not None
    view.document.zoom_to(-1_000_000, 4_000_000)
    usual, seen = view.document.viewport.width_ns, []
    for key in ("L", "L", "L", "L", "J"):
        QTest.keyClick(view, key)
        call = view.document.selected_slice
        start, end = int(view.document.trace.slices.start_ns[call]), int(view.document.trace.end_ns[call])
        shown = view.document.viewport
        assert shown.start_ns <= start
        assert end <= shown.end_ns
        share = (end - start) / shown.width_ns
        assert share < 0.81
        assert share * view.canvas.frame().lanes_px >= 3
        seen.append(shown.width_ns / usual)
    assert seen[1] == seen[3] == pytest.approx(1.0)
    assert 0.1 < seen[0] < 1.0 < seen[2] == seen[4] < 5
