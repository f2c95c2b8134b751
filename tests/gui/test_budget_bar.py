"""What is written in the parts of a budget bar."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from gui.widgets.budget_bar import BudgetBar, Part


@pytest.fixture
def bar(qtbot: QtBot) -> BudgetBar:
    made = BudgetBar()
    qtbot.addWidget(made)
    parts = [Part("busy: computing", 920, "#101010"), Part("busy: copies only", 80, "#909090", "copies")]
    made.show_parts(parts, 1000)
    made.resize(700, 40)
    return made


def test_a_part_without_room_has_its_share_and_its_name_below(bar: BudgetBar) -> None:
    assert bar.labels()[1].startswith("8")
    assert [part.name for part, _ in bar.legend()] == ["busy: copies only"]


def test_where_nothing_stands_below_it_has_its_name_rather_than_its_share(bar: BudgetBar) -> None:
    bar.show_names_below(False)
    assert bar.labels()[1] == "copies"
    bar.resize(300, 40)
    assert bar.labels()[1] == ""
