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


def test_the_name_has_most_of_a_line(qtbot: QtBot) -> None:
    over = QWidget()
    qtbot.addWidget(over)
    over.resize(900, 600)
    over.show()
    box = WorkLines(over, QWidget(over))
    line = WorkLine("Opening m13_a100_rank1of128_a_long_name_of_a_run_that_ends_in_a_number_17.json.gz", lambda: None)
    line.set_progress(0.4, "reading · about 12 s left")
    box.add(line)
    qtbot.waitUntil(lambda: line.title.width() > line.bar.width())
