"""Time per step as bars, in the details and over the tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolTip

from core.figures.per_step import PerStep
from gui.document_page import DocumentPage
from gui.main_window import MainWindow
from gui.screenshot import settle
from gui.session import Document
from gui.widgets.same_name import SameName
from gui.widgets.step_bars import StepBars
from tests.gui.conftest import cpu_only, known_analysis
from tests.trace_builder import rows


def steps(times: list[int]) -> PerStep:
    count = len(times)
    return PerStep(
        np.asarray(times, np.int64),
        np.ones(count, np.int64),
        np.arange(count, dtype=np.int32) + 100,
        np.asarray([k > 0 for k in range(count)]),
    )


@pytest.fixture
def bars(qtbot: object) -> StepBars:
    made = StepBars(40)
    qtbot.addWidget(made)  # type: ignore[attr-defined]
    made.resize(300, 40)
    made.show()
    return made


def test_a_bar_says_its_step_and_a_click_opens_its_longest(bars: StepBars) -> None:
    bars.show_steps(steps([1000, 5000, 2000]), [7, 8, 9], mark=1)
    assert "most in step 8" in bars.accessibleName()
    opened: list[int] = []
    bars.opened.connect(opened.append)
    QTest.mouseClick(bars, Qt.MouseButton.LeftButton, pos=QPoint(20, 30))
    assert opened == [101]
    QTest.mouseClick(bars, Qt.MouseButton.LeftButton, pos=QPoint(200, 30))  # beside the bars
    assert opened == [101]
    at = QPoint(3, 20)
    QApplication.sendEvent(bars, QHelpEvent(QEvent.Type.ToolTip, at, bars.mapToGlobal(at)))
    assert "Step 7, which no mean counts" in QToolTip.text()
    QToolTip.hideText()


def test_the_longest_step_is_drawn_highest(bars: StepBars) -> None:
    bars.show_steps(steps([1000, 5000, 2000]), [0, 1, 2])
    picture = bars.grab().toImage()
    ground = picture.pixelColor(250, 2)
    assert picture.pixelColor(20, 4) != ground  # the middle one reaches the top
    assert picture.pixelColor(5, 4) == ground and picture.pixelColor(33, 4) == ground


def test_an_outlier_among_thousands_is_seen(bars: StepBars) -> None:
    times = [1000] * 5000
    times[3333] = 90_000
    bars.show_steps(steps(times), list(range(5000)))
    opened: list[int] = []
    bars.opened.connect(opened.append)
    QTest.mouseClick(bars, Qt.MouseButton.LeftButton, pos=QPoint(3333 * 300 // 5000, 30))
    assert opened == [3333 + 100]
    assert not bars.grab().isNull()


def test_details_show_them_where_there_are_steps(
    document: Document, window: MainWindow, show: Callable[..., Document]
) -> None:
    item = rows(document.trace, "aten::item")[1]
    document.select(item)
    details = window.findChild(DocumentPage).panel("details")
    found = details.findChild(StepBars)
    assert found is not None and "Per step" in found.accessibleName()
    found.opened.emit(rows(document.trace, "aten::item")[2])
    assert document.selected_slice == rows(document.trace, "aten::item")[2]
    bare = show(cpu_only().build())
    widget = SameName(bare, 0)
    assert widget.findChild(StepBars) is None
    widget.deleteLater()


def test_a_chosen_row_shows_its_steps(document: Document, window: MainWindow) -> None:
    panel = window.findChild(DocumentPage).panel("operators")
    settle()
    assert panel.bars.isHidden()
    panel.table.selectRow(0)
    assert not panel.bars.isHidden()
    assert "Per step" in panel.note.full_text()
    panel.group.choose(2)  # rows are no longer all calls of a name
    settle()
    panel.table.selectRow(0)
    assert panel.bars.isHidden()
    document.set_analysis(known_analysis(document.trace))
