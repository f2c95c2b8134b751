"""What PySide leaves to the program where several threads run Python.

Two things that are harmless in one thread end the process where there are more:

- PySide makes a class when its name is first asked for. Two threads that ask for one at the same time find it half
  made. So all classes are asked for in the GUI thread, a few at a time, before any other thread imports what uses them.
- Python collects garbage in whichever thread happens to allocate. A widget that refers to itself in circles would be
  destroyed there. So it is collected in the GUI thread alone.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator

from PySide6 import QtCore, QtGui, QtWidgets
from PySide6.QtCore import QCoreApplication, QTimer

SLICE_S = 0.004  # of a frame; a single class may take longer
LOOK_MS = 500
PATIENCE_S = 10.0
MODULES = (QtCore, QtGui, QtWidgets)  # pyqtgraph asks for every name of each


def _make() -> Iterator[None]:
    for module in MODULES:
        for name in dir(module):
            getattr(module, name, None)
            yield


_made = threading.Event()
_missing = _make()  # goes on where it was left


def make_classes(budget_s: float | None = None) -> bool:
    """Make classes that are not made yet; returns whether none is left (in the GUI thread).

    Parameters
    ----------
    budget_s
        How long it may take, in seconds; one class is always made. None for as long as it takes.
    """
    if _made.is_set():
        return True
    end = None if budget_s is None else time.perf_counter() + budget_s
    for _ in _missing:
        if end is not None and time.perf_counter() >= end:
            return False
    _made.set()
    return True


def when_made(then: Callable[[], None]) -> None:
    """Make all classes between the frames, then call back (from and in the GUI thread)."""
    app = QCoreApplication.instance()
    if app is None or make_classes(SLICE_S):
        then()
    else:
        QTimer.singleShot(1, app, lambda: when_made(then))


def wait_made() -> None:
    """Return when all classes are made: makes them in the GUI thread, waits for that thread in any other one."""
    if threading.current_thread() is threading.main_thread():
        make_classes()
    else:
        _made.wait(PATIENCE_S)


def collect_here(parent: QtCore.QObject) -> Callable[[], None]:
    """Collect garbage in the GUI thread alone from now on; returns what gives that back to Python."""
    gc.disable()
    timer = QTimer(parent)
    timer.setInterval(LOOK_MS)
    timer.timeout.connect(_collect)
    timer.start()

    def give_back() -> None:
        timer.stop()
        gc.enable()

    return give_back


def _collect() -> None:
    counts, limits = gc.get_count(), gc.get_threshold()
    due = [generation for generation in range(3) if limits[generation] and counts[generation] > limits[generation]]
    if due:
        gc.collect(due[-1])
