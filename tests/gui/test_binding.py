"""Threads and PySide: classes are made and garbage is collected in the GUI thread alone."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref

from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from gui import binding
from tests.gui.screens import ROOT

WARM = """
import importlib, threading
from PySide6 import QtCore, QtGui, QtWidgets
from gui import warmup
app = QtWidgets.QApplication([])
real, found = importlib.import_module, []

def watched(name):
    if not found:
        missing = [n for m in (QtCore, QtGui, QtWidgets) for n in dir(m) if n not in vars(m)]
        found.append((threading.current_thread() is threading.main_thread(), missing))
        QtCore.QTimer.singleShot(0, app, app.quit)
    return real(name)

assert "QDial" not in vars(QtWidgets)  # PySide makes it when it is asked for
importlib.import_module = watched
%s
QtCore.QTimer.singleShot(60_000, app, app.quit)
app.exec()
warmup.finish()
print(found)
"""
BY_START = "warmup.start()"
BY_A_JOB = "threading.Thread(target=warmup.finish).start(); QtCore.QTimer.singleShot(0, app, warmup.start)"


def warmed(how: str) -> str:
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", WARM % how]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_no_thread_imports_before_the_gui_thread_has_made_all_classes() -> None:
    assert warmed(BY_START) == "[(False, [])]"


def test_a_thread_that_needs_the_modules_waits_for_the_classes() -> None:
    assert warmed(BY_A_JOB) == "[(False, [])]"


class Circle(QObject):
    """Refers to itself, so that only a collection destroys it."""

    def __init__(self, where: list[bool]) -> None:
        super().__init__()
        self.me = self
        weakref.finalize(self, lambda: where.append(threading.current_thread() is threading.main_thread()))


def test_no_widget_is_destroyed_by_a_thread_that_allocates(qtbot: QtBot) -> None:
    where: list[bool] = []
    parent = QObject()
    give_back = binding.collect_here(parent)
    try:
        gc.collect()
        Circle(where)
        thread = threading.Thread(target=lambda: [[] for _ in range(2)] and [{"a": []} for _ in range(200_000)])
        thread.start()
        thread.join()
        assert where == []
        junk = [[] for _ in range(gc.get_threshold()[0] + 1)]
        qtbot.waitUntil(lambda: where == [True], timeout=20_000)
        assert junk
    finally:
        give_back()
    assert gc.isenabled()
