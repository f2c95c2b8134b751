"""The program in a real window on a virtual screen: opens, shows the trace, answers keys, ends with 0."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.gui.conftest import training
from tests.gui.screens import needs_screen, run

SCRIPT = """
import sys
from pathlib import Path
from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
import gui.app as app

made = app.make_application()
assert made.platformName() == "xcb", made.platformName()
failed = []

def look():
    window = next(w for w in made.topLevelWidgets() if type(w).__name__ == "MainWindow")
    document = window.session.current
    if document is None or document.analysis is None or document.analysis_running:
        return
    timer.stop()
    try:
        assert window.isVisible() and window.windowHandle().isExposed()
        timeline = window.current_page().timeline
        before = document.viewport.width_ns
        QTest.keyClick(timeline, Qt.Key.Key_F)
        QTest.keyClick(timeline, Qt.Key.Key_F)
        assert document.viewport.width_ns != before
        image = window.grab().toImage()
        colours = {image.pixel(x, y) for x in range(0, image.width(), 7) for y in range(0, image.height(), 7)}
        assert len(colours) > 30, len(colours)
    except BaseException as error:
        failed.append(error)
    window.close()

timer = QTimer()
timer.timeout.connect(look)
timer.start(50)
QTimer.singleShot(60_000, made.quit)
status = app.run([Path(sys.argv[1])])
if failed:
    raise failed[0]
assert not timer.isActive(), "the trace never came"
sys.exit(status)
"""


@pytest.mark.xvfb
@needs_screen
def test_a_real_window_opens_a_trace_and_answers_keys(tmp_path: Path) -> None:
    path = training().write(tmp_path / "train.json")
    done = run([sys.executable, "-c", SCRIPT, str(path)], 120)
    assert done.returncode == 0, done.stderr
