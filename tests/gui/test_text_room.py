"""Words of the pages are whole at any text size: what holds them grows with them, or they wrap."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QPoint, QSize, Qt
from PySide6.QtGui import QGuiApplication, QHelpEvent, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QFormLayout,
    QLabel,
    QScrollArea,
    QSpinBox,
    QToolTip,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

from gui import text, text_size
from gui.main_window import MainWindow
from gui.panels.plan import PlanPanel
from gui.screenshot import settle
from gui.session import Document
from gui.text import breakable_anywhere
from gui.widgets.fold import Fold
from gui.widgets.labels import Elided, Link, button, label, plain_tip
from gui.widgets.pictures import WaitPicture
from gui.widgets.wrapped_link import WrappedLink
from gui.widgets.wrapping_check import WrappingCheck

ROLES = (QFormLayout.ItemRole.LabelRole, QFormLayout.ItemRole.FieldRole)


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


def too_wide(window: MainWindow) -> list[str]:
    """Scrolled contents that are wider than what shows them, where nothing scrolls sideways."""
    found = []
    for area in window.findChildren(QScrollArea):
        inner = area.widget()
        off = area.horizontalScrollBarPolicy() == Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        if off and inner is not None and area.isVisible() and inner.width() > area.viewport().width():
            found.append(area.accessibleName())
    return found


@pytest.mark.parametrize("size", [(900, 600), (1440, 900)])
def test_long_words_make_no_panel_wider_than_its_place(
    window: MainWindow, document: Document, size: tuple[int, int]
) -> None:
    analysis = document.analysis
    assert analysis is not None
    reason = "Record with torch.profiler.profile(profile_memory=True,with_stack=True,record_shapes=True)."
    rules = tuple(replace(r, reason=reason) if r.reason else r for r in analysis.rules)
    worth = replace(analysis.suggestions[1].saving, together_ns=123_456_789)
    second = replace(analysis.suggestions[1], saving=worth, title="many_tiny_kernels_of_one_name" * 4)
    document.set_analysis(replace(analysis, rules=rules, suggestions=(analysis.suggestions[0], second)))
    window.resize(*size)
    plan = window.findChild(PlanPanel)
    assert plan is not None
    for percent in (100, 150, 200):
        text_size.choose(window.session, window.settings, percent)
        settle()
        for fold in plan.findChildren(Fold):
            fold.open()
        for index in range(2):
            document.show_suggestion(index)
            settle()
            assert too_wide(window) == [], (percent, index)


def test_a_wrapped_text_is_what_was_set_and_is_copied_so(qtbot: QtBot) -> None:
    words = "Record with torch.profiler.profile(profile_memory=True,with_stack=True)."
    made = label(words, wrap=True, select=True)
    qtbot.addWidget(made)
    assert made.text() == words
    assert made.minimumSizeHint().width() < made.fontMetrics().horizontalAdvance("torch.profiler.profile(")
    made.show()
    made.setFocus()
    made.setSelection(0, len(breakable_anywhere(words)))
    QTest.keyClick(made, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == words


def test_names_of_fields_stand_on_their_line_at_any_size_and_back(window: MainWindow) -> None:
    window.resize(1440, 900)
    window.show_page("launch")
    page = window.pages["launch"]
    for percent in (100, 200, 150, 100):
        text_size.choose(window.session, window.settings, percent)
        settle()
        for form in page.findChildren(QFormLayout):
            for row in range(form.rowCount()):
                name, field = (form.itemAt(row, role) for role in ROLES)
                if name is None or field is None or name.widget() is None or not name.widget().isVisible():
                    continue
                off = name.geometry().center().y() - field.geometry().center().y()
                assert abs(off) <= 2 or field.geometry().height() > 2 * name.geometry().height(), (percent, row)


def test_a_link_that_can_be_read_has_no_tooltip_that_repeats_it(qtbot: QtBot) -> None:
    words = "stage0.py(26): forward & more"
    link = button(words, role="link", tip=words)
    qtbot.addWidget(link)
    link.show()

    def tells() -> bool:
        event = QHelpEvent(QEvent.Type.ToolTip, QPoint(2, 2), QPoint(2, 2))
        QApplication.sendEvent(link, event)
        QToolTip.hideText()
        return event.isAccepted()

    link.resize(link.sizeHint())
    assert not tells()
    link.resize(60, 20)
    assert tells()  # it is cut
    link.resize(link.sizeHint())
    link.setToolTip("What it leads to")
    assert tells()


def test_a_link_of_a_card_goes_on_in_the_next_line_and_nothing_of_it_is_cut(qtbot: QtBot) -> None:
    words = "→ Time per step with no computation beside them: 59.6 ms & more"
    link = WrappedLink(words, lambda: None)
    qtbot.addWidget(link)
    one = link.sizeHint()
    assert len(link.lines(one.width())) == 1
    assert link.heightForWidth(one.width()) == one.height()
    lines = link.lines(one.width() * 2 // 5)
    assert len(lines) == 3
    assert " ".join(lines).replace("\u202f", " ") == words
    high = one.height() + 2 * link.fontMetrics().lineSpacing()
    page = QWidget()
    qtbot.addWidget(page)
    QVBoxLayout(page).addWidget(link)
    page.layout().setContentsMargins(0, 0, 0, 0)
    page.resize(one.width() * 2 // 5, 200)
    page.show()
    assert link.height() >= high == link.heightForWidth(one.width() * 2 // 5)


@pytest.mark.parametrize("value", ["251 ms", "1.1 s", "64 %", "81 KiB", "4 B", "9.2 µs", "400 ns"])
def test_no_line_ends_between_a_number_and_its_unit(value: str) -> None:
    kept = value.replace(" ", "\u202f")
    for shown in (text.breakable, text.breakable_anywhere, plain_tip):
        assert kept in shown(f"in all {value}: 5 steps of 4 sizes, 3 more")
        assert "5 steps of 4 sizes, 3 more" in shown(f"in all {value}: 5 steps of 4 sizes, 3 more")


def test_of_a_button_without_room_for_its_word_the_arrow_stays(qapp: QApplication) -> None:
    pictures: list[QImage] = []
    for words in ("← Previous", "← Vorhergehender", "→ Previous"):
        made = button(words, None, "flat", yields=True)
        size = pictures[0].size() if pictures else made.sizeHint() - QSize(20, 0)
        made.resize(size)
        pictures.append(made.grab().toImage())
    assert pictures[0] == pictures[1]
    assert pictures[0] != pictures[2]
