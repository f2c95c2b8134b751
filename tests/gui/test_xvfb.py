"""The program in a real window on a virtual screen: opens, shows the trace, answers keys, ends with 0."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gui.conftest import training

ROOT = Path(__file__).resolve().parents[2]
XVFB = shutil.which("xvfb-run")

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
@pytest.mark.skipif(XVFB is None, reason="xvfb-run is not installed: no virtual screen to open a window on")
def test_a_real_window_opens_a_trace_and_answers_keys(tmp_path: Path) -> None:
    path = training().write(tmp_path / "train.json")
    environment = {**os.environ, "QT_QPA_PLATFORM": "xcb", "PYTHONPATH": str(ROOT), "QT_QUICK_BACKEND": "software"}
    environment.pop("WAYLAND_DISPLAY", None)
    command = [str(XVFB), "-a", "-s", "-screen 0 1600x1000x24", sys.executable, "-c", SCRIPT, str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    if "could not connect to display" in done.stderr or 'load the Qt platform plugin "xcb"' in done.stderr:
        pytest.skip("the system libraries of a real window are missing: " + done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
