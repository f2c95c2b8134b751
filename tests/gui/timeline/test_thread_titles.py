"""What threads are called in the headings, the flame graph and the filter."""

from __future__ import annotations

from pathlib import Path

from core.lanes import LaneIndex
from gui.models.flame_query import thread_name
from gui.models.thread_titles import thread_titles, track_words
from gui.timeline.layout import Layout
from gui.timeline.rows import build_rows
from tests.trace_builder import TraceBuilder


def threads() -> TraceBuilder:
    """A main thread, and one thread for each way in which a name can tell something or nothing."""
    made = TraceBuilder(gpu=None).step(0, 0, 1000).op("aten::mm", 10, 900)
    made.op("autograd::engine::evaluate_function: MmBackward0", 100, 400, tid=9002).op("aten::item", 600, 50, tid=9002)
    made.op("aten::relu", 100, 400, tid=3).op("MulBackward0", 600, 50, tid=3)
    for tid in (4, 5, 6, 7, 8):
        made.op("aten::add", 100, 50, tid=tid)
    names = {9002: "thread 9002 (python3.10)", 3: "thread 3 (python)", 4: "thread 4 (pt_autograd_0)", 5: "loader",
             6: "thread 6 (worker)", 7: "thread 7 (worker)", 8: "thread 8 ()"}  # fmt: skip
    for tid, name in names.items():
        made.name_thread(name, tid=tid)
    return made


def test_threads_are_called_by_what_they_are_for(tmp_path: Path) -> None:
    trace = threads().build(tmp_path / "threads.json")
    by_tid = dict(zip(trace.threads.tid, thread_titles(trace), strict=True))
    main = next(t for t, m in zip(trace.threads.tid, trace.threads.main, strict=True) if m)
    assert by_tid.pop(main) == "Main thread"
    assert by_tid == {"9002": "Backward thread", "3": "thread 3", "4": "pt_autograd_0", "5": "loader", "6": "thread 6",
                      "7": "thread 7", "8": "thread 8"}  # fmt: skip
    assert thread_name(trace, trace.threads.tid.index("9002")) == "Backward thread"


def test_a_backward_thread_of_old_torch_is_known_by_its_functions(tmp_path: Path) -> None:
    made = TraceBuilder(gpu=None).step(0, 0, 1000).op("aten::mm", 10, 900)
    made.op("CudnnConvolutionBackward", 100, 400, tid=9002).op("torch::autograd::AccumulateGrad", 600, 50, tid=9002)
    trace = made.build(tmp_path / "old.json")
    assert thread_titles(trace)[trace.threads.tid.index("9002")] == "Backward thread"


def test_the_filter_finds_a_named_thread_by_its_number(tmp_path: Path) -> None:
    trace = threads().build(tmp_path / "threads.json")
    index = LaneIndex(trace)
    layout = Layout(build_rows(trace, index), index)
    layout.set_filter("9002")
    assert [row.title for row in layout.scrolled if row.track_id >= 0] == ["Backward thread"]


def test_a_track_is_called_as_its_heading_and_found_by_its_number(tmp_path: Path) -> None:
    trace = threads().build(tmp_path / "threads.json")
    words = [track_words(trace, track) for track in range(len(trace.tracks))]
    assert ("Backward thread · 9002", "operators") in words
    assert ("thread 6", "operators") in words
    device = TraceBuilder().kernel("gemm", 0, 10, stream=7).build(tmp_path / "device.json")
    assert ("stream 7", "device work") in [track_words(device, track) for track in range(len(device.tracks))]
