"""The band of the verdict keeps its height while its figures are worked out."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication

from core.importing import open_trace
from core.run_folder import SAMPLES
from gui.main_window import MainWindow
from gui.panels.verdict import VerdictBand
from gui.session import Document


@pytest.mark.parametrize("size", [(1440, 900), (900, 600)])
def test_the_band_keeps_its_height_when_the_theme_changes(window: MainWindow, size: tuple[int, int]) -> None:
    document = Document(open_trace(SAMPLES / "story_stage3_simulated.json.gz"))
    window.resize(*size)
    window.show()
    window.session.add_document(document)
    window.session.set_current(document)
    band = window.pages[document].findChild(VerdictBand)

    def height() -> int:
        for _ in range(5):
            QApplication.processEvents()
        return band.height()

    waiting, dark = height(), window.session.dark
    for theme in (not dark, dark):
        window.session.set_dark(theme)
        assert height() == waiting
