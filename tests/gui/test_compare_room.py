"""Both timelines of a comparison are seen at once, and the handle between them shares out their height."""

from __future__ import annotations

import pytest

from core.analysis import analyze
from core.importing import open_trace
from gui.main_window import MainWindow
from gui.panels.compare import ComparePage
from gui.screenshot import settle
from gui.session import Document
from gui.tour_story import sample


def test_both_timelines_are_in_view_and_can_be_shared_out(window: MainWindow) -> None:
    window.resize(1368, 842)
    for number in (0, 1):
        trace = open_trace(sample(number))
        document = Document(trace)
        window.session.add_document(document)
        document.set_analysis(analyze(trace))
    window.run_command("compare")
    settle()
    page = window.findChild(ComparePage)
    assert page is not None
    assert page.timelines.count() == 2
    for place in (0, 1):
        shown = page.timelines.widget(place)
        assert shown is not None
        assert shown.visibleRegion().boundingRect().height() == shown.height() > 0
    first, second = page.timelines.sizes()
    assert first == pytest.approx(second, abs=2)
    page.timelines.moveSplitter(first - 60, 1)
    assert page.timelines.sizes()[0] == pytest.approx(first - 60, abs=2)
