from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.importing import open_trace
from core.kinds import TrackKind
from core.lanes import LaneIndex
from core.trace import Trace
from gui.session import Document
from gui.timeline.fitting import fit
from gui.timeline.layout import Layout
from gui.timeline.row import GROUP_PX, LANE_PX, PAD_PX, ROOMY_LANE_PX, Row, RowKind
from gui.timeline.rows import build_rows
from tests.gui.conftest import training
from tests.trace_builder import TraceBuilder, rows


def layout_of(trace: Trace) -> Layout:
    index = LaneIndex(trace)
    return Layout(build_rows(trace, index), index)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return layout_of(training().build(tmp_path / "train.json"))


def row_of(layout: Layout, kind: int) -> Row:
    return next(r for r in layout.rows if r.track_kind == kind)


def test_every_track_with_slices_has_one_row(layout: Layout) -> None:
    tracks = layout.index.trace.tracks
    shown = sorted(r.track_id for r in layout.rows if r.kind is RowKind.SLICES)
    assert shown == [t for t in range(len(tracks)) if tracks.end_id[t] > tracks.first_id[t]]


def test_bands_are_pinned_and_rows_stack_without_holes(layout: Layout) -> None:
    assert [r.key for r in layout.pinned] == ["steps", "syncs"]
    for section, height in ((layout.pinned, layout.pinned_px), (layout.scrolled, layout.scrolled_px)):
        y = 0
        for row in section:
            assert row.y == y
            y += row.height
        assert y == height


def test_step_lane_is_not_drawn_twice(layout: Layout) -> None:
    trace = layout.index.trace
    ranges = row_of(layout, TrackKind.CPU_RANGES)
    assert ranges.skip_lanes == 1
    assert layout.lane_position(ranges, rows(trace, "ProfilerStep#1")[0]) == -1
    assert layout.lane_position(ranges, rows(trace, "loss")[0]) == 0
    assert [trace.name(int(layout.lanes_of(ranges)[0].ids[0]))] == ["loss"]


def test_steps_of_two_threads_are_drawn_on_each() -> None:
    made = TraceBuilder().step(1, 0, 100, tid=1).step(2, 100, 100, tid=1).step(1, 20, 150, tid=2)
    layout = layout_of(made.build())
    shown = [row for row in layout.scrolled if row.track_kind == TrackKind.CPU_RANGES]
    assert [len(layout.lanes_of(row)[0]) for row in shown] == [2, 1]


@pytest.mark.parametrize(("pid", "heading"), [("CUDA functions", "CUDA functions"), (0, "")])
def test_a_device_without_a_make_is_called_what_its_process_is_called(pid: object, heading: str) -> None:
    made = TraceBuilder(gpu=None).op("aten::mul", 0, 5)
    made.slice("kernel", "mul", 10, 5, tid=7, pid=pid)
    (group,) = [row for row in layout_of(made.build()).rows if row.key == "gpu/0"]
    assert (group.title, group.subtitle) == ("GPU 0", heading)


def test_collapsing_a_group_hides_its_members(layout: Layout) -> None:
    group = next(r for r in layout.rows if r.kind is RowKind.GROUP)
    layout.toggle(group.key)
    assert not any(layout.is_shown(layout.by_key[k]) for k in group.members)
    assert layout.is_shown(group)
    assert group.height == GROUP_PX
    layout.toggle(group.key)
    assert all(layout.is_shown(layout.by_key[k]) for k in group.members)


def test_a_pinned_row_stays_when_its_group_is_collapsed(layout: Layout) -> None:
    stream = row_of(layout, TrackKind.DEVICE_STREAM)
    layout.set_pinned(stream.key, True)
    layout.toggle(stream.group)
    assert stream in layout.pinned
    assert layout.is_shown(stream)


def test_hide_and_show_again(layout: Layout) -> None:
    stream = row_of(layout, TrackKind.DEVICE_STREAM)
    layout.set_hidden(stream.group, True)
    assert not layout.is_shown(stream)
    layout.show_all()
    assert layout.is_shown(stream)


def test_filter_keeps_matches_and_their_groups(layout: Layout) -> None:
    layout.set_filter("STREAM 7")
    titles = [r.title for r in layout.scrolled]
    assert titles == ["GPU 0", "stream 7"]
    layout.set_filter("")
    assert len(layout.scrolled) > 2


def test_reorder_within_the_group_and_whole_groups(layout: Layout) -> None:
    ops, python = row_of(layout, TrackKind.CPU_OPS), row_of(layout, TrackKind.CPU_PYTHON)
    layout.move(python.key, ops.key)
    keys = [r.key for r in layout.rows]
    assert keys.index(python.key) == keys.index(ops.key) - 1
    stream = row_of(layout, TrackKind.DEVICE_STREAM)
    layout.move(stream.key, ops.key)  # another group: nothing happens
    assert [r.key for r in layout.rows] == keys
    layout.move(stream.group, ops.group)
    keys = [r.key for r in layout.rows]
    assert keys.index(stream.group) < keys.index(stream.key) < keys.index(ops.group)


def test_resize_takes_whole_lanes_and_scrolls_the_rest() -> None:
    made = TraceBuilder()
    for depth in range(30):
        made.op(f"op{depth}", depth, 1000 - 2 * depth)
    layout = layout_of(made.build())
    row = row_of(layout, TrackKind.CPU_OPS)
    assert row.shown_lanes == 12
    layout.resize(row.key, 20 * LANE_PX + 6)
    assert row.shown_lanes == 20
    assert layout.scroll_lanes(row.key, 100)
    assert row.first_lane == 10
    assert not layout.scroll_lanes(row.key, 1)
    deepest = rows(layout.index.trace, "op29")[0]
    assert layout.lane_position(row, deepest) == 19
    layout.scroll_lanes(row.key, -10)
    assert layout.lane_position(row, deepest) == -1
    layout.reveal(deepest)
    assert layout.lane_position(row, deepest) >= 0


def test_deep_rows_give_up_lanes_until_the_device_fits() -> None:
    made = TraceBuilder()
    for depth in range(30):
        made.op(f"op{depth}", depth, 1000 - 2 * depth)
    made.launch("gemm", at=40, call=5, start=60, dur=20)
    layout = layout_of(made.build())
    ops, stream = row_of(layout, TrackKind.CPU_OPS), row_of(layout, TrackKind.DEVICE_STREAM)
    layout.fit(330)
    assert ops.shown_lanes == 12
    assert layout.lane_px == LANE_PX
    layout.fit(1000)  # room for more of them, and for taller ones
    assert ops.shown_lanes == 24
    assert LANE_PX < layout.lane_px <= ROOMY_LANE_PX
    assert layout.pinned_px + layout.scrolled_px <= 1000
    layout.fit(220)
    assert 4 <= ops.shown_lanes < 12
    assert layout.pinned_px + stream.y + stream.height <= 220
    layout.fit(50)
    assert ops.shown_lanes == 3
    assert stream.height < LANE_PX + 2 * PAD_PX  # rows stand closer, too
    assert layout.state()["lanes"] == {}
    layout.fit(220)
    layout.resize(ops.key, 9 * LANE_PX)
    layout.fit(220)
    assert ops.shown_lanes == 9  # the user's choice stays


def launched(tmp_path: Path, folder: str = "profiling/") -> Layout:
    """A script under the launcher: two of its frames, the user's in them, a library's innermost."""
    made = TraceBuilder()
    made.python(f"{folder}_child.py(12): <module>", 0, 1000)
    made.python("runpy.py(80): run_path", 10, 900)
    made.python("train.py(1): <module>", 20, 800)
    made.python("train.py(9): step", 100, 300)
    made.python("torch/nn/functional.py(7): linear", 120, 100)
    made.op("aten::linear", 125, 50)
    return layout_of(made.build(tmp_path / "launched.json"))


@pytest.mark.parametrize("folder", ["profiling/", "", "/opt/steplens/profiling/"])  # torch cuts what sys.path holds
def test_collapsed_python_shows_own_frames_and_reveal_opens_it(tmp_path: Path, folder: str) -> None:
    layout = launched(tmp_path, folder)
    trace = layout.index.trace
    row = row_of(layout, TrackKind.CPU_PYTHON)
    assert not row.expanded
    shown = [trace.name(int(lane.ids[0])) for lane in layout.lanes_of(row)]
    assert shown == ["train.py(1): <module>", "train.py(9): step"]
    library = rows(trace, "torch/nn/functional.py(7): linear")[0]
    assert layout.lane_position(row, library) == -1
    layout.reveal(library)
    assert row.expanded
    assert layout.lane_position(row, library) >= 0


@pytest.mark.parametrize("folder", ["profiling/", ""])
def test_the_launchers_frames_are_scrolled_out_of_the_opened_stack(tmp_path: Path, folder: str) -> None:
    layout = launched(tmp_path, folder)
    row = row_of(layout, TrackKind.CPU_PYTHON)
    row.max_lanes = 3
    layout.toggle(row.key, True)
    names = [layout.index.trace.name(int(lane.ids[0])) for lane in layout.lanes_of(row)]
    assert names[0] == "train.py(1): <module>"
    assert layout.scroll_lanes(row.key, -2)  # nothing is left out
    assert layout.index.trace.name(int(layout.lanes_of(row)[0].ids[0])).startswith(f"{folder}_child.py")


def test_state_comes_back_through_json(layout: Layout, tmp_path: Path) -> None:
    ops, stream = row_of(layout, TrackKind.CPU_OPS), row_of(layout, TrackKind.DEVICE_STREAM)
    python = row_of(layout, TrackKind.CPU_PYTHON)
    layout.toggle(python.key)
    layout.set_pinned(stream.key, True)
    layout.set_hidden("queue", True)
    layout.resize("busy/0", 90)
    layout.move(python.key, ops.key)
    state = json.loads(json.dumps(layout.state()))
    other = layout_of(layout.index.trace)
    other.restore(state)
    assert other.state() == layout.state()
    assert [r.key for r in other.rows] == [r.key for r in layout.rows]


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"version": 2},
        {"version": 1, "hidden": [3, "nobody"], "pinned": {"steps": "yes"}, "lanes": {"steps": 10**9}},
        {"version": 1, "expanded": [1], "order": ["a", 3], "heights": None},
        [],
    ],
)
def test_a_foreign_state_changes_nothing(layout: Layout, state: object) -> None:
    before = layout.state()
    layout.restore(state)  # type: ignore[arg-type]
    assert layout.state() == before


def test_rows_of_the_same_name_have_keys_of_their_own() -> None:
    made = TraceBuilder()
    made.slice("cpu_op", "a", 0, 5, tid=1, pid=1).slice("cpu_op", "b", 0, 5, tid=1, pid=2)
    keys = [r.key for r in layout_of(made.build()).rows]
    assert len(keys) == len(set(keys))


def test_a_trace_without_slices_has_no_rows_to_show() -> None:
    layout = layout_of(TraceBuilder().instant("nothing", 5).build())
    assert [r for r in layout.scrolled if r.kind is RowKind.SLICES] == []


def test_memory_beyond_the_last_slice_is_in_view_and_says_whose_it_is(tmp_path: Path) -> None:
    builder = TraceBuilder().op("aten::empty", 0, 5)
    for ts, device in ((0, 0), (90, 0), (150, 1)):
        builder.memory(ts, 100, 100, 200, device=device)
    trace = builder.build(tmp_path / "t.json")
    assert trace.span_ns == (0, 5_000)
    assert trace.extent_ns == (0, 150_000)
    assert Document(trace).viewport.end_ns >= 150_000
    titles = [row.title for row in build_rows(trace, LaneIndex(trace))]
    assert {"GPU 0 memory", "GPU 1 memory"} <= set(titles)


def test_a_python_stack_that_fits_is_shown_whole(tmp_path: Path) -> None:
    shallow = TraceBuilder()
    for number, name in enumerate(("torch/cuda/__init__.py(219): _lazy_init", "odd name", "train.py(3): main")):
        shallow.python(name, number * 10, 9)
    flat = layout_of(shallow.build(tmp_path / "flat.json"))
    row = row_of(flat, TrackKind.CPU_PYTHON)
    assert not row.expanded
    assert [len(lane.ids) for lane in flat.lanes_of(row)] == [3]

    nested = TraceBuilder()
    for depth, name in enumerate(("train.py(3): main", "torch/a.py(1): f", "torch/b.py(2): g")):
        nested.python(name, depth, 90 - depth * 2)
    roomy = layout_of(nested.build(tmp_path / "nested.json"))
    row = row_of(roomy, TrackKind.CPU_PYTHON)
    assert len(roomy.lanes_of(row)) == 1  # the frames of one's own, until there is room for all
    fit(roomy, 600)
    assert len(roomy.lanes_of(row)) == 3
    assert roomy.lane_position(row, rows(roomy.index.trace, "torch/b.py(2): g")[0]) == 2


@pytest.mark.parametrize(("count", "opened"), [(8, 8), (40, 4)])
def test_of_very_many_ranks_only_the_first_are_open(tmp_path: Path, count: int, opened: int) -> None:
    for rank in range(count):
        made = TraceBuilder(pid=rank + 1, tid=rank + 1, distributedInfo={"rank": rank})
        made.op("aten::mm", 10, 100).launch("gemm", 20, 5, 40, 70).write(tmp_path / f"rank{rank}.trace.json")
    held = layout_of(open_trace(tmp_path))
    groups = [row for row in held.scrolled if row.kind is RowKind.GROUP and row.key.startswith("p/")]
    assert len(groups) == count
    assert [row.expanded for row in groups] == [place < opened for place in range(count)]
    assert held.state()["expanded"] == {}  # as by default: nothing that the user did


def test_rows_that_no_squeezing_brings_into_view_keep_their_lanes(tmp_path: Path) -> None:
    for rank in range(30):
        made = TraceBuilder(pid=rank + 1, tid=rank + 1, distributedInfo={"rank": rank})
        for depth in range(8):
            made.op("aten::mm", 10 + depth, 100 - 2 * depth)
        made.launch("gemm", 20, 5, 40, 70).write(tmp_path / f"rank{rank}.trace.json")
    held = layout_of(open_trace(tmp_path))
    ops = [row for row in held.scrolled if row.track_kind == TrackKind.CPU_OPS]
    whole = [row.shown_lanes for row in ops]
    held.fit(200)
    assert [row.shown_lanes for row in ops] == whole
    assert not held.cramped and held.module_lanes > 1
    held.fit(900)  # here they come nearer
    assert held.cramped and sum(row.shown_lanes for row in ops) < sum(whole)


def test_what_lower_rows_free_goes_back_to_operators(tmp_path: Path) -> None:
    for rank in range(3):
        made = TraceBuilder(pid=rank + 1, tid=rank + 1, distributedInfo={"rank": rank})
        for thread in (rank + 1, rank + 101):
            for depth in range(6):
                made.op("aten::mm", 10 + depth, 100 - 2 * depth, tid=thread)
        made.launch("gemm", 20, 5, 40, 70).write(tmp_path / f"rank{rank}.trace.json")
    held = layout_of(open_trace(tmp_path))
    ops = [row for row in held.scrolled if row.track_kind == TrackKind.CPU_OPS]
    usual = [row.shown_lanes for row in ops]
    lowered = 0
    for height_px in range(200, 900, 5):
        held.fit(height_px)
        streams = [row for row in held.scrolled if row.track_kind == TrackKind.DEVICE_STREAM]
        low = held.pinned_px + streams[-1].y + streams[-1].height
        if held.pad_px < PAD_PX and low <= height_px:
            lowered += 1
            lacking = any(row.shown_lanes < lanes for row, lanes in zip(ops, usual, strict=True))
            assert not lacking or height_px - low < LANE_PX, height_px
    assert lowered
