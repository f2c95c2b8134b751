"""The band of the verdict keeps its height while its figures are worked out."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from core.analysis import analyze
from core.importing import open_trace
from core.run_folder import SAMPLES
from gui.main_window import MainWindow
from gui.panels.verdict import VerdictBand
from gui.screenshot import settle
from gui.session import Document
from gui.widgets.labels import plain_tip


@pytest.mark.parametrize("size", [(1440, 900), (900, 600)])
def test_the_band_keeps_its_height_when_the_theme_changes(
    window: MainWindow, qtbot: QtBot, size: tuple[int, int]
) -> None:
    document = Document(open_trace(SAMPLES / "story_stage3_simulated.json.gz"))
    window.resize(*size)
    window.show()
    window.session.add_document(document)
    window.session.set_current(document)
    band = window.pages[document].findChild(VerdictBand)

    settle()
    waiting, dark = band.height(), window.session.dark
    for theme in (not dark, dark):
        window.session.set_dark(theme)
        settle()
        qtbot.waitUntil(lambda: band.height() == waiting)


@pytest.mark.parametrize("size", [(1280, 720), (1280, 690), (1280, 640), (1024, 700), (1280, 560)])
def test_the_sentence_is_whole_or_its_tooltip_is(window: MainWindow, qtbot: QtBot, size: tuple[int, int]) -> None:
    trace = open_trace(SAMPLES / "article_stage6_simulated.json.gz")
    document = Document(trace)
    window.resize(*size)
    window.show()
    window.session.add_document(document)
    document.set_analysis(analyze(trace))
    band = window.pages[document].findChild(VerdictBand)
    settle()
    whole, short = band.sentence, band.short_sentence
    assert len(whole.text()) > 250
    assert whole.isVisible() is (size[1] >= 640)
    assert whole.isVisible() is not short.isVisible()
    if whole.isVisible():
        qtbot.waitUntil(lambda: whole.height() >= whole.heightForWidth(whole.width()))
    else:
        assert short.fitting(short.width()) != short.full_text() == whole.text()
        assert short.toolTip() == plain_tip(whole.text())
