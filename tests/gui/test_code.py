"""A change is seen whole, however narrow the place where it is shown."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from gui.widgets.code import CodeDiff, without_common_indent

OLD = "            weights = torch.tensor([0.2, 0.8, 1.0, 3.0], dtype=torch.float32).to(device)"
NEW = "            weights = torch.tensor([0.2, 0.8, 1.0, 3.0], dtype=torch.float32, device=device)"


@pytest.mark.parametrize("width_px", [280, 420, 900])
def test_long_lines_are_wrapped_and_all_of_them_are_in_view(qtbot: QtBot, width_px: int) -> None:
    code = CodeDiff(OLD, NEW, "fix")
    qtbot.addWidget(code)
    code.resize(width_px, code.height())
    code.show()
    assert code.horizontalScrollBar().maximum() == 0
    assert code.verticalScrollBar().maximum() == 0
    assert code.toPlainText().count("\n") == 1  # what is copied has no breaks of ours


def test_a_narrower_place_makes_it_higher(qtbot: QtBot) -> None:
    code = CodeDiff(OLD, NEW, "fix")
    qtbot.addWidget(code)
    code.show()
    heights = []
    for width_px in (900, 260):
        code.resize(width_px, code.height())
        heights.append(code.height())
    assert heights[1] > heights[0]


def test_the_indentation_that_all_lines_share_takes_no_room() -> None:
    assert without_common_indent(["-     a", "+       b", "", "…", "      c"]) == ["- a", "+   b", "", "…", "  c"]
