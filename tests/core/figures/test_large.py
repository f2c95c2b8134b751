"""What is done in a quicker way on large or neatly nested traces gives the figures that the plain way gives."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core import memory
from core.analysis import analyze
from core.figures import lookup, stats, steps
from core.figures.compute import compute_figures
from core.figures.lookup import View
from core.replay import ahead
from core.tables import FLAG_CROSSING
from tests.core.figures.test_any_trace import build, event
from tests.trace_builder import TraceBuilder


def assert_equal(one, other):
    assert type(one) is type(other)
    if is_dataclass(one):
        for field in fields(one):
            assert_equal(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_equal(one[key], other[key])
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    else:
        assert one == other


def plainly(trace):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(View, "is_neat", False)
        patch.setattr(steps, "_LONG", 1 << 40, raising=False)
        return compute_figures(trace)


def as_if_large(trace):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "MANY", 1)
        patch.setattr(lookup, "_PART", 2)
        patch.setattr(stats, "_PART", 2)
        patch.setattr(steps, "_LONG", 0, raising=False)
        return compute_figures(trace)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(event, max_size=20))
def test_large_traces_have_the_figures_of_small_ones(events):
    trace = build(events)
    assert_equal(as_if_large(trace), plainly(trace))


def nested(end: int = 40) -> TraceBuilder:
    builder = TraceBuilder().step(1, 0, 100).step(2, 100, 90).range("forward", 5, 60)
    for at in (0, 100):
        builder.python("a.py(1): f", at + 1, 80).python("a.py(1): f", at + 3, 50).python("b.py(1): g", at + 60, 10)
        builder.op("aten::linear", at + 10, end).op("aten::mm", at + 12, 8).op("aten::mm", at + 20, 15)
        builder.launch("k", at + 22, 4, at + 30, 40)
    return builder


def test_neatly_nested_slices_are_told_from_others():
    trace = nested().build()
    assert View(trace).is_neat
    np.testing.assert_array_equal(stats._without_children(View(trace)), stats._without_any_children(View(trace)))
    assert_equal(as_if_large(trace), plainly(trace))
    assert not View(nested(end=15).build()).is_neat  # an operator that reaches beyond its parent
    rounded = nested().op("aten::add", 70, 4.5).op("aten::add", 74, 3).build()  # the first seems to end in the second
    assert not (rounded.slices.flags & FLAG_CROSSING).any()
    assert not View(rounded).is_neat


def test_an_operator_in_one_of_its_kind_adds_nothing_to_their_union():
    trace = nested().build()
    inside = [trace.name(i) for i in np.flatnonzero(View(trace).within_kind)]
    assert sorted(inside) == [
        "a.py(1): f",
        "a.py(1): f",
        "aten::mm",
        "aten::mm",
        "aten::mm",
        "aten::mm",
        "b.py(1): g",
        "b.py(1): g",
    ]


@settings(deadline=None)
@given(st.lists(st.integers(0, 30)), st.lists(st.integers(0, 30)))
def test_fewer_are_looked_up_among_more(values, times):
    ordered = np.sort(np.array(values, dtype=np.int64))
    for time_ns in (np.array(times, dtype=np.int64), np.sort(np.array(times * 9, dtype=np.int64))):
        np.testing.assert_array_equal(stats._found_before(ordered, time_ns), np.searchsorted(ordered, time_ns))


def two_steps() -> TraceBuilder:
    builder = TraceBuilder()
    for number in range(6):
        at = 100 * number
        builder.step(number, at, 100).op("aten::mm", at + 5, 20).launch("k", at + 10, 5, at + 20, 30)
        builder.op("aten::item", at + 30, 40).runtime("cudaStreamSynchronize", at + 35, 30)
    return builder


def test_a_replay_made_beside_the_rules_prices_the_same():
    trace = two_steps().build()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "MANY", 1)
        beside = analyze(trace)
    after = analyze(trace)
    assert beside.suggestions and beside.plan
    assert (beside.suggestions, beside.plan) == (after.suggestions, after.plan)
    assert_equal(beside.figures, after.figures)


def test_a_replay_that_fails_beside_the_rules_leaves_what_they_found(monkeypatch, caplog):
    def fails(trace, figures):
        raise ZeroDivisionError

    monkeypatch.setattr(memory, "MANY", 1)
    monkeypatch.setattr(ahead, "Replay", fails)
    found = analyze(two_steps().build())
    assert found.notes["replay"].startswith("ZeroDivisionError")
    assert found.suggestions and not found.plan and "the replay failed" in caplog.text
