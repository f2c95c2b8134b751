"""Words of the pages are whole at any text size: what holds them grows with them, or they wrap."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLabel, QScrollArea, QSpinBox, QWidget
from pytestqt.qtbot import QtBot

from gui import text_size
from gui.main_window import MainWindow
from gui.panels.plan import PlanPanel
from gui.screenshot import settle
from gui.session import Document
from gui.widgets.labels import Elided, Link
from gui.widgets.pictures import WaitPicture
from gui.widgets.wrapping_check import WrappingCheck


def cut(page: QWidget) -> list[str]:
    """Texts of labels, buttons and numbers that have less room than they need, or stand beyond what is scrolled."""
    found = []
    kinds: tuple[type[QWidget], ...] = (QLabel, QAbstractButton, QSpinBox)
    for shown in [w for kind in kinds for w in page.findChildren(kind) if w.isVisible()]:
        words = shown.text()  # type: ignore[attr-defined]
        if not words or isinstance(shown, Elided) or words == "×":
            continue
        need = shown.minimumSizeHint() if isinstance(shown, QLabel) else shown.sizeHint()
        if shown.hasHeightForWidth():
            short = shown.heightForWidth(shown.width()) > shown.height() + 1
        else:
            short = need.width() > shown.width() + 1 or need.height() > shown.height() + 1
        area = page if isinstance(page, QScrollArea) else page.findChild(QScrollArea)
        assert isinstance(area, QScrollArea)
        inner = area.widget()
        inside = inner.isAncestorOf(shown)
        beyond = inside and shown.mapTo(inner, QPoint(shown.width(), 0)).x() > area.viewport().width()
        if short or beyond:
            found.append(words)
    return found


@pytest.mark.parametrize("page", ["start", "launch"])
@pytest.mark.parametrize("size", [(900, 600), (1600, 1000)])
def test_no_word_of_a_page_is_cut(window: MainWindow, page: str, size: tuple[int, int]) -> None:
    window.resize(*size)
    window.show_page(page)
    for percent in (100, 125, 150, 175, 200, 100):
        text_size.choose(window.session, window.settings, percent)
        settle()
        assert cut(window.pages[page]) == [], percent


def test_the_names_in_the_picture_stand_before_its_bars(window: MainWindow) -> None:
    picture = window.pages["start"].findChild(WaitPicture)
    assert picture is not None
    text_size.choose(window.session, window.settings, 200)
    names, row = picture._measures()
    assert names > picture.fontMetrics().horizontalAdvance("GPU")
    assert row >= picture.fontMetrics().height()
    assert picture.minimumSizeHint().height() > 2 * (row + picture.fontMetrics().height())


def test_a_check_box_wraps_and_every_line_of_it_can_be_pressed(qtbot: QtBot) -> None:
    box = WrappingCheck("End the script once the chosen steps are recorded (its finally and atexit still run)")
    qtbot.addWidget(box)
    wide, narrow = box.heightForWidth(2000), box.heightForWidth(160)
    assert wide == box.sizeHint().height()
    assert narrow > 3 * box.fontMetrics().height()
    box.resize(160, narrow)
    box.show()
    QTest.mouseClick(box, Qt.MouseButton.LeftButton, pos=QPoint(60, narrow - 6))
    assert box.isChecked()
    image = box.grab().toImage()
    paper = image.pixelColor(150, 1)
    last = range(narrow - box.fontMetrics().height(), narrow)
    assert any(image.pixelColor(x, y) != paper for y in last for x in range(20, 160))


def test_figures_and_the_plan_give_way_with_dots(window: MainWindow, document: Document) -> None:
    window.resize(900, 600)
    text_size.choose(window.session, window.settings, 200)
    settle()
    page = window.current_page()
    assert page is not None
    for metric in page.band("verdict")._metrics:  # type: ignore[union-attr]
        if metric.isVisible():
            assert isinstance(metric.value, Elided) and isinstance(metric.name, Elided)
            assert not metric.name.toolTip() and metric.toolTip()  # the definition, over a name that is cut too
            assert metric.geometry().right() <= metric.parentWidget().width()
    plan = window.findChild(PlanPanel)
    assert plan is not None
    assert plan.next.width() >= plan.next.sizeHint().width()
    assert isinstance(plan.previous, Link)  # its words give way in their middle
    assert plan.total.toolTip() or plan.total.width() >= plan.total.sizeHint().width() - 2
