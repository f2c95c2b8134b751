"""Every view of the window on real traces, small ones of each kind."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from gui.main_window import MainWindow
from gui.screenshot import settle
from gui.session import TimeRange
from tests.shared import needs_shared, trace_path

KINDS = {
    "d04": "records of event synchronisation",
    "d13": "one graph launch with hundreds of kernels",
    "m35": "device work alone",
    "m46": "no operator and no kernel",
    "m60": "a Python stack of 1500 frames",
    "m61": "invalid JSON with odd names",
    "m62": "several threads",
}


@needs_shared
@pytest.mark.parametrize("trace_id", list(KINDS), ids=KINDS.get)
def test_every_view_of_a_real_trace_without_error_or_warning(window: MainWindow, qtbot: QtBot, trace_id: str) -> None:
    window.session.open([trace_path(trace_id)])
    qtbot.waitUntil(lambda: bool(window.session.documents) or window.banner.isVisible(), timeout=60_000)
    document = window.session.documents[0]
    qtbot.waitUntil(lambda: document.analysis is not None and not document.analysis_running, timeout=60_000)
    page = window.current_page()
    assert page is not None
    assert document.analysis_error is None
    assert document.analysis is not None
    for panel_id in page.panel_ids():
        window.show_panel(panel_id)
    for index in range(len(document.analysis.suggestions)):
        document.show_suggestion(index)
    window.show_panel("details")
    count = len(document.trace.slices)
    for slice_id in range(0, count, max(1, count // 12)):
        document.go_to_slice(slice_id)
        settle(3)
    first, last = document.trace.span_ns
    document.select_range(TimeRange(first, (first + last) // 2 + 1))
    settle(3)
    assert not page.grab().isNull()
