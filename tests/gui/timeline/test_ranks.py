"""Timelines of several ranks: what is drawn of many is what can be seen and read."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPointF
from PySide6.QtGui import QImage

from core.analysis import analyze
from core.importing import open_trace
from gui.timeline import canvas, labels, step_strip
from gui.timeline.frame import LEAST_HEADER_PX
from gui.timeline.overlays import syncs
from gui.timeline.row import Row
from gui.timeline.view import TimelineView
from tests.trace_builder import TraceBuilder

RANKS, STEPS = 24, 3


@pytest.fixture
def many(make_view: Callable[..., TimelineView], tmp_path: Path) -> TimelineView:
    """Ranks that start 30 us after each other and wait for their device."""
    for rank in range(RANKS):
        made = TraceBuilder(pid=rank + 1, tid=rank + 1, origin_us=1e6 + 30 * rank, distributedInfo={"rank": rank})
        for step in range(STEPS):
            at = 1_000 * step
            made.step(step, at, 990).op("aten::mm", at + 10, 100).launch("gemm", at + 20, 5, at + 40, 700)
            made.runtime("cudaDeviceSynchronize", at + 730, 30)
        made.write(tmp_path / f"rank{rank}.trace.json")
    return make_view(open_trace(tmp_path))


def test_names_of_steps_that_lie_over_each_other_are_not_drawn(
    many: TimelineView, monkeypatch: pytest.MonkeyPatch
) -> None:
    words: list[str] = []
    monkeypatch.setattr(canvas, "draw_text", lambda painter, rect, text, colour: words.append(text))
    many.document.zoom_to(-100_000, 3_900_000)
    many.canvas.render(QImage(many.canvas.size(), QImage.Format.Format_RGB32))
    named = [text for text in words if "step" in text.casefold()]
    assert 1 <= len(named) <= STEPS


def test_waits_are_drawn_of_the_ranks_in_view(many: TimelineView, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    paint = syncs._narrow_bands
    monkeypatch.setattr(
        syncs, "_narrow_bands", lambda p, frame, ids, x, w: (drawn.extend(ids.tolist()), paint(p, frame, ids, x, w))
    )
    many.document.zoom_to(-100_000, 3_900_000)
    many.canvas.render(QImage(many.canvas.size(), QImage.Format.Format_RGB32))
    frame = many.canvas.frame()
    shown = {row.track_id for row in frame.visible_rows()}
    of = set(many.document.trace.slices.track_id[drawn].tolist())
    assert of and of <= shown
    assert len(of) < RANKS


def test_names_over_the_bars_of_many_ranks_do_not_lie_over_each_other(
    many: TimelineView, monkeypatch: pytest.MonkeyPatch
) -> None:
    many.document.set_analysis(analyze(many.document.trace))
    strip = many.strip
    strip.resize(LEAST_HEADER_PX + 200, strip.height())
    names: list[tuple[float, float, str]] = []
    real = labels.draw_text

    def note(painter: Any, rect: Any, text: str, colour: Any) -> None:
        if rect.left() >= LEAST_HEADER_PX and rect.top() == 0:
            needed = painter.fontMetrics().horizontalAdvance(text)
            assert needed <= rect.width()
            names.append((rect.left(), rect.left() + needed, text))
        real(painter, rect, text, colour)

    monkeypatch.setattr(step_strip, "draw_text", note)
    strip.render(QImage(strip.size(), QImage.Format.Format_RGB32))
    assert 3 <= len(names) < RANKS
    assert names[0][2].endswith("0")
    assert all(end < left for (_, end, _), (left, _, _) in pairwise(names))


def test_the_rows_of_many_ranks_are_fitted_with_few_looks_at_each(many: TimelineView) -> None:
    looks = 0

    class Counted(Row):
        def __eq__(self, other: object) -> bool:
            nonlocal looks
            looks += 1
            return self is other

        __hash__ = object.__hash__

    for row in many.rows.rows:
        row.__class__ = Counted
    many.rows.fit(200)
    many.rows.fit(2_000)
    assert looks == 0  # no row is looked for in a list of them


def test_steps_of_two_ranks_that_overlap_have_a_strip_each_over_their_whole_length(
    make_view: Callable[..., TimelineView], tmp_path: Path
) -> None:
    for rank, late in ((0, 400), (1, 0)):
        made = TraceBuilder(pid=rank + 1, tid=rank + 1, origin_us=1e6 + late, distributedInfo={"rank": rank})
        made.step(7, 0, 1_000 - late).op("aten::mm", 10, 100).write(tmp_path / f"rank{rank}.trace.json")
    view = make_view(open_trace(tmp_path))
    view.document.zoom_to(-100_000, 1_100_000)
    frame, trace = view.canvas.frame(), view.document.trace
    row = next(r for r in frame.visible_rows() if r.key == "steps")
    top, steps = frame.row_y(row), trace.steps
    start = int(steps.start_ns.min())
    image = QImage(view.canvas.size(), QImage.Format.Format_RGB32)
    view.canvas.render(image)
    found = {}
    for place, share in (("upper", 0.25), ("lower", 0.75)):
        y = top + round(share * row.height)
        for time in (350_000, 950_000):
            x = frame.x(float(start + time))
            found[place, time] = view.canvas.slice_at(QPointF(float(x), y))
            ground = image.pixelColor(round(float(frame.x(float(start - 50_000)))), y)
            drawn = image.pixelColor(round(float(x)), y) != ground
            assert drawn == (found[place, time] >= 0)
    assert found["upper", 350_000] == -1  # rank 0 begins later
    assert found["lower", 350_000] == found["lower", 950_000] >= 0
    assert found["upper", 950_000] >= 0 and found["upper", 950_000] != found["lower", 950_000]
