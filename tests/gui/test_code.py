"""A change is seen whole, however narrow the place where it is shown."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QApplication, QScrollArea, QTextEdit, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from gui import theme
from gui.widgets.code import CodeDiff, comments_above, without_blank_ends, without_common_indent

OLD = "            weights = torch.tensor([0.2, 0.8, 1.0, 3.0], dtype=torch.float32).to(device)"
NEW = "            weights = torch.tensor([0.2, 0.8, 1.0, 3.0], dtype=torch.float32, device=device)"


def placed(qtbot: QtBot, code: QTextEdit, width_px: int) -> QWidget:
    """The code in a column that scrolls, as cards and dialogs have it."""
    column, area = QWidget(), QScrollArea()
    box = QVBoxLayout(column)
    box.addWidget(code)
    box.addStretch(1)
    area.setWidgetResizable(True)
    area.setWidget(column)
    qtbot.addWidget(area)
    area.resize(width_px, 600)
    area.show()
    qtbot.waitUntil(lambda: 0 < code.width() <= area.width() and code.verticalScrollBar().maximum() == 0)
    return area


@pytest.mark.parametrize("width_px", [280, 420, 900])
def test_long_lines_are_wrapped_and_all_of_them_are_in_view(qtbot: QtBot, width_px: int) -> None:
    theme.apply(QApplication.instance(), dark=True)
    code = CodeDiff(OLD, NEW, "fix")
    area = placed(qtbot, code, width_px)
    assert code.width() <= area.width()
    assert code.horizontalScrollBar().maximum() == 0
    assert code.verticalScrollBar().maximum() == 0
    assert code.toPlainText().count("\n") == 1  # what is copied has no breaks of ours


def test_what_goes_on_stands_further_in_than_its_line(qtbot: QtBot) -> None:
    code = CodeDiff("def f():\n    " + OLD.strip(), "def f():\n    " + NEW.strip(), "fix")
    area = placed(qtbot, code, 300)
    layout = code.document().findBlockByNumber(1).layout()
    assert layout.lineCount() > 1
    assert area.isVisible()
    first, second = layout.lineAt(0), layout.lineAt(1)
    column = QFontMetricsF(code.font()).horizontalAdvance(" ")
    assert second.x() - first.x() == pytest.approx((2 + 4 + 2) * column, abs=1)


def test_a_narrower_place_makes_it_higher(qtbot: QtBot) -> None:
    code = CodeDiff(OLD, NEW, "fix")
    area = placed(qtbot, code, 900)
    wide = code.height()
    area.resize(260, 600)
    qtbot.waitUntil(lambda: code.height() > wide)


def test_blank_lines_around_a_change_are_left_out() -> None:
    assert without_blank_ends(["  ", "", "- a", "  ", "+ b", "  "]) == ["- a", "  ", "+ b"]
    assert without_blank_ends(["  "]) == []


def test_the_indentation_that_all_lines_share_takes_no_room() -> None:
    assert without_common_indent(["-     a", "+       b", "", "…", "      c"]) == ["- a", "+   b", "", "…", "  c"]


def test_the_comment_behind_a_long_line_of_an_example_stands_above_it() -> None:
    code = "for x in y:\n    print((running / 50).item())    # one wait in 50 steps\n    a = b  # short\n"
    assert comments_above(code).splitlines() == [
        "for x in y:",
        "    # one wait in 50 steps",
        "    print((running / 50).item())",
        "    a = b  # short",
    ]
    assert comments_above("") == ""


def test_examples_of_a_card_keep_code_and_comment_apart_in_a_narrow_plan(qapp: QApplication) -> None:
    before, after = "x = 1\n", "cache[:, :, t:t + 1] = value_of_it      # allocated once: torch.empty(batch)\n"
    made = CodeDiff(comments_above(before), comments_above(after), "fix")
    lines = made.toPlainText().splitlines()
    assert [line for line in lines if "#" in line] == ["+ # allocated once: torch.empty(batch)"]
    assert "+ cache[:, :, t:t + 1] = value_of_it" in lines
