"""A walk over every real trace, without an error or a warning."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from PySide6.QtCore import QPointF
from PySide6.QtGui import QImage

from core.errors import TraceError
from core.importing import open_trace
from gui.timeline.row import RowKind
from gui.timeline.view import TimelineView
from tests.shared import SHARED, TRACES, needs_shared

MAX_BYTES = 1_300_000  # larger files only cost time here; the largest ones have a test of their own
FILES = sorted(TRACES.glob("*.json*")) if TRACES.is_dir() else []
CASES = sorted((SHARED / "cases").glob("*/*.json")) if SHARED.is_dir() else []


def walk(view: TimelineView) -> None:
    document, port = view.document, view.document.viewport
    image = QImage(view.size(), QImage.Format.Format_RGB32)
    for width in (port.span_ns * 1.02, port.span_ns / 37, port.span_ns / 5000, 50.0):
        middle = port.first_ns + port.span_ns * 0.43
        document.zoom_to(middle - width / 2, middle + width / 2)
        view.render(image)
    port.fit()
    for x in range(200, 1200, 250):
        for y in range(10, view.canvas.height(), 45):
            view.canvas.point(QPointF(x, y))
            view.canvas.render(image)
    view.canvas.point(None)
    count = len(document.trace.slices)
    for slice_id in np.linspace(0, count - 1, min(count, 12)).astype(int).tolist():
        view.go_to(slice_id)
        view.follow(forward=True)
        view.follow(forward=False)
        view.neighbour(1)
        frame = view.canvas.frame()
        assert document.selected_slice < 0 or frame.place_of(document.selected_slice) is not None
    view.go_to_sync(1)
    view.toggle_all_flows()
    view.toggle_legend()
    for row in view.rows.rows:
        if row.can_collapse:
            view.toggle(row.key)
    view.render(image)
    view.toggle_colours()
    view.set_filter("stream")
    view.render(image)
    view.set_filter("")
    assert any(r.kind is RowKind.SLICES for r in view.rows.rows) == bool(count)


@needs_shared
@pytest.mark.parametrize("path", [f for f in FILES if f.stat().st_size < MAX_BYTES], ids=lambda f: f.name.split("_")[0])
def test_every_trace_can_be_walked(path, make_view: Callable[..., TimelineView]) -> None:
    walk(make_view(open_trace(path)))


@needs_shared
@pytest.mark.parametrize("path", CASES, ids=lambda f: f"{f.parent.name[:2]}-{f.stem}")
def test_every_faulty_case_that_opens_can_be_walked(path, make_view: Callable[..., TimelineView]) -> None:
    try:
        trace = open_trace(path)
    except TraceError:
        return
    walk(make_view(trace))
