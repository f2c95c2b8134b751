"""Going from hit to hit: the view keeps what it can, and rows that a hit opened are folded when it is left."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from core.kinds import TrackKind
from gui.timeline.row import Row
from gui.timeline.view import TimelineView
from tests.trace_builder import TraceBuilder, rows


@pytest.fixture
def view(make_view: Callable[..., TimelineView]) -> TimelineView:
    made = TraceBuilder()
    made.python("train.py(1): <module>", 0, 100_000)
    for k in range(20):
        at = 1000 + 4500 * k
        made.python("train.py(9): step", at, 3000)
        for depth in range(12):
            made.python(f"torch/nn/deep.py({depth}): call{depth}", at + 10 + depth, 2900 - 2 * depth)
        made.op("aten::linear", at + 100, 50)
    made.range("epoch", 0, 100_000)
    return make_view(made.build(), figures=False)


def python_row(view: TimelineView) -> Row:
    return next(row for row in view.rows.rows if row.track_kind == TrackKind.CPU_PYTHON)


def search(view: TimelineView, *names: str) -> None:
    found = [i for name in names for i in rows(view.document.trace, name)]
    hits = np.array(sorted(found, key=lambda i: view.document.trace.slices.start_ns[i]), np.int32)
    view.document.set_search("x" if names else "", hits)


def test_the_first_hit_is_the_first_in_view_and_the_next_keep_the_width(view: TimelineView) -> None:
    document = view.document
    search(view, "aten::linear")
    document.zoom_to(30_000_000, 60_000_000)
    document.go_to_hit(1)
    start = document.trace.slices.start_ns
    assert 30_000_000 <= start[document.selected_slice] < 33_500_000
    width = document.viewport.width_ns
    assert 50_000 / width == pytest.approx(0.06)
    before = document.selected_slice
    document.go_to_hit(1)
    assert start[document.selected_slice] - start[before] == 4_500_000
    assert document.viewport.width_ns == pytest.approx(width)
    assert document.viewport.start_ns < start[document.selected_slice] < document.viewport.end_ns
    document.go_to_hit(-1)
    assert document.selected_slice == before


def test_a_hit_in_view_that_can_be_read_moves_nothing(view: TimelineView) -> None:
    document = view.document
    search(view, "train.py(9): step")
    document.zoom_to(20_000_000, 50_000_000)
    shown = document.viewport.start_ns, document.viewport.end_ns
    for _ in range(4):
        document.go_to_hit(1)
        assert (document.viewport.start_ns, document.viewport.end_ns) == shown


def test_a_hit_wider_than_the_view_is_shown_whole(view: TimelineView) -> None:
    document = view.document
    search(view, "epoch")
    document.zoom_to(30_000_000, 31_000_000)
    document.go_to_hit(1)
    assert document.viewport.width_ns >= 100_000_000


def test_a_row_that_a_hit_opened_is_folded_when_the_search_goes_on(view: TimelineView) -> None:
    document, row = view.document, python_row(view)
    view.toggle(row.key, False)
    search(view, "torch/nn/deep.py(5): call5", "aten::linear")
    document.go_to_hit(1)  # the first operator, and then the frame around the next one
    document.go_to_hit(1)
    assert row.expanded
    document.go_to_hit(1)
    assert document.trace.name(document.selected_slice) == "aten::linear"
    assert not row.expanded
    document.go_to_hit(1)
    assert row.expanded
    document.set_search("", np.zeros(0, np.int32))
    assert row.expanded  # the slice that is still selected is in it
    document.select(rows(document.trace, "aten::linear")[0])
    assert row.expanded  # and now it is the user's


def test_a_row_that_the_user_had_open_stays(view: TimelineView) -> None:
    document, row = view.document, python_row(view)
    view.toggle(row.key, True)
    search(view, "torch/nn/deep.py(5): call5", "aten::linear")
    document.go_to_hit(1)  # the first operator, and then the frame around the next one
    document.go_to_hit(1)
    document.go_to_hit(1)
    assert row.expanded


def test_the_first_hit_is_the_operator_rather_than_the_frame_of_its_name(
    make_view: Callable[..., TimelineView],
) -> None:
    made = TraceBuilder()
    made.python("loss.py(3): sqrt", 0, 100)
    made.op("aten::sqrt", 10, 50)
    made.python("loss.py(9): sqrt", 200, 100)
    document = make_view(made.build(), figures=False).document
    names = ("loss.py(3): sqrt", "aten::sqrt", "loss.py(9): sqrt")
    every = np.array([rows(document.trace, name)[0] for name in names], np.int32)
    document.set_search("sqrt", every)
    document.go_to_hit(1)
    assert document.trace.name(document.selected_slice) == "aten::sqrt"
    document.go_to_hit(1)
    assert document.selected_slice == every[2]  # a frame without such an operator in it
