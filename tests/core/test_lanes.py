from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.lanes import LaneIndex, device_lane, make_lane, module_lanes, union_lane
from tests.trace_builder import TraceBuilder, rows


def lane(*spans: tuple[int, int]):
    start, end = (np.array([s[i] for s in spans], np.int64) for i in (0, 1))
    return make_lane(np.arange(len(spans), dtype=np.int32), start, end)


def test_slices_of_a_track_are_split_by_depth_in_time_order() -> None:
    trace = TraceBuilder().op("outer", 0, 100).op("first", 10, 20).op("second", 40, 20).op("next", 200, 10).build()
    lanes = LaneIndex(trace).lanes(int(trace.slices.track_id[rows(trace, "outer")[0]]))
    assert [[trace.name(int(i)) for i in one.ids] for one in lanes] == [["outer", "next"], ["first", "second"]]
    assert all((np.diff(one.start_ns) >= 0).all() for one in lanes)


def test_window_keeps_what_touches_it_and_nothing_else() -> None:
    found = lane((0, 10), (20, 30), (40, 50))
    assert found.window(10, 40) == (1, 2)
    assert found.window(9, 41) == (0, 3)
    assert found.window(12, 18) == (1, 1)
    assert found.window(25, 26) == (1, 2)


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 40)), max_size=30),
    st.lists(st.tuples(st.integers(-5, 110), st.integers(0, 50)), min_size=1, max_size=8),
)
def test_windows_of_slices_that_overlap_are_those_of_a_search_through_their_ends(spans, windows) -> None:
    found = lane(*((start, start + dur) for start, dur in sorted(spans)))
    ends = np.maximum.accumulate(np.array([start + dur for start, dur in sorted(spans)], np.int64))
    assert found.end_ns.tolist() == ends.tolist()
    assert found.ends(np.arange(len(spans))).tolist() == [found.end(at) for at in range(len(spans))] == ends.tolist()
    for first, length in windows:
        low = int(np.searchsorted(ends, first, "right"))
        assert found.window(first, first + length) == (low, max(low, int((found.start_ns < first + length).sum())))


def test_slice_at_a_time_or_the_nearest_within_reach() -> None:
    found = lane((0, 10), (20, 30))
    assert found.at(5) == 0
    assert found.at(10.5) == -1
    assert found.at(12, slack_ns=3) == 0
    assert found.at(18, slack_ns=3) == 1
    assert found.at(29.5) == 1


def test_neighbours_end_at_the_borders() -> None:
    found = lane((0, 10), (20, 30))
    assert (found.neighbour(0, 1), found.neighbour(1, -1), found.neighbour(1, 1), found.neighbour(0, -1)) == (
        1,
        0,
        -1,
        -1,
    )
    assert found.neighbour(7, 1) == -1


def test_ends_out_of_order_by_rounding_do_not_hide_a_slice() -> None:
    found = lane((0, 101), (100, 100), (150, 160))
    assert found.window(100.5, 120)[0] == 0
    assert found.end_ns.tolist() == [101, 101, 160]


def test_modules_are_nested_among_themselves() -> None:
    made = TraceBuilder(with_stack=1)
    made.python("train.py(1): main", 0, 100).python("nn.Module: Net_0", 5, 90).python("net.py(3): forward", 6, 80)
    made.python("nn.Module: Linear_0", 10, 20).python("nn.Module: Linear_1", 40, 20)
    trace = made.build()
    lanes = module_lanes(trace, int(trace.slices.track_id[rows(trace, "nn.Module: Net_0")[0]]))
    names = [[trace.name(int(i)) for i in one.ids] for one in lanes]
    assert names == [["nn.Module: Net_0"], ["nn.Module: Linear_0", "nn.Module: Linear_1"]]


def test_device_lane_joins_overlapping_streams() -> None:
    made = TraceBuilder().kernel("a", 0, 10, stream=7).kernel("b", 5, 10, stream=8).kernel("c", 30, 5, stream=7)
    found = device_lane(made.build(), 0)
    assert (found.end_ns - found.start_ns).tolist() == [15_000, 5_000]


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 30)), max_size=40))
def test_union_covers_the_same_instants(spans: list[tuple[int, int]]) -> None:
    start = np.array([s for s, _ in spans], np.int64)
    end = start + np.array([d for _, d in spans], np.int64)
    joined = union_lane(np.arange(len(spans), dtype=np.int32), start, end)
    brute = {t for a, b in zip(start.tolist(), end.tolist(), strict=True) for t in range(a, b)}
    ours = {t for a, b in zip(joined.start_ns.tolist(), joined.end_ns.tolist(), strict=True) for t in range(a, b)}
    assert ours == brute
    assert (joined.start_ns[1:] > joined.end_ns[:-1]).all()


def test_modules_that_end_early_do_not_stand_for_the_rest_of_a_python_stack() -> None:
    """Some recordings name modules in their first step only: the closed row would be empty after it."""

    def first_of_summary(steps_with_modules: int) -> str:
        builder = TraceBuilder().python("train.py(1): main", 0, 100)
        for step in range(5):
            if step < steps_with_modules:
                builder.python("nn.Module: Net_0", 20 * step + 2, 10)
        trace = builder.build()
        (track,) = {int(t) for t in trace.slices.track_id}
        return trace.name(int(LaneIndex(trace).summary(track)[0].ids[0]))

    assert first_of_summary(5) == "nn.Module: Net_0"
    assert first_of_summary(1) == "train.py(1): main"
