"""Tables: long texts get the room that is there, what the user has sized stays."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QApplication,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionComboBox,
    QStyleOptionViewItem,
    QTableView,
)
from pytestqt.qtbot import QtBot

from gui import text_size, theme
from gui.main_window import MainWindow
from gui.models.columns import Column, ColumnModel
from gui.screenshot import settle
from gui.session import Document
from gui.widgets.choice import Choice
from gui.widgets.table import LEAST_PX, PADDING_PX, Table, TableBox


def rules_table(window: MainWindow) -> Table:
    window.show_panel("rules")
    page = window.current_page()
    assert page is not None
    panel = page.panel("rules")
    assert panel is not None
    found = panel.findChildren(QTableView)[0]
    assert isinstance(found, Table)
    return found


def test_a_wider_table_shows_more_of_its_long_texts(window: MainWindow, document: Document) -> None:
    window.resize(1000, 800)
    table = rules_table(window)
    settle()
    reason = table.model().columnCount() - 2
    narrow = table.columnWidth(reason)
    window.resize(1900, 900)
    settle()
    assert table.columnWidth(reason) >= narrow
    used = sum(table.columnWidth(k) for k in range(table.model().columnCount()))
    assert used <= table.viewport().width()


def test_what_the_user_has_sized_stays(window: MainWindow, document: Document) -> None:
    window.resize(1000, 800)
    table = rules_table(window)
    settle()
    table.setColumnWidth(1, 333)
    window.resize(1900, 900)
    settle()
    assert table.columnWidth(1) == 333


def test_columns_follow_the_text_size(window: MainWindow, document: Document) -> None:
    window.resize(1400, 800)
    table = rules_table(window)
    settle()
    try:
        text_size.choose(window.session, window.settings, 150)
        settle()
        large = [table.columnWidth(k) for k in range(table.model().columnCount())]
        table.fit_columns(table._first_px)
        assert large == [table.columnWidth(k) for k in range(table.model().columnCount())]
        table.setColumnWidth(1, 333)
        text_size.choose(window.session, window.settings, 100)
        settle()
        assert table.columnWidth(1) == 333
    finally:
        text_size.choose(window.session, window.settings, 100)


KERNEL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, Array<char*, 1> >(int)"


def test_a_kernel_shows_what_it_does_and_is_found_and_copied_by_its_whole_name(qapp: QApplication) -> None:
    model = ColumnModel([Column("Name", "name", [KERNEL, "aten::" + "deep.module." * 20 + "forward"])])
    box = TableBox(model, lambda slice_id: None, name="Kernels")
    box.resize(400, 200)
    box.show()
    cell, table = model.index(0, 0), box.table
    assert cell.data().startswith("Fill · elementwise – vector")
    assert KERNEL[:40].replace("<", "&lt;") in cell.data(Qt.ItemDataRole.ToolTipRole)
    modes, cut = [], table.itemDelegate()
    assert isinstance(cut, QStyledItemDelegate)
    for row in range(2):
        option = QStyleOptionViewItem()
        cut.initStyleOption(option, model.index(row, 0))
        modes.append(option.textElideMode)
    assert modes[0] is Qt.TextElideMode.ElideRight
    assert modes[1] is not Qt.TextElideMode.ElideRight
    box.filter.setText("native::FillFunctor")
    assert model.rowCount() == 1
    table.selectRow(0)
    table.copy_rows()
    assert QGuiApplication.clipboard().text() == KERNEL


def test_a_choice_without_room_ends_in_dots_and_nothing_is_cut_in_two(qapp: QApplication) -> None:
    whole, cut = (Choice("What", ("thread 19392 (python)", 1)) for _ in range(2))
    pictures = []
    for choice, width in ((whole, 300), (cut, 80)):
        choice.resize(width, choice.sizeHint().height())
        pictures.append(choice.grab().toImage())
    option, arrow = QStyleOptionComboBox(), QStyle.SubControl.SC_ComboBoxArrow
    cut.initStyleOption(option)
    left = cut.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, arrow, cut).left()
    column = {pictures[1].pixel(left - 1, y) for y in range(6, cut.height() - 6)}
    assert len(column) == 1  # no letter reaches the arrow


def test_a_choice_of_the_size_it_wants_shows_all_its_words(qapp: QApplication) -> None:
    for words in ("Whole trace", "CPU time", "thread 4242 (main)"):
        shown = []
        for further in (0, 60):
            choice = Choice("What", (words, 1))
            choice.resize(choice.sizeHint().width() + further, choice.sizeHint().height())
            shown.append(choice.grab().toImage().copy(0, 0, choice.sizeHint().width() - 30, choice.height()))
        assert shown[0] == shown[1]


def test_the_arrow_of_a_sorted_column_does_not_widen_the_table(qapp: QApplication) -> None:
    columns = [Column("Name", "text", ["a name"] * 3), *(Column(f"Column {k}", "text", ["a"] * 3) for k in range(4))]
    table = Table(ColumnModel(columns), lambda slice_id: None)
    table.resize(620, 200)
    table.show()
    settle()
    table.fit_columns()
    for column in (4, 3):
        table.sortByColumn(column, Qt.SortOrder.AscendingOrder)
        settle()
        assert sum(table.columnWidth(k) for k in range(5)) <= table.viewport().width()
    table.deleteLater()


def test_small_shares_at_the_end_of_a_table_are_not_cut(qtbot: QtBot) -> None:
    """``< 0.1 %`` is longer than the shares above it, whose rows come first."""
    shares = np.array([7.0] * 90 + [0.01] * 60)
    model = ColumnModel([Column("Name", "name", [f"k{i}" for i in range(150)]), Column("", "pct", shares)])
    table = Table(model, lambda slice_id: None)
    qtbot.addWidget(table)
    table.fit_columns()
    needed = table.fontMetrics().horizontalAdvance(str(model.index(149, 1).data()))
    assert needed > table.fontMetrics().horizontalAdvance(str(model.index(0, 1).data()))
    assert table.columnWidth(1) >= max(needed + PADDING_PX, LEAST_PX)


@pytest.mark.parametrize("dark", [True, False])
def test_what_is_bad_stays_red_in_a_chosen_row(qapp: QApplication, qtbot: QtBot, dark: bool) -> None:
    was = theme.current()
    theme.apply(qapp, dark=dark)
    try:
        better = [-1, 1, 0]
        columns = [Column("Name", "name", ["a", "b", "c"]), Column("Losses", "text", ["██ one"] * 3, better=better)]
        table = Table(ColumnModel(columns), lambda _row: None)
        qtbot.addWidget(table)
        table.resize(400, 200)
        table.show()
        found = []
        for row in range(3):
            table.selectRow(row)
            picture = table.viewport().grab(table.visualRect(table.model().index(row, 1))).toImage()
            colours = {picture.pixelColor(x, y).name() for x in range(picture.width()) for y in range(picture.height())}
            assert theme.current().selection in colours
            found.append(colours & {theme.current().wait, theme.current().saved, theme.current().text})
        assert found == [{theme.current().wait}, {theme.current().saved}, {theme.current().text}]
    finally:
        theme.apply(qapp, dark=was.dark)
