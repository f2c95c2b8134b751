"""The Rules tab: a row leads to the card of its own rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from core.suggestions import Evidence
from core.trace import Trace
from gui.main_window import MainWindow
from gui.session import Document
from tests.gui.conftest import known_analysis
from tests.trace_builder import rows


def rules_of(window: MainWindow) -> Any:
    window.show_panel("rules")
    page = window.current_page()
    assert page is not None
    return page.panel("rules")


def row_of(panel: Any, rule: str) -> int:
    model = panel.model
    return next(r for r in range(model.rowCount()) if model.index(r, model.columnCount() - 1).data() == rule)


def test_a_row_opens_the_card_of_its_own_rule(
    window: MainWindow, document: Document, trace: Trace, qtbot: QtBot
) -> None:
    analysis = known_analysis(trace)
    first, second, note = analysis.suggestions
    copies = Evidence("Blocking calls", 4, "", tuple(rows(trace, "cudaMemcpyAsync")))
    second = replace(second, evidence=(copies,))  # the same slices as those of the first
    note = replace(note, evidence=(Evidence("Events", 9, "", ()),))  # points nowhere
    document.set_analysis(replace(analysis, suggestions=(first, second, note)))
    panel = rules_of(window)
    for rule, index in (("many-tiny-kernels", 1), ("no-shapes", 2), ("scalar-read-back", 0)):
        panel.table.setCurrentIndex(panel.model.index(row_of(panel, rule), 0))
        qtbot.keyClick(panel.table, Qt.Key.Key_Return)
        assert document.current_suggestion == index
        window.show_panel("rules")
    panel.filter.setText("tiny")
    panel.table.setCurrentIndex(panel.model.index(0, 0))
    qtbot.keyClick(panel.table, Qt.Key.Key_Return)
    assert document.current_suggestion == 1


def test_only_rows_of_rules_that_found_something_lead_to_the_plan(window: MainWindow, document: Document) -> None:
    panel = rules_of(window)
    offered = {
        rule: [a.text() for a in panel.table.menu(panel.model.index(row_of(panel, rule), 0)).actions()]
        for rule in ("scalar-read-back", "clean-rule", "ranks-rule", "broken-rule")
    }
    assert offered["scalar-read-back"][0] == "Show it in the plan"
    assert all("Show it in the plan" not in offered[rule] for rule in ("clean-rule", "ranks-rule", "broken-rule"))
    panel.table.setCurrentIndex(panel.model.index(row_of(panel, "clean-rule"), 0))
    panel.table._opened(panel.table.currentIndex())
    assert document.current_suggestion == -1
