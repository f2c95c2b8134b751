"""How long it takes until the window is seen, against a bare window of the same libraries.

From the start of the process to the end of the first paint, each in a process of its own, in turns. Budget: at most
1.5 times a window of PySide6 that holds one empty plot of pyqtgraph; and no torch in the process.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

from benchmarks.measure import Missing, run

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("QT_LOGGING_RULES", "qt.qpa.*=false")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # libraries come compiled; what was started before is, too

# Both end with the first paint of a top-level window: the event loop is replaced by one that waits for it.
_SEEN = """
import json, sys, time
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication
class Seen(QObject):
    at = 0.0
    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.UpdateRequest and watched.isWindow() and not self.at:
            self.at = -1.0
        elif self.at == -1.0:
            self.at = time.time()
        return False
def seen(*_):
    app, seen = QApplication.instance(), Seen()
    for widget in app.topLevelWidgets():
        if widget.isVisible():
            widget.installEventFilter(seen)
    limit = time.time() + 60
    while seen.at <= 0 and time.time() < limit:
        app.processEvents()
        if seen.at == -1.0:
            seen.at = time.time()
    print(json.dumps({"seconds": seen.at - float(sys.argv[-1]), "torch": float("torch" in sys.modules)}), flush=True)
    import os
    os._exit(0)
QApplication.exec = staticmethod(seen)
"""
_BARE = (
    _SEEN
    + """
import pyqtgraph
from PySide6.QtWidgets import QMainWindow
app = QApplication([])
window = QMainWindow()
window.setCentralWidget(pyqtgraph.PlotWidget())
window.resize(1400, 860)
window.show()
QApplication.exec()
"""
)
_OURS = (
    _SEEN
    + """
import tempfile, os
os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_CACHE_HOME"] = os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp()
import main
from gui import app as program
program.run([])
"""
)


def main(arguments: list[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks start", description=__doc__)
    parser.add_argument("--repeat", type=int, default=7)
    repeat = parser.parse_args(arguments).repeat
    bare: list[float] = []
    ours: list[float] = []
    processor: list[float] = []
    torch = False
    try:
        for _ in range(repeat):
            bare.append(run(_BARE, str(time.time())).seconds)
            sample = run(_OURS, str(time.time()))
            ours.append(sample.seconds)
            processor.append(sample.cpu_seconds)
            torch |= bool(sample.extra["torch"])
    except Missing as missing:
        print(f"could not be measured: {missing}")
        return
    least = statistics.median(bare)
    print("| until the window is seen | s | of a bare one |\n|---|---:|---:|")
    print(f"| bare window with one plot | {least:.2f} | 1 |")
    print(f"| StepLens | {statistics.median(ours):.2f} | {statistics.median(ours) / least:.2f} |")
    print(f"\nprocessor time of StepLens: {statistics.median(processor):.2f} s")
    print("torch was imported" if torch else "torch was not imported")
