"""What can be done with the open card is in sight, however long the card is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, Qt
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from core.suggestions import Suggestion
from gui import reading_order, text_size
from gui.main_window import MainWindow
from gui.screenshot import settle
from gui.session import LATER, Document
from gui.widgets.card import Action
from tests.gui.conftest import known_analysis
from tests.gui.test_plan import panel


def shown(window: MainWindow) -> list[str]:
    return [b.text() for b in panel(window).sticky._buttons if b.isVisible()]


@pytest.mark.parametrize("size", [(900, 600), (1600, 1000)])
def test_actions_stay_while_the_cards_own_are_out_of_sight(
    window: MainWindow, document: Document, qtbot: QtBot, size: tuple[int, int]
) -> None:
    window.resize(*size)
    window.show()
    document.show_suggestion(0)
    plan = panel(window)
    card = plan._cards[0]
    card.actions_row.setContentsMargins(0, 3000, 0, 0)  # a very long card
    qtbot.waitUntil(lambda: plan.sticky.isVisible())
    assert shown(window)
    assert plan.sticky.geometry().bottom() <= plan.area.viewport().geometry().bottom()
    every = {a.text for a in card.shown_actions}
    assert every == {*shown(window), *(a.text() for a in plan.sticky.menu.actions())}
    bar = plan.area.verticalScrollBar()
    bar.setValue(plan._cards[0].geometry().bottom())  # to its end
    qtbot.waitUntil(lambda: not plan.sticky.isVisible())


def test_a_button_there_does_what_the_cards_does(window: MainWindow, document: Document, qtbot: QtBot) -> None:
    window.resize(1600, 1000)
    window.show()
    document.show_suggestion(0)
    plan = panel(window)
    plan._cards[0].actions_row.setContentsMargins(0, 3000, 0, 0)
    qtbot.waitUntil(lambda: plan.sticky.isVisible())
    named = {b.text(): b.click for b in plan.sticky.findChildren(QPushButton) if b.isVisible()}
    named |= {a.text(): a.trigger for a in plan.sticky.menu.actions()}
    named["Later"]()
    suggestion = document.suggestion(0)
    assert suggestion is not None
    assert document.suggestion_state[suggestion.key] == LATER
    assert document.current_suggestion != 0  # the next one is open
    document.show_suggestion(0)
    plan._cards[0].actions_row.setContentsMargins(0, 3000, 0, 0)  # it was made anew
    qtbot.waitUntil(lambda: "Now after all" in {a.text for a in plan.sticky._shown})


def test_the_line_above_the_cards_leads_to_the_card_that_answers(
    window: MainWindow, document: Document, qtbot: QtBot
) -> None:
    base = known_analysis(document.trace)
    summary = replace(base.figures.summary, verdict="communication_bound")
    answer = Suggestion("communication-share", "The GPU only communicates")
    planned = (base.suggestions[0], replace(base.suggestions[1], rule_id="launch-bound"))
    analysis = replace(base, figures=replace(base.figures, summary=summary), suggestions=(*planned, answer))
    document.set_analysis(analysis)
    settle()
    lead = panel(window).lead
    assert not lead.isHidden()
    assert lead.words.text().startswith("Communication, the largest cause, has a card without a number")
    lead.link.click()
    assert document.current_suggestion == 2


def test_a_list_that_is_made_anew_leaves_nothing_behind(window: MainWindow, document: Document, qtbot: QtBot) -> None:
    window.resize(900, 600)
    window.show()
    document.show_suggestion(0)
    plan = panel(window)
    plan._cards[0].actions_row.setContentsMargins(0, 3000, 0, 0)
    qtbot.waitUntil(lambda: plan.sticky.isVisible())
    old = plan._cards[0]
    document.set_analysis(replace(known_analysis(document.trace)))
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    assert not isValid(old)
    plan.sticky._card = old  # as a scroll bar that moves in the same moment finds it
    plan.sticky._place()
    assert plan.sticky._card is None
    assert not plan.sticky.isVisible()


def test_the_buttons_do_not_lie_over_what_has_the_keyboard(
    window: MainWindow, document: Document, qtbot: QtBot
) -> None:
    window.resize(900, 600)
    window.show()
    text_size.choose(window.session, window.settings, 150)
    document.show_suggestion(0)
    plan = panel(window)
    card = plan._cards[0]
    card.actions_row.setContentsMargins(0, 3000, 0, 0)
    qtbot.waitUntil(lambda: plan.sticky.isVisible())
    view = plan.area.viewport()
    links = [made for made in card.findChildren(QPushButton) if made.isVisible() and made.property("role") == "link"]
    assert links
    for made in links:
        reading_order.focus(made, Qt.FocusReason.TabFocusReason)
        settle()
        if plan.sticky.isVisible():
            bottom = made.mapTo(view, QPoint(0, made.height())).y()
            assert 0 < bottom <= plan.sticky.geometry().top() - view.y()
    text_size.apply(1.0)


def test_a_long_button_is_cut_rather_than_put_away(window: MainWindow, document: Document, qtbot: QtBot) -> None:
    window.resize(1400, 900)
    window.show()
    document.show_suggestion(0)
    plan = panel(window)
    card = plan._cards[0]
    card.actions_row.setContentsMargins(0, 3000, 0, 0)
    card.shown_actions = (
        Action("Run it again now", str, primary=True),
        Action("Undo the change of a_file_with_a_long_name.py", str),
        Action("Later", str),
    )
    plan.sticky.follow(card)
    qtbot.waitUntil(lambda: len(shown(window)) == 2)
    again, undo = plan.sticky._buttons[:2]
    assert again.width() >= again.sizeHint().width()
    assert undo.width() < undo.sizeHint().width()
    assert undo.geometry().right() < plan.sticky.more.geometry().left()
    assert [a.text() for a in plan.sticky.menu.actions()] == ["Later"]
