"""What is dismissed or allowed leaves the plan, and the plan's figures are those of a report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest
from PySide6.QtWidgets import QDialog
from pytestqt.qtbot import QtBot

from core.set_aside import set_aside
from core.trace import Trace
from gui import jobs
from gui.allow_dialog import AllowDialog
from gui.main_window import MainWindow
from gui.session import ALLOWED, DISMISSED, Document
from tests.core.reporting.cases import analysed, training
from tests.gui.conftest import known_analysis
from tests.gui.test_plan import panel


def test_the_bars_are_the_reports_after_a_suggestion_is_set_aside_and_back(
    window: MainWindow, show: Callable[..., Document], qtbot: QtBot
) -> None:
    trace, analysis = analysed(training(item=True))
    document = show(trace, analysis)
    plan = panel(window)
    whole = list(plan.bars._values)
    first = analysis.plan[0].suggestions[0]
    key = analysis.suggestions[first].key
    rest, _ = set_aside(trace, analysis, {key: "dismissed"})
    document.set_suggestion_state(first, ALLOWED, "meant")
    qtbot.waitUntil(lambda: bool(document.analysis and document.analysis.aside))
    assert document.analysis is not None
    now = float(rest.figures.summary.sustained_step_ns or 0)
    expected = [now, *(float(p.predicted_step_ns) for p in rest.plan)] if rest.plan else []
    assert (plan.bars._values if rest.plan else []) == expected
    at = next(i for i, s in enumerate(document.analysis.suggestions) if s.key == key)
    assert plan._cards[at].tick.text() == "–"
    assert "meant" in plan._cards[at].mark.text()
    document.set_suggestion_state(at, "")
    qtbot.waitUntil(lambda: bool(document.analysis and not document.analysis.aside))
    assert list(plan.bars._values) == whole


def test_the_list_is_not_sorted_anew_under_an_open_dialog(
    window: MainWindow, show: Callable[..., Document], qtbot: QtBot
) -> None:
    trace, analysis = analysed(training(item=True))
    document = show(trace, analysis)
    dialog = QDialog(window)
    dialog.open()
    document.set_suggestion_state(analysis.plan[0].suggestions[0], DISMISSED)
    qtbot.waitUntil(lambda: not jobs.busy())  # it is priced
    assert document.analysis is analysis
    dialog.reject()
    qtbot.waitUntil(lambda: document.analysis is not analysis)


@pytest.mark.parametrize("last", [True, False])
def test_an_open_dialog_is_about_the_finding_it_was_opened_for(
    last: bool, window: MainWindow, show: Callable[..., Document], trace: Trace, qtbot: QtBot
) -> None:
    """The diagnosis goes on under it, and sorts the list by what each fix saves."""
    early = known_analysis(trace)
    later = replace(early, suggestions=early.suggestions[1::-1] + early.suggestions[2:])
    document = show(trace, early)
    document.analysis_running = True
    dialog = AllowDialog(window.session, document, 0, None, window)
    dialog.open()
    window.opener._analyses[document] = SimpleNamespace(cancel=lambda: None)
    if last:
        window.opener._diagnosed(document, later)
    else:
        window.opener._take_partial(document, later)
    assert document.analysis is early
    document.set_suggestion_state(0, ALLOWED)  # as the dialog does
    dialog.reject()
    qtbot.waitUntil(lambda: document.analysis is later)
    assert document.analysis_running != last
    assert document.suggestion_state == {early.suggestions[0].key: ALLOWED}
    window.opener._analyses.clear()
