"""The whole window as a picture, without a screen."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QBuffer, QByteArray, QIODevice
from PySide6.QtGui import QPixmap

if TYPE_CHECKING:
    from core.analysis import Analysis
    from core.trace import Trace
    from gui.main_window import MainWindow

Report = Callable[[float, str], None]


def write_screenshot(
    trace: Trace,
    analysis: Analysis | None,
    out: Path,
    size: tuple[int, int] = (1600, 1000),
    suggestion: int | None = None,
    dark: bool = True,
    start_ns: float | None = None,
    end_ns: float | None = None,
) -> None:
    """Render the window with one trace to a PNG.

    Parameters
    ----------
    size
        Width and height, px.
    suggestion
        Position in ``analysis.suggestions`` to open, from 0; None opens none.
    start_ns, end_ns
        Stretch of time to show; one typical step when None.

    Raises
    ------
    OSError
        When the picture cannot be written; what stood at ``out`` is untouched then.
    """
    window = picture_window(trace, analysis, size, dark=dark)
    document = window.session.current
    assert document is not None
    if suggestion is not None:
        document.show_suggestion(suggestion)
    if start_ns is not None and end_ns is not None:
        document.zoom_to(start_ns, end_ns, remember=False)
    settle()
    try:
        write_pixmap(window.grab(), out)
    finally:
        dispose(window)


def picture_window(trace: Trace, analysis: Analysis | None, size: tuple[int, int], *, dark: bool = True) -> MainWindow:
    """Return a laid-out window that reads and writes nothing of the user's, showing one trace."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from core.run_folder import finder_for, run_of
    from gui.app import make_application, make_window
    from gui.opening import title_of
    from gui.session import Document
    from gui.settings import MemorySettings

    make_application()
    window = make_window(MemorySettings(), dark=dark, height_px=size[1])
    window.setMinimumSize(1, 1)
    window.resize(*size)
    window.show()
    settle()
    document = Document(trace)
    document.kept = False
    if trace.sources:  # as for a trace that is opened: sources beside it are read
        document.run, document.finder = run_of(trace.path), finder_for(trace)
    document.title = title_of(trace, document.run) if trace.sources else ""
    window.session.add_document(document)
    if analysis is not None:
        document.set_analysis(analysis)
        document.show_typical_step()
    settle()
    return window


def settle(rounds: int = 60) -> None:
    """Let queued events and finished jobs arrive, until nothing is left to do."""
    from PySide6.QtCore import QCoreApplication, QEventLoop

    from gui import jobs

    for _ in range(rounds):
        QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)
        if not jobs.busy():
            break
        jobs.wait_all(200)
    QCoreApplication.sendPostedEvents()
    QCoreApplication.processEvents()


def dispose(window: MainWindow) -> None:
    """Close a window of `picture_window` without keeping its state."""
    from PySide6.QtCore import QCoreApplication, QEvent

    for document in tuple(window.session.documents):
        window.session.close_document(document)
    window.hide()
    window.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def write_pixmap(pixmap: QPixmap, out: Path) -> None:
    """Write a picture, all or nothing.

    Raises
    ------
    OSError
        When it cannot be written.
    """
    from core.files import write_atomically

    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    if not pixmap.save(buffer, "PNG"):
        raise OSError(0, "the picture cannot be encoded", str(out))
    write_atomically(out, bytes(data.data()))


def screenshot(options: argparse.Namespace, progress: Report) -> None:
    """``main.py screenshot``: open, diagnose, draw.

    Raises
    ------
    TraceError
        When the trace cannot be used, or has no such suggestion.
    """
    from core import cache
    from core.analysis import analyze
    from core.errors import TraceError
    from core.importing import open_trace
    from core.run_folder import finder_for

    def part(start: float, end: float) -> Report:
        def report(fraction: float, text: str = "") -> None:
            progress(start + (end - start) * fraction, text)

        return report

    trace = open_trace(options.trace, progress=part(0.0, 0.6), cache_dir=cache.user_folder())
    analysis = analyze(trace, progress=part(0.6, 0.9), source=finder_for(trace))
    suggestion = None if options.suggestion is None else options.suggestion - 1
    if suggestion is not None and not 0 <= suggestion < len(analysis.suggestions):
        raise TraceError(
            f"{options.trace}: there is no suggestion {options.suggestion}.",
            f"This trace has {len(analysis.suggestions)}.",
            "They are counted from 1, in the order in which analyze lists them.",
        )
    stretch = (None, None) if options.start_us is None else (options.start_us * 1000, options.end_us * 1000)
    dark = options.theme == "dark"
    with _faults_raised():
        write_screenshot(trace, analysis, options.out, options.size, suggestion, dark, *stretch)


@contextlib.contextmanager
def _faults_raised() -> Iterator[None]:
    """Raise what Qt's callbacks could only report: a picture with a hole in it is no picture."""
    faults: list[BaseException] = []
    before = sys.excepthook
    sys.excepthook = lambda kind, error, trace: faults.append(error)
    try:
        yield
    finally:
        sys.excepthook = before
    if faults:
        raise faults[0]
