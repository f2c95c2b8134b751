"""No part of the window is a window of its own for a moment: on a desktop that is seen as a flash."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication, QWidget

from core.analysis import analyze
from core.importing import open_trace
from gui.main_window import MainWindow
from gui.screenshot import dispose, picture_window
from gui.tour_story import sample
from tests.gui.conftest import training


class Shown(QObject):
    """Notes every widget that is shown as a window, but for the main one."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        shown = event.type() == QEvent.Type.Show and isinstance(watched, QWidget) and watched.isWindow()
        if shown and not isinstance(watched, MainWindow):
            self.names.append(type(watched).__name__)
        return False


@pytest.mark.parametrize("example", [True, False], ids=["the example", "a trace"])
def test_only_the_window_is_shown_as_a_window(qapp: QApplication, example: bool) -> None:
    trace = open_trace(sample(0)) if example else training().build()
    seen = Shown()
    qapp.installEventFilter(seen)
    try:
        window = picture_window(trace, analyze(trace), (1280, 800))
        for page in ("compare", "iterations", "launch", "output", "runs", "start"):
            window.show_page(page)
        for document in window.session.documents:
            if document.suggestion(0) is not None:
                document.show_suggestion(0)
        QApplication.processEvents()
        dispose(window)
    finally:
        qapp.removeEventFilter(seen)
    assert seen.names == []
