from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication, QInputDialog, QLabel, QPushButton, QTextEdit
from pytestqt.qtbot import QtBot

from core.analysis import Analysis
from core.suggestions import Saving
from core.trace import Trace
from gui import store, suggestion_text, text, text_size, theme
from gui.loop_own import FixState
from gui.main_window import MainWindow
from gui.screenshot import settle
from gui.session import ALLOWED, DISMISSED, DONE, Document
from gui.widgets.card import Card
from gui.widgets.code import CodeDiff, diff_lines
from tests.gui.conftest import known_analysis
from tests.trace_builder import rows


def panel(window: MainWindow) -> Any:
    page = window.current_page()
    assert page is not None
    return next(w for w in page.side.children() if type(w).__name__ == "PlanPanel")


def cards(window: MainWindow) -> list[Card]:
    return panel(window)._cards


def button(card: Card, words: str) -> QPushButton:
    return next(b for b in card.findChildren(QPushButton) if b.text() == words)


def test_cards_stand_best_first_with_place_count_and_saving(window: MainWindow, document: Document) -> None:
    shown = cards(window)
    assert [c.title.text().replace("\u200b", "") for c in shown] == [
        "aten::item reads a number back",
        "Many small kernels",
        "Shapes were not recorded",
    ]
    assert shown[0].place.text() == "train.py:14 · weighted_nll · once per step"
    assert shown[0].saving.text() == text.saving(240_000)
    assert shown[1].saving.text() == text.saving(60_000)
    assert shown[2].saving.text() == ""


def test_header_says_now_and_predicted(window: MainWindow, document: Document) -> None:
    words = panel(window).total.text().replace(text.THIN, " ")
    assert words == "1.00 ms → 700 µs (−30 %)"
    assert panel(window).bars._values == [1_000_000.0, 760_000.0, 700_000.0]


def test_next_and_previous_go_round_and_zoom_to_the_evidence(
    window: MainWindow, document: Document, trace: Trace, qtbot: QtBot
) -> None:
    window.run_command("next-suggestion")
    assert document.current_suggestion == 0
    calls = rows(trace, "cudaMemcpyAsync")
    assert set(calls) <= set(document.highlighted)
    assert document.selected_slice in calls
    view = document.viewport
    assert view.start_ns <= trace.slices.start_ns[document.selected_slice]
    assert view.end_ns >= trace.end_ns[document.selected_slice]
    assert view.width_ns < 2_000_000  # one typical step, not four
    window.run_command("next-suggestion")
    assert document.current_suggestion == 1
    window.run_command("next-suggestion")
    assert document.current_suggestion == 0
    window.run_command("previous-suggestion")
    assert document.current_suggestion == 1


def test_the_keys_n_and_shift_n_step(window: MainWindow, document: Document, qtbot: QtBot) -> None:
    window.activateWindow()
    timeline = window.current_page().timeline  # type: ignore[union-attr]
    timeline.setFocus()
    qtbot.keyClick(timeline, Qt.Key.Key_N)
    assert document.current_suggestion == 0
    qtbot.keyClick(timeline, Qt.Key.Key_N, Qt.KeyboardModifier.ShiftModifier)
    assert document.current_suggestion == 1  # round the end; the note is not part of the walk
    qtbot.keyClick(timeline, Qt.Key.Key_P)
    assert document.current_suggestion == 0


def test_an_open_card_makes_the_case(window: MainWindow, document: Document, trace: Trace) -> None:
    document.show_suggestion(0)
    card = cards(window)[0]
    words = [b.text() for b in card.findChildren(QPushButton)]
    assert any("Blocking calls: 4" in w for w in words)
    code = card.findChild(QTextEdit).toPlainText()
    assert code.splitlines() == ["- x = loss.item()", "+ x = loss.detach()"]
    link = next(b for b in card.findChildren(QPushButton) if "Time waiting" in b.text())
    link.click()
    assert document.highlighted == tuple(rows(trace, "aten::item"))
    assert document.selected_slice in rows(trace, "aten::item")  # what Details tell of is what was clicked


def test_enter_follows_a_link_of_a_card_and_opens_a_folded_list(
    window: MainWindow, document: Document, trace: Trace, qtbot: QtBot
) -> None:
    document.show_suggestion(0)
    link = next(b for b in cards(window)[0].findChildren(QPushButton) if "Time waiting" in b.text())
    qtbot.keyClick(link, Qt.Key.Key_Return)
    assert document.highlighted == tuple(rows(trace, "aten::item"))
    notes = panel(window)._notes
    qtbot.keyClick(notes.link, Qt.Key.Key_Enter)
    assert notes.opened
    qtbot.keyClick(notes.link, Qt.Key.Key_Return)
    assert not notes.opened


def test_the_first_card_is_open_and_the_view_stays(window: MainWindow, document: Document, qtbot: QtBot) -> None:
    before = (document.viewport.start_ns, document.viewport.end_ns)
    qtbot.waitUntil(lambda: [c.property("open") for c in cards(window)] == ["true", "false", "false"])
    assert document.current_suggestion == -1  # nothing was chosen, nothing is marked
    assert document.highlighted == ()
    assert (document.viewport.start_ns, document.viewport.end_ns) == before
    qtbot.mouseClick(cards(window)[1], Qt.MouseButton.LeftButton)
    assert [c.property("open") for c in cards(window)] == ["false", "true", "false"]


def test_enter_on_a_card_opens_it_and_only_one_is_open(window: MainWindow, document: Document, qtbot: QtBot) -> None:
    shown = cards(window)
    qtbot.keyClick(shown[1], Qt.Key.Key_Return)
    assert document.current_suggestion == 1
    qtbot.mouseClick(shown[0], Qt.MouseButton.LeftButton)
    assert [c.property("open") for c in shown] == ["true", "false", "false"]


def test_done_ticks_the_card_and_is_kept_for_the_trace(
    window: MainWindow, document: Document, trace: Trace, qtbot: QtBot
) -> None:
    document.show_suggestion(0)
    button(cards(window)[0], "Done").click()
    assert document.suggestion_state == {document.analysis.suggestions[0].key: DONE}  # type: ignore[union-attr]
    assert cards(window)[0].tick.text() == "✓"
    assert panel(window).bars._done == {1}
    assert store.file_of(trace).exists()
    again = Document(trace)
    store.restore(again)
    assert again.suggestion_state == document.suggestion_state
    document.step_suggestion(1)
    document.step_suggestion(1)
    document.step_suggestion(1)
    assert document.current_suggestion == 1  # done ones are left out on the way
    cards(window)[0].tick.click()
    assert document.suggestion_state == {}


def test_dismiss_keeps_the_reason(window: MainWindow, document: Document) -> None:
    document.show_suggestion(1)
    button(cards(window)[1], "Dismiss…").click()
    dialog = panel(window).findChild(QInputDialog)
    dialog.setTextValue("meant for logging")
    dialog.accept()
    key = document.analysis.suggestions[1].key  # type: ignore[union-attr]
    assert document.suggestion_state[key] == DISMISSED
    assert document.dismiss_reason[key] == "meant for logging"
    document.show_suggestion(1)
    button(cards(window)[1], "Take back").click()
    assert key not in document.suggestion_state


def test_parts_that_are_installed_get_their_buttons(window: MainWindow, document: Document) -> None:
    document.run_folder = document.trace.path.parent
    window.session._services.clear()
    window.session.servicesChanged.emit()
    document.show_suggestion(0)
    assert not [b for b in cards(window)[0].findChildren(QPushButton) if b.text().startswith("Apply")]
    asked: list[tuple[Any, ...]] = []
    window.session.provide("apply_fix", lambda *args: asked.append(args))
    window.session.provide("find_line", lambda *args: asked.append(args))
    button(cards(window)[0], "Apply to a copy, re-run…").click()
    assert asked == [(document, 0)]
    document.show_suggestion(1)
    button(cards(window)[1], "Find the line").click()
    assert asked[1] == (document, 1)


def test_a_button_that_cannot_work_here_says_why(window: MainWindow, document: Document) -> None:
    window.session.provide("can_apply_fix", lambda *_: False)
    document.show_suggestion(1)
    search = button(cards(window)[1], "Find the line")
    assert not search.isEnabled()  # the trace was not recorded here
    assert "Profile script" in search.toolTip()


def test_outcomes_can_be_unfolded_with_their_reasons(window: MainWindow, document: Document) -> None:
    from PySide6.QtWidgets import QLabel

    shown = panel(window)
    lines = {b.text(): b for b in shown.findChildren(QPushButton) if b.property("role") == "link" and b.isVisible()}
    assert "▸ Checked and clean: 1" in lines
    assert "▸ Failed while checking: 1" in lines
    lines["▸ Not checkable here: 1"].click()
    assert any(label.text() == "only one rank" for label in shown.findChildren(QLabel))


def test_notes_are_apart_and_not_counted(window: MainWindow, document: Document) -> None:
    shown, note = panel(window), cards(window)[2]
    assert not note.isVisible()
    document.show_suggestion(1)
    assert shown.at.text() == "2 of 2"
    document.show_suggestion(2)
    assert note.isVisible()
    assert shown.at.text() == ""


def test_without_a_card_there_is_nothing_to_step_through(
    window: MainWindow, show: Callable[..., Document], trace: Trace
) -> None:
    known = known_analysis(trace)
    for found, seen in ((known.suggestions, True), (known.suggestions[2:], False), ((), False)):
        document = show(trace, Analysis(known.figures, found, (), known.rules))
        shown = panel(window)
        assert [shown.previous.isVisible(), shown.next.isVisible()] == [seen, seen]
        window.session.close_document(document)


def test_small_savings_are_shown_when_asked_for(
    window: MainWindow, show: Callable[..., Document], trace: Trace
) -> None:
    known = known_analysis(trace)
    tiny = replace(known.suggestions[1], rule_id="tiny", saving=Saving(5_000, 0.5, "replayed"), severity="low")
    document = show(trace, replace(known, suggestions=(*known.suggestions, tiny)))
    shown, card = panel(window), cards(window)[3]
    assert not card.isVisible()
    document.show_suggestion(0)
    assert shown.at.text() == "1 of 2"
    document.step_suggestion(-1)
    assert document.current_suggestion == 1
    line = next(b for b in shown.findChildren(QPushButton) if "Smaller" in b.text() and b.isVisible())
    line.click()
    assert card.isVisible()
    document.step_suggestion(1)
    assert document.current_suggestion == 3
    assert shown.at.text() == "3 of 3"


def test_nothing_worth_one_per_cent_is_called_healthy(
    window: MainWindow, show: Callable[..., Document], trace: Trace
) -> None:
    known = known_analysis(trace)
    for verdict in ("healthy", "device_bound", "host_bound", "unknown"):
        figures = replace(known.figures, summary=replace(known.figures.summary, verdict=verdict))
        document = show(trace, Analysis(figures, (), (), known.rules))
        words = panel(window).message.text()
        assert words
        assert words.startswith("Healthy") is (verdict == "healthy"), "the plan denies the verdict"
        window.session.close_document(document)


def test_suggestions_arrive_in_instalments_and_the_open_one_stays(
    window: MainWindow, show: Callable[..., Document], trace: Trace
) -> None:
    known = known_analysis(trace)
    document = show(trace)
    document.set_analysis_state(running=True)
    assert "Looking" in panel(window).message.text()
    document.set_analysis(Analysis(known.figures, known.suggestions[:2]))
    document.show_suggestion(1)
    document.analysis_running = False
    document.set_analysis(Analysis(known.figures, known.suggestions[1:], known.plan, known.rules))
    assert document.current_suggestion == 0
    assert cards(window)[0].property("open") == "true"


def test_a_plan_that_only_waits_for_rules_of_the_users_own_stands(
    window: MainWindow, show: Callable[..., Document], trace: Trace, qtbot: QtBot
) -> None:
    known = known_analysis(trace)
    document = show(trace)
    document.set_analysis_state(running=True)
    document.set_analysis(replace(known, awaits_own_rules=True))
    words = panel(window).message.text()
    assert "Your own rules" in words
    assert "Working out" not in words
    qtbot.waitUntil(lambda: [c.property("open") for c in cards(window)] == ["true", "false", "false"])
    document.set_analysis(Analysis(known.figures, (), (), known.rules, awaits_own_rules=True))
    words = panel(window).message.text()
    assert words.startswith("Your own rules")
    assert len(words) > len("Your own rules are still at work.")  # and what ours found: nothing
    document.analysis_running = False
    document.set_analysis(known)
    assert "Your own rules" not in panel(window).message.text()


def test_a_state_file_that_does_not_fit_is_ignored(trace: Trace) -> None:
    path = store.file_of(trace)
    path.parent.mkdir(parents=True)
    for bad in (
        "",
        "[]",
        "[" * 200_000,
        '{"version": 99}',
        '{"version": 1, "suggestions": {"a": "x"}, "marks": [[1], 5]}',
    ):
        path.write_text(bad)
        document = Document(trace)
        store.restore(document)
        assert (document.suggestion_state, document.marks) == ({}, [])


def test_diff_lines() -> None:
    assert diff_lines("a\nb", "a\nc") == ["  a", "- b", "+ c"]
    assert diff_lines("", "only") == ["  only"]


def test_code_is_plain_text(qapp: QApplication) -> None:
    code = CodeDiff("<b>x</b>", "<i>y</i>", "fix")
    assert code.toPlainText() == "- <b>x</b>\n+ <i>y</i>"
    grounds = [code.document().findBlockByNumber(k).blockFormat().background().color() for k in range(2)]
    assert grounds == [QColor(theme.current().removed), QColor(theme.current().added)]
    code.deleteLater()


def test_predicted_time_follows_what_is_done_and_dismissed(window: MainWindow, document: Document) -> None:
    caption, total = panel(window).caption, panel(window).total
    assert "those ticked" not in caption.text()
    document.set_suggestion_state(0, DONE)
    assert "With those ticked: 760" in caption.text().replace(text.THIN, " ")
    document.set_suggestion_state(1, DISMISSED, "small on purpose")
    assert "760" in total.text()  # what was dismissed brings nothing
    document.set_suggestion_state(1, "")
    assert "700" in total.text()


def test_in_a_low_window_the_bars_give_way_to_the_cards(window: MainWindow, document: Document, qtbot: QtBot) -> None:
    shown = panel(window)
    assert shown.bars.isVisible()
    window.resize(640, 420)
    qtbot.waitUntil(lambda: not shown.bars.isVisible())
    assert not shown.caption.isVisible()
    assert shown.total.isVisible()
    assert shown.area.geometry().top() >= shown.total.geometry().bottom()  # nothing lies over anything
    window.resize(1400, 900)
    qtbot.waitUntil(shown.bars.isVisible)


def test_a_narrow_card_gives_its_title_the_whole_width(window: MainWindow, document: Document, qtbot: QtBot) -> None:
    card = cards(window)[0]
    assert card.worth.geometry().left() > card.title.geometry().right()
    window.resize(900, 700)
    qtbot.waitUntil(lambda: card.worth.geometry().top() > card.title.geometry().top())
    assert card.title.geometry().right() >= card.worth.geometry().left()


def cut_off(card: Card) -> list[str]:
    """Labels of a card of which a part lies outside of it."""
    return [
        w.text()
        for w in card.findChildren(QLabel)
        if w.isVisible() and w.mapTo(card, w.rect().topRight()).x() > card.width()
    ]


def test_no_line_of_a_card_widens_it(window: MainWindow, document: Document, qtbot: QtBot) -> None:
    window.resize(900, 700)
    document.set_suggestion_state(
        0, ALLOWED, "the data set is small, and it is on purpose that nothing is loaded beside it"
    )
    try:
        for percent in (100, 200):
            text_size.choose(window.session, window.settings, percent)
            document.show_suggestion(0)
            settle()
            shown = panel(window)
            assert [
                c.title.text() for c in shown._cards if c.isVisible() and c.width() > shown.area.viewport().width()
            ] == []
            assert [words for card in shown._cards for words in cut_off(card)] == []
            first = shown._cards[0]
            assert first.mark.height() > 2 * first.mark.fontMetrics().lineSpacing()  # it is wrapped
            assert first.place.geometry().top() >= first.worth.geometry().bottom()  # each on a line of its own
    finally:
        text_size.choose(window.session, window.settings, 100)


def test_what_is_allowed_leaves_at_once_and_keeps_what_was_measured(window: MainWindow, document: Document) -> None:
    document.show_suggestion(0)
    document.set_suggestion_state(0, ALLOWED, "on purpose")
    first, second = cards(window)[:2]
    assert document.current_suggestion == 1
    assert second.property("open") == "true"
    assert first.property("open") == "false"
    assert first.tick.text() == "–"
    assert first.saving.property("role") == "faint"
    document.set_suggestion_state(1, ALLOWED)
    assert document.current_suggestion == -1
    assert [c.property("open") for c in cards(window)[:2]] == ["false", "false"]
    shown = panel(window)  # nothing is left to foretell: no lone bar, and no 0 %
    assert not any(w.isVisible() for w in (shown.total, shown.bars, shown.caption))
    state = FixState("measured", number=1)
    words = suggestion_text.mark(ALLOWED, "on purpose", state)
    assert words == "allowed: on purpose · ran in round 1: what it brought is unknown"
    document.set_suggestion_state(0, "")
    assert shown.total.isVisible()
    assert first.tick.text() == "1"


def test_the_card_that_opened_by_itself_leaves_as_well(window: MainWindow, document: Document, qtbot: QtBot) -> None:
    first, second = cards(window)[:2]
    qtbot.waitUntil(lambda: first.property("open") == "true")
    document.set_suggestion_state(0, ALLOWED, "on purpose")
    assert first.property("open") == "false"
    qtbot.waitUntil(lambda: second.property("open") == "true")


def test_a_click_on_a_bar_opens_its_card(window: MainWindow, document: Document, qtbot: QtBot) -> None:
    bars = panel(window).bars
    pitch = bars._pitch_px()
    assert "Many small kernels" in bars.words_at(2.5 * pitch)
    assert "now" in bars.words_at(0.5 * pitch)
    qtbot.mouseClick(bars, Qt.MouseButton.LeftButton, pos=QPoint(round(2.5 * pitch), 40))
    assert document.current_suggestion == 1
    qtbot.mouseClick(bars, Qt.MouseButton.LeftButton, pos=QPoint(round(0.5 * pitch), 40))  # that is now
    assert document.current_suggestion == 1
    document.set_suggestion_state(0, DISMISSED)
    qtbot.mouseClick(bars, Qt.MouseButton.LeftButton, pos=QPoint(round(1.5 * bars._pitch_px()), 40))
    assert document.current_suggestion == 1
