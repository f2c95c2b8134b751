"""Pages in the smallest window with large texts: all of them is reached by scrolling, and nothing lies over else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QScrollArea

from gui import jobs, text_size, theme
from gui.main_window import MainWindow
from gui.models.columns import NOT_ASKED, Column, ColumnModel
from gui.screenshot import settle
from gui.text import signed_duration
from gui.widgets.figure_grid import FigureGrid
from tests.gui.test_loop import finish, loop, make_run, run_folder, shown  # noqa: F401 - fixtures


@pytest.fixture(autouse=True)
def usual_size(qapp: QApplication) -> Iterator[None]:
    """Leave the texts as large as they were."""
    yield
    text_size.apply(1.0)


def assert_within(page: Any) -> None:
    """What is scrolled is no wider than its place, and no button or text of it lies beyond its end or under another."""
    area = page.findChild(QScrollArea)
    inner = area.widget()
    assert inner.width() <= area.viewport().width()
    for made in inner.findChildren(QAbstractButton) + inner.findChildren(QLabel):
        if made.isVisible() and made.text() and made.parentWidget() is inner:
            assert made.mapTo(inner, QPoint(0, made.height())).y() <= inner.height()


@pytest.mark.parametrize("percent", [100, 150, 200])
def test_both_sides_are_compared_within_the_page(
    window: MainWindow,
    loop: Any,  # noqa: F811 - a fixture
    run_folder: Path,  # noqa: F811 - a fixture
    tmp_path: Path,
    percent: int,
) -> None:
    window.resize(900, 600)
    text_size.choose(window.session, window.settings, percent)
    before = shown(window, run_folder, 1_000_000.0)
    before.title = "a_long_name_of_a_trace_" * 6
    folder = make_run(tmp_path / "runs" / "9", tmp_path / "project" / "train.py", wall_us=500.0)
    window.session.ask("compare_documents", before, shown(window, folder, 500_000.0, ()))
    jobs.wait_all()
    settle()
    page: Any = window.pages["compare"]
    assert_within(page)
    grid = page.grid
    assert grid.width() <= page.width()
    for cells in grid._cells:
        for cell in cells:
            assert cell.width() >= cell.sizeHint().width()
    assert page.timelines.height() > 200
    suggestions = page._tables["suggestions"].model
    titles = [suggestions.headerData(k, Qt.Orientation.Horizontal) for k in range(suggestions.columnCount())]
    row = dict(zip(titles, (suggestions.index(0, k).data() for k in range(len(titles))), strict=True))
    assert row["State"] == "vanished"
    assert row["Saves before"]
    assert row["Saves after"] == ""  # not there: nothing to save


@pytest.mark.parametrize("percent", [150, 200])
def test_the_table_of_rounds_leaves_what_is_below_it_free(
    window: MainWindow,
    loop: Any,  # noqa: F811 - a fixture
    run_folder: Path,  # noqa: F811 - a fixture
    percent: int,
) -> None:
    window.resize(900, 600)
    text_size.choose(window.session, window.settings, percent)
    shown(window, run_folder, 1_000_000.0)
    finish()
    window.show_page("iterations")
    settle()
    page: Any = window.pages["iterations"]
    page.below.show()
    page.table.show()
    page.table.setMinimumHeight(300)  # as of many rounds
    settle()
    assert_within(page)
    assert page.split.height() >= page.table.height() + page.below.height()
    area = page.findChild(QScrollArea)
    assert area.verticalScrollBar().maximum() > 0


def test_figures_stand_in_lines_where_columns_have_no_room(qtbot: Any) -> None:
    grid = FigureGrid()
    qtbot.addWidget(grid)
    grid.show_rows([("", "before", "after", "change"), *[("Sustained step", "175 ms", "140 ms", "−20 %")] * 8])
    grid.show()
    grid.resize(2000, 100)
    assert grid.is_across()
    high = grid.minimumSizeHint().height()
    grid.resize(500, 100)
    assert not grid.is_across()
    assert grid.minimumSizeHint().height() > high
    grid.resize(2000, 100)
    assert grid.is_across()
    grid.layout().activate()
    spacious = max(cell.geometry().right() for cell in grid.findChildren(QLabel))
    grid.resize(spacious - 60, 100)  # closer together rather than nine lines
    assert grid.is_across()
    grid.layout().activate()
    assert max(cell.geometry().right() for cell in grid.findChildren(QLabel)) <= grid.width()


def test_a_difference_has_its_sign_and_colour() -> None:
    assert signed_duration(-5_770_000.0).startswith("−5.77")
    assert signed_duration(4_820_000.0).startswith("+4.82")
    assert not signed_duration(0.0).startswith("+")
    model = ColumnModel(
        [
            Column("Difference", "signed_ns", [-5.0, 5.0, 1.0], better=[1, -1, 0]),
            Column("Saves", "saving_ns", [NOT_ASKED, -1, 5_000.0]),
        ]
    )
    colours = [model.index(k, 0).data(Qt.ItemDataRole.ForegroundRole) for k in range(3)]
    assert colours[0].name() == theme.current().saved
    assert colours[1].name() == theme.current().wait
    assert colours[2] is None
    assert [model.index(k, 1).data() for k in range(3)] == ["", "unknown", "−5.00\u202fµs"]
