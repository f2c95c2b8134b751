from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.lanes import Lane, make_lane, stacked
from core.lod import EMPTY_BOXES, LEVELS, bin_width_ns, coverage, fold, fold_lanes


def lane_of(gaps_and_lengths: list[tuple[int, int]]) -> Lane:
    start, end, at = [], [], 0
    for gap, length in gaps_and_lengths:
        start.append(at + gap)
        at += gap + length
        end.append(at)
    n = len(start)
    return make_lane(np.arange(n, dtype=np.int32), np.array(start, np.int64), np.array(end, np.int64))


lanes = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 120)), min_size=1, max_size=60).map(lane_of)


@settings(max_examples=150, deadline=None)
@given(lanes, st.sampled_from([1, 2, 8, 32, 128]), st.integers(0, 3000), st.integers(1, 3000), st.data())
def test_nothing_in_the_window_is_left_out(
    lane: Lane, bin_ns: int, start: int, width: int, data: st.DataObject
) -> None:
    keys = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(lane), max_size=len(lane))), np.uint8)
    boxes = fold(lane, keys, start, start + width, bin_ns)
    lo, hi = lane.window(start, start + width)
    assert int(boxes.count.sum()) == hi - lo
    for i in range(lo, hi):
        inside = (boxes.start_ns <= lane.start_ns[i]) & (boxes.end_ns >= lane.end_ns[i])
        assert inside.any()
    assert (boxes.count[: boxes.single] == 1).all()
    lengths = (boxes.end_ns - boxes.start_ns)[: boxes.single]
    assert (lengths >= bin_ns).all()
    assert ((boxes.level >= 1) & (boxes.level <= LEVELS)).all()


def test_long_slices_stay_themselves_and_short_ones_are_folded() -> None:
    lane = lane_of([(0, 100), (0, 1), (1, 1), (1, 1), (5, 200)])
    boxes = fold(lane, np.zeros(5, np.uint8), 0, 400, 16)
    assert boxes.slice_id[: boxes.single].tolist() == [0, 4]
    assert boxes.count[boxes.single :].tolist() == [3]
    assert (boxes.start_ns[2], boxes.end_ns[2]) == (100, 105)


def test_a_lone_short_slice_is_still_a_box() -> None:
    boxes = fold(lane_of([(5_000_000, 1)]), np.zeros(1, np.uint8), 0, 10_000_000, 1 << 14)
    assert len(boxes) == 1
    assert boxes.slice_id[0] == 0
    assert boxes.level[0] == 1


def test_density_is_told_by_the_level() -> None:
    thin = fold(lane_of([(9, 1)] * 40), np.zeros(40, np.uint8), 0, 400, 64)
    thick = fold(lane_of([(1, 9)] * 40), np.zeros(40, np.uint8), 0, 400, 64)
    assert thin.level[np.argmax(thin.count)] < thick.level[np.argmax(thick.count)]


def test_runs_break_where_the_look_changes() -> None:
    lane = lane_of([(0, 2)] * 40)
    keys = np.repeat(np.array([0, 1], np.uint8), 20)
    boxes = fold(lane, keys, 0, 80, 8)
    assert len(boxes) == 2
    assert keys[boxes.slice_id].tolist() == [0, 1]


def test_cost_follows_the_bins_not_the_slices() -> None:
    lane = lane_of([(1, 2)] * 20_000)
    boxes = fold(lane, (np.arange(20_000) % 2).astype(np.uint8), 0, 60_000, 1024)
    assert len(boxes) <= 60_000 // 1024 + 2


def test_an_empty_window_has_no_boxes() -> None:
    assert fold(lane_of([(0, 10)]), np.zeros(1, np.uint8), 20, 30, 4) is EMPTY_BOXES


@pytest.mark.parametrize("ns_per_px", [0.01, 0.4, 1.0, 7.3, 1000.0, 123456.0])
def test_a_bin_is_a_power_of_two_near_two_pixels(ns_per_px: float) -> None:
    width = bin_width_ns(ns_per_px)
    assert width & (width - 1) == 0
    assert width == 1 or 1.41 <= width / ns_per_px <= 2.84


@given(lanes, st.integers(1, 40))
def test_coverage_agrees_with_counting(lane: Lane, step: int) -> None:
    edges = np.arange(0, int(lane.end_ns[-1]) + step + 1, step, dtype=np.int64)
    taken = np.zeros(int(edges[-1]) + 1)
    for a, b in zip(lane.start_ns.tolist(), lane.end_ns.tolist(), strict=True):
        taken[a:b] = 1
    brute = [taken[a:b].mean() for a, b in zip(edges[:-1], edges[1:], strict=True)]
    np.testing.assert_allclose(coverage(lane, edges), brute, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.lists(lanes, min_size=1, max_size=5), st.sampled_from([1, 8, 128]), st.integers(0, 2000), st.booleans())
def test_lanes_folded_together_are_as_each_alone(several: list[Lane], bin_ns: int, start: int, shared: bool) -> None:
    keys = (np.arange(max(map(len, several))) // 3 % 3).astype(np.uint8)
    together, lane = fold_lanes(stacked(several) if shared else several, keys, start, start + 1500, bin_ns)
    single = np.arange(len(together)) < together.single
    for number, one in enumerate(several):
        alone, of = fold(one, keys, start, start + 1500, bin_ns), lane == number
        assert alone.single == np.count_nonzero(single & of)
        for name in ("start_ns", "end_ns", "slice_id", "count", "level"):
            assert getattr(together, name)[of].tolist() == getattr(alone, name).tolist()
