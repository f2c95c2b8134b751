"""The lines of running jobs over the page."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from gui.widgets.banner import WorkLine, WorkLines


def test_the_box_holds_its_lines_from_the_first_moment(qtbot: QtBot) -> None:
    """Nothing may come between: what opens the traces can keep the window busy right after."""
    over = QWidget()
    qtbot.addWidget(over)
    foot = QWidget(over)
    QVBoxLayout(over)
    over.resize(900, 600)
    over.show()
    box = WorkLines(over, foot)
    for number in (1, 2, 3):
        line = WorkLine(f"Opening {number}.json", lambda: None)
        box.add(line)
        assert line.isVisible()
        assert box.height() >= number * line.minimumSizeHint().height()
        assert box.geometry().bottom() < 600
