from __future__ import annotations

from pytestqt.qtbot import QtBot

from gui.main_window import MainWindow
from gui.panels import tour
from gui.session import Document


def bar(window: MainWindow) -> tour.TourBar:
    page = window.current_page()
    assert page is not None
    found = page.findChild(tour.TourBar)
    assert found is not None
    return found


def test_every_station_has_its_trace() -> None:
    assert all(tour.sample(k).is_file() for k in range(len(tour.stations())))


def test_an_ordinary_trace_shows_no_tour(window: MainWindow, document: Document) -> None:
    assert not bar(window).isVisible()


def test_the_tour_shows_each_fault_and_goes_on(window: MainWindow, qtbot: QtBot) -> None:
    window.run_command("learn")
    for stage in range(5):  # the last of them is the illusion at the size of the article
        qtbot.waitUntil(lambda stage=stage: len(window.session.documents) == stage + 1, timeout=20_000)  # type: ignore[misc]
        document = window.session.documents[stage]
        qtbot.waitUntil(lambda d=document: d.analysis is not None and not d.analysis_running, timeout=30_000)  # type: ignore[misc]
        shown = bar(window)
        assert shown.isVisible()
        assert "simulated" in document.title
        shown.show_it.click()
        suggestion = document.suggestion(document.current_suggestion)
        assert suggestion is not None
        assert suggestion.rule_id == tour.stations()[stage].rule
        shown.next.click()
