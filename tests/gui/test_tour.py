from __future__ import annotations

import re

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from core.analysis import analyze
from core.importing import open_trace
from gui import plan_order, text, tour_code, tour_story
from gui.main_window import MainWindow
from gui.panels import tour
from gui.panels.start import StartPage
from gui.session import Document, Session
from gui.widgets.code import CodeDiff
from profiling.spec import RunSpec


def bar(window: MainWindow) -> tour.TourBar:
    page = window.current_page()
    assert page is not None
    found = page.findChild(tour.TourBar)
    assert found is not None
    return found


def test_every_station_has_its_trace() -> None:
    assert all(tour_story.sample(k).is_file() for k in range(len(tour_story.stations())))


def test_an_ordinary_trace_shows_no_tour(window: MainWindow, document: Document) -> None:
    assert not bar(window).isVisible()


def test_the_tour_shows_each_fault_and_goes_on(window: MainWindow, qtbot: QtBot) -> None:
    window.run_command("learn")
    before, seen = list(window.session.recent), None
    for stage in range(5):  # the last of them is the illusion at the size of the article
        qtbot.waitUntil(lambda stage=stage: _stage(window) == stage, timeout=60_000)  # type: ignore[misc]
        document = window.session.current
        assert document is not None
        assert document is not seen
        seen = document
        qtbot.waitUntil(lambda d=document: d.analysis is not None and not d.analysis_running, timeout=60_000)  # type: ignore[misc]
        qtbot.waitUntil(lambda: len(window.session.documents) == 1)  # one tab all the way
        shown = bar(window)
        assert shown.isVisible()
        assert shown.next.text() == ("Next" if stage == 3 else "Next fix")  # to the illusion: nothing is fixed there
        assert "simulated" in document.title
        assert tour_story.told(tour_story.stations()[stage], document.analysis) in shown.words.text()
        qtbot.waitUntil(lambda d=document: d.current_suggestion >= 0)  # type: ignore[misc]  # open without a click
        suggestion = document.suggestion(document.current_suggestion)
        assert suggestion is not None
        assert suggestion.rule_id == tour_story.stations()[stage].rule
        shown.show_it.click()
        suggestion = document.suggestion(document.current_suggestion)
        assert suggestion is not None
        assert suggestion.rule_id == tour_story.stations()[stage].rule
        shown.next.click()
    assert window.session.recent == before  # the user's own files keep their places


def test_the_tour_goes_on_where_it_was_left_also_after_the_app_was_closed(window: MainWindow, qtbot: QtBot) -> None:
    start = window.findChild(StartPage)
    assert start is not None
    assert start.learn_button.text() == "Start the tour" and not start.learn_again_button.isVisible()
    window.session.open([tour_story.sample(3)])
    qtbot.waitUntil(lambda: _stage(window) == 3, timeout=60_000)
    window.session.pageRequested.emit("start")
    window.run_command("learn")  # it is open still: nothing else opens
    assert _stage(window) == 3 and len(window.session.documents) == 1
    left = window.session.current
    assert left is not None
    window.session.close_document(left)
    assert start.isVisible()
    assert start.learn_button.text() == "Go on at 4 of 9" and start.learn_again_button.isVisible()
    assert window.settings.get("tour/station") == 3
    start.learn_button.click()
    qtbot.waitUntil(lambda: _stage(window) == 3, timeout=60_000)
    window.session.ask("learn", True)
    qtbot.waitUntil(lambda: _stage(window) == 0 and len(window.session.documents) == 1, timeout=60_000)
    assert window.settings.get("tour/station") == 0


def test_a_station_that_the_settings_cannot_mean_is_the_first(window: MainWindow) -> None:
    for wrong in (-1, 9, 400):
        window.settings.set("tour/station", wrong)
        assert tour.left_at(window.session) == 0


def test_the_last_station_ends_the_tour_where_next_was(window: MainWindow, qtbot: QtBot) -> None:
    window.session.open([tour_story.sample(len(tour_story.stations()) - 1)])
    qtbot.waitUntil(lambda: _stage(window) == len(tour_story.stations()) - 1, timeout=60_000)
    shown = bar(window)
    assert shown.next.text() == "End tour"
    qtbot.waitUntil(lambda: shown.next.x() > shown.back.x())  # once the bar is laid out
    shown.next.click()
    assert window.settings.get("tour/station") == 0
    (end,) = window.findChildren(tour_code.EndDialog)
    assert end.profile.text() == "Profile a script…"
    end.profile.click()
    qtbot.waitUntil(lambda: "launch" in window.pages)
    qtbot.waitUntil(lambda: not any(tour.stage_of(d) >= 0 for d in window.session.documents))
    qtbot.waitUntil(lambda: window.session.current is None)


def test_the_diff_is_of_the_examples_own_code_and_the_next_stage_has_the_fix(
    window: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.session.open([tour_story.sample(2)])
    qtbot.waitUntil(lambda: _stage(window) == 2, timeout=60_000)
    document = window.session.current
    assert document is not None
    qtbot.waitUntil(lambda: document.analysis is not None and not document.analysis_running, timeout=60_000)
    shown = bar(window)
    shown.show_it.click()
    index = document.current_suggestion
    qtbot.waitUntil(lambda: window.session.ask("proposed_edit", document, index) is not None)
    edit = window.session.ask("proposed_edit", document, index)
    fixed = "rows = torch.arange(target.shape[0], device=target.device)"
    assert edit.path.name == "stage2.py"
    assert "-    rows = range(target.shape[0])" in edit.diff
    assert fixed not in edit.before
    assert "torch.arange(target.shape[0], device=" in edit.after
    page = window.current_page()
    assert page is not None

    def seen() -> bool:
        return any("rows = range(target" in view.toPlainText() for view in page.findChildren(CodeDiff))

    qtbot.waitUntil(seen)  # the parts of a page take turns
    assert not window.session.ask("can_apply_fix", document, document.current_suggestion)  # no run of one's own
    link = next(b for b in shown.findChildren(QPushButton) if b.text() == "What changes next")
    link.click()
    dialog = shown.findChild(tour_code.StageDialog)
    assert dialog is not None
    assert f"+     {fixed}" in dialog.diff.toPlainText()
    dialog.reject()
    wished: list[RunSpec] = []
    monkeypatch.setattr(window.session.ask("capture"), "show_launcher", lambda spec, **_: wished.append(spec))
    next(b for b in shown.findChildren(QPushButton) if b.text() == "Set up a run of it…").click()
    assert wished[0].script.endswith("stage2.py")


def test_every_station_knows_its_script() -> None:
    files = [tour_code.stage_file(station.file) for station in tour_story.stations()]
    assert [file.name for file in files if file] == [f"stage{k}.py" for k in (0, 1, 2, 3, 3, 4, 5, 6, 7)]
    assert tour_code.stage_file("story_stage7_simulated.json.gz", 1) is None
    assert tour_code.stage_file("other.json") is None


def _stage(window: MainWindow) -> int:
    return tour.stage_of(window.session.current) if window.session.current is not None else -1


def test_the_words_say_what_the_figures_say() -> None:
    """Numbers come from the trace alone, and what the words claim of it holds."""
    number = re.compile(r"\d|hundred|sixty|thousand|third|quarter|half the|twice|seven", re.IGNORECASE)
    analyses = []
    for k, station in enumerate(tour_story.stations()):
        analysis = analyze(open_trace(tour_story.sample(k)))
        analyses.append(analysis)
        assert not number.search(station.words), station.title
        assert not number.search(station.told), station.title
        assert tour_story.told(station, analysis), station.title
        assert any(s.rule_id == station.rule for s in analysis.suggestions), station.title
    waits = [{s.rule_id for s in a.suggestions} & set(tour_story.WAITS) for a in analyses]
    assert waits[0] == set(tour_story.WAITS)  # all three waits
    assert waits[2] == {tour_story.WAITS[2]}  # the last wait
    assert not any(waits[3:])  # no wait is left
    saved = [{s.rule_id: s.saving for s in a.suggestions} for a in analyses]
    assert (saved[2][tour_story.WAITS[2]].ns or 0) > 5 * (
        saved[0][tour_story.WAITS[0]].ns or 0
    )  # it only moves on, till the last
    verdicts = [a.figures.summary.verdict for a in analyses]
    assert verdicts[:5] == ["sync_bound"] * 3 + ["host_bound", "device_bound"]
    with_waits = analyze(open_trace(tour_story.FOLDER / "article_stage2_simulated.json.gz")).figures.summary
    without = analyses[4].figures.summary
    assert without.sustained_step_ns == pytest.approx(with_waits.sustained_step_ns, rel=0.02)  # cost next to nothing
    assert (saved[8]["compile-without-gain"].ns or 0) == 0


def test_each_station_tells_what_came_of_the_last_fix_and_why_it_differs() -> None:
    tour_story.forget()
    stations, told = tour_story.stations(), []
    for k in range(len(stations)):
        analysis = analyze(open_trace(tour_story.sample(k)))
        told.append(tour_story.came(k, analysis))
        card = tour_story.card_of(stations[k], analysis)
        at = next(i for i, s in enumerate(analysis.suggestions) if s.rule_id == stations[k].rule)
        number = analysis.numbers().get(at)
        assert (f"card {number} " in card) is (bool(card) and number is not None)
        saving = analysis.suggestions[at].saving
        if card and saving.together_ns not in (None, saving.ns):  # the two numbers of its card
            assert f"saves {text.duration(saving.together_ns)} after the fixes above it" in card
        assert bool(card) is (at > 0 and not analysis.suggestions[at].informational)
        if "are these waits" in card:  # the plan says itself which of them hide one another
            last = int(card.partition(" of the plan")[0].rpartition(" ")[2])
            cards = {n: analysis.suggestions[i].rule_id for i, n in analysis.numbers().items()}
            assert {cards[n] for n in range(1, last + 1)} == set(tour_story.WAITS) & set(cards.values())
            assert "pay together" not in card or len(plan_order.headings(analysis)) == last
    assert [bool(words) for words in told] == [max(s.follows, s.tries) >= 0 for s in stations]
    assert told[-1].startswith("Before this a step took")  # what was tried there is not called a fix
    assert [bool(s.differs) and words.endswith(s.differs) for s, words in zip(stations, told, strict=True)] == [
        k in (2, 5, 7) for k in range(len(stations))
    ]
    known = tour_story.recap().replace("\u202f", " ")
    last_fixed = analyze(open_trace(tour_story.sample(7))).figures.summary.sustained_step_ns
    assert f"to {text.duration(last_fixed)} " in tour_story.recap()  # not the step of what only was tried
    assert re.search(r"from 1\.\d\d ms to \d+ µs \(−\d+ %\)", known)
    tour_story.forget()
    assert tour_story.recap() == ""
    assert tour_story.came(2, analyze(open_trace(tour_story.sample(2)))) == ""  # the station before was not seen


def test_what_the_last_fix_brought_is_told_in_a_later_session_too(window: MainWindow, qtbot: QtBot) -> None:
    tour_story.forget()
    window.session.open([tour_story.sample(1)])
    qtbot.waitUntil(lambda: len(window.settings.get("tour/measured")) == 1, timeout=60_000)
    tour_story.came(0, analyze(open_trace(tour_story.sample(0))))
    before, lines = (
        tour_story.came(1, document_analysis := analyze(open_trace(tour_story.sample(1)))),
        tour_story.kept(),
    )
    assert before.startswith("The last fix alone was to save")
    tour_story.forget()
    assert tour_story.came(1, document_analysis) == ""
    tour_story.forget()
    tour_story.take_back([*lines, "", "x 1.0 2.0", "99 1.0", "2 nan", "3 1.0 2.0 3.0"])
    assert tour_story.came(1, document_analysis) == before
    assert sorted(tour_story.kept()) == sorted(lines)
    tour_story.forget()


def test_figures_that_are_not_known_yet_are_not_told() -> None:
    assert tour_story.told(tour_story.stations()[0], None) == ""


def test_nothing_moves_and_nothing_can_be_pressed_twice_while_a_station_opens(window: MainWindow, qtbot: QtBot) -> None:
    window.run_command("learn")
    qtbot.waitUntil(lambda: _stage(window) == 0 and not window.opener.busy, timeout=60_000)
    shown = bar(window)
    QApplication.processEvents()
    before = shown.mapTo(window, QPoint())
    shown.next.click()
    QApplication.processEvents()
    assert window.work
    assert shown.mapTo(window, QPoint()) == before
    line = next(iter(window.work.values()))
    assert (
        not line.cancel.rect()
        .translated(line.cancel.mapTo(window, QPoint()))
        .contains(shown.next.mapTo(window, shown.next.rect().center()))
    )
    assert not shown.next.isEnabled()
    window.opener.cancel(str(tour_story.sample(1)))
    assert shown.next.isEnabled()
    assert not shown.back.isEnabled()
    assert not window.work


@pytest.mark.parametrize("size", [(1440, 900), (900, 600)])
def test_next_stands_at_one_place_in_all_stations(qapp: QApplication, size: tuple[int, int]) -> None:
    places = set()
    for stage in range(len(tour_story.stations())):
        bar = tour.TourBar(Session(), Document(open_trace(tour_story.sample(stage))))
        bar.resize(size[0], 10)
        bar.fit_to(size[1])
        bar.resize(size[0], bar.heightForWidth(size[0]))
        bar.layout().activate()  # type: ignore[union-attr]
        for pressed in (bar.next, bar.back, bar.show_it):
            places.add((pressed.accessibleName() if pressed is not bar.next else "", pressed.geometry().getRect()))
    assert len(places) == 3, places


@pytest.mark.parametrize("stage", [4, 7])
def test_a_station_opens_with_the_call_and_the_work_that_it_speaks_of(stage: int) -> None:
    """A step with all it makes the device do; kernels with the calls that launched them."""
    trace = open_trace(tour_story.sample(stage))
    document = Document(trace)
    document.set_analysis(analyze(trace))
    assert document.analysis is not None
    figures, found = document.analysis.figures, document.analysis.suggestions
    document.show_suggestion(next(k for k, s in enumerate(found) if s.rule_id == tour_story.stations()[stage].rule))
    view, lead = document.viewport, document.selected_slice
    launch = int(trace.links.launch_of[lead])
    shown = [lead, launch] if launch >= 0 else [lead]
    for slice_id in shown:
        assert view.start_ns <= trace.slices.start_ns[slice_id]
        assert trace.end_ns[slice_id] <= view.end_ns
    if launch < 0:
        step = int(figures.step_of[lead])
        assert view.start_ns < figures.step_figures.device_start_ns[step]
        assert figures.step_figures.device_end_ns[step] <= view.end_ns
    assert view.width_ns < 1.3 * max(
        figures.summary.sustained_step_ns or 0, figures.step_figures.device_end_ns.max() if launch < 0 else 0
    )
