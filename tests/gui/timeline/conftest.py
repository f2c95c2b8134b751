"""A timeline on a small trace whose every place is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPointF
from PySide6.QtWidgets import QApplication

from core.analysis import Analysis
from core.figures.compute import compute_figures
from core.trace import Trace
from gui.session import Document, Session
from gui.timeline.view import TimelineView
from tests.gui.conftest import training

WIDTH, HEIGHT = 1200, 700


@pytest.fixture
def make_view(qapp: QApplication) -> Iterator[Callable[..., TimelineView]]:
    """Timelines shown at `WIDTH` x `HEIGHT` that move at once."""
    made: list[TimelineView] = []

    def make(trace: Trace, *, figures: bool = True, dark: bool = True) -> TimelineView:
        session = Session()
        session.dark = dark
        document = Document(trace)
        if figures:
            document.set_analysis(Analysis(compute_figures(trace)))
        view = TimelineView(session, document)
        view.motion.animated = False
        view.resize(WIDTH, HEIGHT)
        view.show()
        made.append(view)
        return view

    yield make
    for view in made:
        view.hide()
        view.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


@pytest.fixture
def view(make_view: Callable[..., TimelineView], tmp_path) -> TimelineView:
    """The training trace of the window's tests."""
    return make_view(training().build(tmp_path / "train.json"))


def place(view: TimelineView, slice_id: int) -> QPointF:
    """Middle of a slice on the canvas."""
    rect = view.canvas.frame().rect_of(slice_id)
    assert rect is not None, f"slice {slice_id} is not shown"
    return rect.center()
