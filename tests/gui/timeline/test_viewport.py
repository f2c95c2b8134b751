from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gui.timeline.viewport import Viewport


def test_zoom_keeps_the_anchor_where_it_is() -> None:
    view = Viewport(0, 1_000_000)
    view.show(200_000, 600_000)
    before = view.x_of(300_000, 1000)
    view.zoom(0.25, 300_000)
    assert view.x_of(300_000, 1000) == pytest.approx(before)
    assert view.width_ns == pytest.approx(100_000)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no fault
@given(st.floats(-1e9, 1e9), st.floats(1, 1e9), st.lists(st.floats(0.01, 100), max_size=8))
def test_the_view_never_leaves_the_trace_by_more_than_a_tenth(start: float, width: float, factors: list[float]) -> None:
    view = Viewport(0, 10_000_000)
    view.show(start, start + width)
    for factor in factors:
        view.zoom(factor, view.start_ns)
        view.pan(view.width_ns * 3)
    margin = view.width_ns * view.MARGIN * 1.001 + 1
    assert view.start_ns >= view.first_ns - margin - max(0, view.width_ns - view.span_ns)
    assert view.end_ns <= view.last_ns + margin + max(0, view.width_ns - view.span_ns)
    assert view.width_ns * 1.000001 >= view.MIN_WIDTH_NS
    assert view.width_ns <= view.span_ns * 1.2 + 1


def test_time_and_pixel_are_inverse() -> None:
    view = Viewport(0, 5_000)
    view.show(1_000, 2_000)
    assert view.time_at(view.x_of(1_234, 800), 800) == pytest.approx(1_234)


def test_back_and_forward_go_through_views() -> None:
    view = Viewport(0, 1_000_000)
    first = (view.start_ns, view.end_ns)
    view.show(0, 1_000, remember=True)
    second = (view.start_ns, view.end_ns)
    view.show(5_000, 6_000, remember=True)
    assert view.back()
    assert (view.start_ns, view.end_ns) == second
    assert view.back()
    assert (view.start_ns, view.end_ns) == first
    assert not view.back()
    assert view.forward()
    assert (view.start_ns, view.end_ns) == second
    view.show(7_000, 8_000, remember=True)
    assert not view.can_go_forward


def test_a_trace_without_length_can_be_shown() -> None:
    view = Viewport(0, 0)
    view.fit()
    view.zoom(0.5, 0)
    assert view.width_ns > 0


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_time_leaves_the_view_as_it_is(odd: float) -> None:
    view = Viewport(0, 1_000_000)
    view.show(200_000, 600_000)
    for start, end in ((odd, 5.0), (5.0, odd), (odd, odd)):
        view.show(start, end)
        assert (view.start_ns, view.end_ns) == (200_000, 600_000)
    view.pan(odd)
    assert (view.start_ns, view.end_ns) == (200_000, 600_000)
    view.show(1e308, 1.7e308)
    assert view.end_ns <= view.last_ns + view.width_ns
