"""A window that stands open, as it does when a trace is dropped on it: what benchmarks open into."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gui.main_window import MainWindow

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("QT_LOGGING_RULES", "qt.qpa.*=false")

SIZE_PX = (1600, 1000)


def standing_window() -> MainWindow:
    """Make the application and its window as the program does, shown long enough for its warm-up to have begun."""
    from gui import binding, warmup
    from gui.app import WARM_UP_MS, make_application, make_window
    from gui.settings import MemorySettings

    make_application()
    warmup.share_interpreter()
    window = make_window(MemorySettings(), dark=True)
    binding.collect_here(window)
    window.resize(*SIZE_PX)
    window.show()
    spin(WARM_UP_MS / 1000)
    return window


def spin(seconds: float) -> None:
    """Let the window work for so long."""
    from PySide6.QtCore import QEventLoop, QTimer

    loop = QEventLoop()
    QTimer.singleShot(round(seconds * 1000), loop.quit)
    loop.exec()
