"""What is under the pointer shows its extent through all rows, where it is something that encloses others."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtGui import QImage

from gui.timeline.view import TimelineView
from tests.trace_builder import TraceBuilder, rows


def edges(view: TimelineView, slice_id: int, x: int) -> int:
    """Pixels of a column that hovering a slice changes."""
    images = []
    for hovered in (-1, slice_id):
        view.canvas.hovered = hovered
        image = QImage(view.canvas.size(), QImage.Format.Format_RGB32)
        view.canvas.render(image)
        images.append(image)
    return sum(images[0].pixel(x, y) != images[1].pixel(x, y) for y in range(view.canvas.height()))


def test_a_range_under_the_pointer_has_edges_through_all_rows(make_view: Callable[..., TimelineView]) -> None:
    made = TraceBuilder().range("epoch", 0, 1000).range("forward", 300, 400).op("aten::linear", 350, 200)
    view = make_view(made.build(), figures=False)
    frame = view.canvas.frame()
    inside, operator = rows(view.document.trace, "forward")[0], rows(view.document.trace, "aten::linear")[0]
    for slice_id, lines in ((inside, True), (operator, False)):
        for time in (view.document.trace.slices.start_ns[slice_id], view.document.trace.end_ns[slice_id]):
            changed = edges(view, int(slice_id), round(frame.x(float(time))))
            assert (changed > view.canvas.height() // 4) == lines
