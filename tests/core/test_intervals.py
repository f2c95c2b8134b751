"""Sets of instants, against a plain bitmap."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core import intervals as sets_of_instants
from core.intervals import (
    EMPTY,
    Spans,
    clip,
    contains,
    coverage,
    covered_before,
    cut,
    divide,
    intersect,
    meet,
    subtract,
    union,
    union_all,
)

SIZE = 70
intervals = st.lists(st.tuples(st.integers(0, 50), st.integers(-2, 12)), max_size=9)


def arrays(pairs):
    start = np.array([s for s, _ in pairs], dtype=np.int64)
    return start, start + np.array([d for _, d in pairs], dtype=np.int64)


def bitmap(start, end):
    bits = np.zeros(SIZE, dtype=bool)
    for a, b in zip(start, end, strict=True):
        if b > a:
            bits[a:b] = True
    return bits


def bits_of(spans: Spans):
    return bitmap(spans.start, spans.end)


@given(intervals)
def test_union_is_every_instant_of_any_interval(pairs):
    start, end = arrays(pairs)
    spans = union(start, end)
    assert (bits_of(spans) == bitmap(start, end)).all()
    assert spans.total_ns == bitmap(start, end).sum()
    assert (spans.start < spans.end).all()
    assert (spans.start[1:] > spans.end[:-1]).all()  # touching intervals are one


@given(intervals, intervals)
def test_set_operations(one, two):
    a, b = union(*arrays(one)), union(*arrays(two))
    assert (bits_of(intersect(a, b)) == (bits_of(a) & bits_of(b))).all()
    assert meet(a, b) == meet(b, a) == bool((bits_of(a) & bits_of(b)).any())
    assert (bits_of(subtract(a, b)) == (bits_of(a) & ~bits_of(b))).all()
    assert (bits_of(union_all((a, b))) == (bits_of(a) | bits_of(b))).all()


@given(intervals, intervals)
def test_dividing_is_intersecting_and_subtracting(one, two):
    a, b = union(*arrays(one)), union(*arrays(two))
    inside, outside = divide(a, b)
    for found, wanted in ((inside, intersect(a, b)), (outside, subtract(a, b))):
        assert found.start.tolist() == wanted.start.tolist()
        assert found.end.tolist() == wanted.end.tolist()


@given(intervals, st.lists(st.tuples(st.integers(0, 60), st.integers(-3, 25)), max_size=6))
def test_coverage_of_overlapping_windows(pairs, windows):
    spans = union(*arrays(pairs))
    low, high = arrays(windows)
    bits = bits_of(spans)
    expected = [bits[a:b].sum() if b > a else 0 for a, b in zip(low, np.minimum(high, SIZE), strict=True)]
    assert coverage(spans, low, high).tolist() == expected


@given(intervals, st.integers(0, 60), st.integers(0, 30))
def test_clip_and_contains(pairs, start, length):
    spans = union(*arrays(pairs))
    inside = clip(spans, start, start + length)
    bits = bits_of(spans)
    outside = np.ones(SIZE, dtype=bool)
    outside[start : start + length] = False
    assert (bits_of(inside) == (bits & ~outside)).all()
    assert (contains(spans, np.arange(SIZE)) == bits).all()


@given(intervals, st.lists(st.integers(0, 60), max_size=6))
def test_cut_keeps_every_instant_and_no_piece_crosses_a_border(pairs, borders):
    spans = union(*arrays(pairs))
    at = np.unique(np.array(borders, dtype=np.int64))
    start, end = cut(spans, at)
    assert (bitmap(start, end) == bits_of(spans)).all()
    assert (end > start).all()
    assert not any(((start < border) & (border < end)).any() for border in at)


def test_nothing_is_nothing():
    assert len(EMPTY) == 0
    assert EMPTY.total_ns == 0
    assert coverage(EMPTY, np.array([0]), np.array([5])).tolist() == [0]
    assert subtract(EMPTY, EMPTY) is EMPTY


def test_coverage_of_many_windows_is_that_of_few(monkeypatch):
    spans = union(np.array([0, 20, 50]), np.array([10, 30, 90]))
    start = np.array([5, -3, 25, 60, 40])
    few = coverage(spans, start, start + 30)
    monkeypatch.setattr(sets_of_instants, "_MANY", 1)
    np.testing.assert_array_equal(coverage(spans, start, start + 30), few)


@given(intervals)
def test_of_many_instants_in_order_each_is_looked_up_as_one_alone(pairs):
    spans = union(*arrays(pairs))
    every = np.arange(-3, SIZE)
    many = every.repeat(1 + sets_of_instants._MANY // len(every))
    one_by_one = np.array([bool(contains(spans, np.array([t]))[0]) for t in every.tolist()])
    assert (contains(spans, many) == one_by_one.repeat(len(many) // len(every))).all()
    before = np.array([int(covered_before(spans, np.array([t]))[0]) for t in every.tolist()])
    assert (covered_before(spans, many) == before.repeat(len(many) // len(every))).all()
