"""Nesting agrees with the plain definition on small random tracks; numbers are converted exactly."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.importing import native, stack
from core.importing.numbers import EXACT_BELOW_US, needs_text, time_ns, times_ns, whole
from core.importing.stack import TOLERANCE_NS, nest

_SLICES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30)), min_size=1, max_size=25)


def _sorted(spans, unit):
    spans = sorted(spans, key=lambda s: (s[0], -s[1]))
    return np.array([s * unit for s, _ in spans], np.int64), np.array([d * unit for _, d in spans], np.int64)


@settings(max_examples=200, deadline=None)
@given(_SLICES, st.booleans())
def test_parents_enclose_and_lanes_are_free(spans, siblings):
    start, dur = _sorted(spans, 10 * TOLERANCE_NS)
    end = start + dur
    got = nest(start, dur, siblings)
    n = len(start)
    for i in range(n):
        parent = got.parent[i]
        if parent >= 0:
            assert start[parent] <= start[i]
            assert end[parent] >= end[i]
        enclosing = [j for j in range(i) if end[j] >= end[i] and end[j] > start[i] and not got.crossing[j]]
        if not got.crossing[i]:
            assert (parent >= 0) == bool(enclosing)
            if enclosing:
                assert parent == enclosing[-1]
        inside = [j for j in range(i + 1, n) if start[j] < end[i]]
        assert got.subtree_end[i] == max([i + 1, *(j + 1 for j in inside)])
        for j in range(i):
            if got.depth[i] == got.depth[j]:
                assert end[j] <= start[i] or end[i] <= start[j], "two slices of a lane overlap"


@pytest.mark.skipif(not native.available(), reason="the compiled library was not built here (no C compiler)")
@settings(max_examples=300, deadline=None)
@given(_SLICES, st.booleans())
def test_the_compiled_nest_is_that_of_numpy(spans, laminar):
    start, dur = _sorted(spans, 1)
    end = start + dur
    if laminar:  # each is cut where the one around it ends
        for i in range(len(start)):
            around = [j for j in range(i) if start[i] < end[j]]
            end[i] = min([end[i], *(end[j] for j in around)])
        order = np.lexsort((-end, start))
        start, end = start[order], end[order]
    compiled, slow = native.nest(start, end), stack._nest_clean(start, end, end - start)
    assert (compiled is None) == (slow is None)
    if compiled is not None:
        for mine, other in zip(compiled, slow, strict=True):
            assert mine.dtype == other.dtype
            assert mine.tolist() == other.tolist()


def test_nesting_does_without_the_compiled_library(monkeypatch):
    start, dur = np.array([0, 1, 1, 5, 10]), np.array([9, 3, 0, 2, 1])
    wanted = nest(start, dur, siblings=False)
    monkeypatch.setattr(native, "_library", lambda: None)
    got = nest(start, dur, siblings=False)
    assert [c.tolist() for c in vars(got).values()] == [c.tolist() for c in vars(wanted).values()]
    assert got.parent.tolist() == [-1, 0, 1, 0, -1]


def test_rounding_is_forgiven_both_ways():
    start, dur = _sorted([(0, 100), (10, 91), (101, 5)], 1000)  # the child ends 1 us after its parent
    got = nest(start, dur, siblings=False)
    assert got.parent.tolist() == [-1, 0, -1]
    start, dur = np.array([0, 9_500]), np.array([10_000, 8_000])  # a kernel starts half a us before the last ends
    got = nest(start, dur, siblings=True)
    assert (got.parent.tolist(), got.depth.tolist(), got.crossing.any()) == ([-1, -1], [0, 0], False)


@given(st.integers(0, 2**43 * 1000 - 1))
def test_floats_of_three_decimals_are_exact(ns):
    written = float(f"{ns // 1000}.{ns % 1000:03d}")
    assert time_ns(written) == ns
    assert times_ns(np.array([written]))[0][0] == ns


@given(st.integers(-(10**18), 10**18))
def test_text_and_decimals_are_exact_at_any_size(ns):
    sign, rest = "-" if ns < 0 else "", abs(ns)
    text = f"{sign}{rest // 1000}.{rest % 1000:03d}"
    assert time_ns(text) == ns
    assert time_ns(Decimal(text)) == ns


def test_what_is_no_time():
    for value in ("nan", "inf", "", "abc", None, True, [], float("nan"), float("inf"), 1e300, 10**30, "1e999999999"):
        assert time_ns(value) is None
    assert needs_text(np.array([EXACT_BELOW_US + 0.5]))
    assert not needs_text(np.array([EXACT_BELOW_US + 1, 1.5]))
    assert [whole(v) for v in (3, "3", "0x1f", 2**64 - 1, 2**70, None, "x", 1.0)] == [3, 3, 31, -1, -1, -1, -1, 1]
