"""In a real window: a script that never ends is started from the form and stopped, politely and by force."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.gui.screens import ROOT, needs_screen, run
from tests.profiling import light

DRIVER = """
import os, sys, time
from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
import gui.app as app
from gui.panels.launch import LaunchPage
from gui.panels.output import OutputPage
from profiling.processes import descendants

made = app.make_application()
assert made.platformName() == "xcb", made.platformName()
scripts, pictures = sys.argv[1:-1], sys.argv[-1]
failed = []

def find(kind):
    return next((w for w in made.allWidgets() if isinstance(w, kind) and w.isVisible()), None)

def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read().replace("\\0", " ")
    except OSError:
        return "from multiprocessing (ended)"

def shot(window, name):
    if pictures:
        window.grab().save(os.path.join(pictures, name + ".png"))

def drive(window):
    session = window.session
    for script in scripts:
        name = os.path.basename(script)
        session.ask("profile", None)
        while (page := find(LaunchPage)) is None:
            yield
        page.script.selectAll()
        QTest.keyClicks(page.script, script)
        page._picked = True
        page.interpreter.setEditText(sys.executable)
        while not page.run_button.isEnabled():
            yield
        shot(window, name + "-form")
        QTest.mouseClick(page.run_button, Qt.MouseButton.LeftButton)
        capture = session.ask("capture")
        assert capture.running
        while (out := find(OutputPage)) is None or not capture.run.gathered.traces:
            yield
        shot(window, name + "-runs")
        began = time.monotonic()
        QTest.mouseClick(out.stop_button, Qt.MouseButton.LeftButton)
        assert out.stop_button.text() == "Stop at once"
        while capture.running:
            yield
        seconds = time.monotonic() - began
        print("ENDED", name, round(seconds, 1), capture.result.outcome, "|", capture.result.words)
        assert seconds < 6, seconds
        session.pageRequested.emit("output")
        while find(OutputPage) is None:
            yield
        assert out.words.text() == capture.result.words
        shot(window, name + "-ended")
        count = len(session.documents)
        while not any(d.trace.path == capture.result.trace for d in session.documents):
            yield
    def left():  # but for the process that reads traces, which is at hand for the next one
        return {p: words for p in descendants(os.getpid()) if "from multiprocessing" not in (words := command_of(p))}

    patience = time.monotonic() + 60  # a script that was left would never end
    while left() and time.monotonic() < patience:  # an interpreter may still be asked what it is; that ends by itself
        yield
    assert not left(), left()

steps = None
def tick():
    global steps
    window = next(w for w in made.topLevelWidgets() if type(w).__name__ == "MainWindow")
    if not window.isVisible():
        return
    steps = steps or drive(window)
    try:
        next(steps)
    except StopIteration:
        timer.stop()
        window.close()
    except BaseException as error:
        failed.append(error)
        timer.stop()
        window.close()

timer = QTimer()
timer.timeout.connect(tick)
timer.start(50)
QTimer.singleShot(250_000, made.quit)
status = app.run([])
if failed:
    raise failed[0]
assert not timer.isActive(), "it took too long"
sys.exit(status)
"""
LOOP = """
import signal, sys, time
import torch
w = torch.nn.Parameter(torch.randn(4, 4)); o = torch.optim.SGD([w], lr=0.1)
"""
POLITE = (
    LOOP
    + """
try:
    while True:
        o.zero_grad(); (w @ w).sum().backward(); o.step(); time.sleep(0.002)
finally:
    print("finally ran", flush=True)
"""
)
STUBBORN = (
    LOOP
    + """
signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    o.zero_grad(); (w @ w).sum().backward(); o.step(); time.sleep(0.002)
"""
)


@pytest.mark.xvfb
@pytest.mark.torch
@needs_screen
def test_a_script_is_started_and_stopped_in_a_real_window(tmp_path: Path) -> None:
    scripts = [tmp_path / "polite.py", tmp_path / "stubborn.py"]
    for path, source in zip(scripts, (POLITE, STUBBORN), strict=True):
        path.write_text(source)
    quick = light.write(tmp_path)
    quick["PYTHONPATH"] += os.pathsep + str(ROOT)
    done = run([sys.executable, "-c", DRIVER, *map(str, scripts), ""], 280, **quick)
    assert done.returncode == 0, done.stderr
    polite, stubborn = [line for line in done.stdout.splitlines() if line.startswith("ENDED")]
    assert "The script was stopped." in polite
    assert "did not follow the request to stop and was killed" in stubborn
