"""Exception -> what the person sees: a banner where they can act, a crash dialog where it is our fault."""

from __future__ import annotations

import errno
import logging
import platform
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from PySide6.QtCore import QCoreApplication, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from core.errors import TraceError
from core.words import visible_code
from gui import theme
from gui.said import spoken
from gui.widgets.labels import button, heading, label

log = logging.getLogger(__name__)
FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


class ChanceError(TraceError):
    """It failed for a reason that need not come back; ``again``, where it is set, tries once more."""

    again: Callable[[], object] | None = None


def offer_again(error: BaseException, again: Callable[[], object]) -> BaseException:
    """Let the user try once more what failed by chance; any other error is returned as it is."""
    if isinstance(error, ChanceError):
        error.again = again
    return error


@dataclass(frozen=True)
class ErrorText:
    """What to show: one sentence, the details, what to do, and what does it."""

    title: str
    detail: str = ""
    hint: str = ""
    again: Callable[[], object] | None = None


def as_text(error: BaseException) -> ErrorText | None:
    """Text of an error that a person can act on; None for one that is our bug."""
    if isinstance(error, TraceError):
        again = error.again if isinstance(error, ChanceError) else None
        return ErrorText(visible_code(error.title), visible_code(error.detail), visible_code(error.hint), again)
    title = getattr(error, "title", None)  # ProfilingError has the same three fields; the gui's other half
    if isinstance(title, str) and type(error).__module__.startswith("profiling"):
        return ErrorText(spoken(title), spoken(getattr(error, "detail", "")), spoken(getattr(error, "hint", "")))
    tr = QCoreApplication.translate
    if isinstance(error, MemoryError):
        return ErrorText(
            tr("errors", "There is not enough memory for this."),
            "",
            tr("errors", "Close other traces or programs, or record fewer steps."),
        )
    if isinstance(error, OSError) and error.errno in FULL:
        return ErrorText(
            tr("errors", "There is no space left on the disk."),
            visible_code(str(error.filename or "")),
            tr("errors", "Delete old runs, or choose another folder for them in Settings; then try again."),
        )
    if isinstance(error, OSError):
        return ErrorText(
            error.strerror or str(error),
            visible_code(str(error.filename or "")),
            tr("errors", "Check that the file is there and that you may read it."),
        )
    return None


def versions() -> str:
    """Versions of everything that a report of a bug needs."""
    from importlib import metadata  # late: it reads the whole environment

    lines = [f"Python {platform.python_version()} on {platform.platform()}"]
    for package in ("steplens", "PySide6_Essentials", "pyqtgraph", "numpy", "orjson", "msgspec"):
        try:
            lines.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            lines.append(f"{package} unknown")
    return "\n".join(lines)


def report_of(error: BaseException) -> str:
    """Traceback and versions, as text to send."""
    return "".join(traceback.format_exception(error)) + "\n" + versions()


class CrashDialog(QDialog):
    """Our bug: what happened, for the developers; the app goes on."""

    def __init__(self, error: BaseException, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("StepLens has a fault"))
        self.resize(760, 460)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._report = report_of(error)
        box = QVBoxLayout(self)
        box.setContentsMargins(16, 16, 16, 16)
        box.setSpacing(8)
        box.addWidget(heading(self.tr("Something went wrong inside StepLens.")))
        box.addWidget(
            label(
                self.tr(
                    "This is a fault of the app, not of your trace. You can go on working; nothing of yours was "
                    "changed. The text below says what happened: please send it with what you did."
                ),
                "dim",
                wrap=True,
            )
        )
        view = QPlainTextEdit(self._report)
        view.setReadOnly(True)
        view.setFont(theme.mono_font(-1))
        view.setAccessibleName(self.tr("Report of the fault"))
        box.addWidget(view, 1)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(button(self.tr("Copy"), self.copy))
        row.addWidget(button(self.tr("Go on"), self.accept, "primary"))
        box.addLayout(row)

    def copy(self) -> None:
        """Copy the report."""
        QGuiApplication.clipboard().setText(self._report)


class CrashHooks(QObject):
    """Catches what nobody caught, in any thread, and hands it to ``show`` in the GUI thread; one at a time."""

    _caught = Signal(object)

    def __init__(self, show: Callable[[BaseException], None], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._show = show
        self._showing = False
        self._before = (sys.excepthook, threading.excepthook)
        self._caught.connect(self._on_caught, Qt.ConnectionType.QueuedConnection)

    def install(self) -> None:
        """Take over both hooks."""
        sys.excepthook = self._hook
        threading.excepthook = self._thread_hook

    def remove(self) -> None:
        """Give both hooks back."""
        sys.excepthook, threading.excepthook = self._before

    def _hook(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            QTimer.singleShot(0, QCoreApplication.quit)  # not at once: the event loop may be yet to begin
            return
        log.error("uncaught", exc_info=(kind, error, trace))
        self._caught.emit(error.with_traceback(trace))

    def _thread_hook(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None and args.exc_type is not SystemExit:
            self._hook(args.exc_type, args.exc_value, args.exc_traceback)

    def _on_caught(self, error: BaseException) -> None:
        if self._showing:  # a fault while painting comes sixty times a second: one dialog is enough
            return
        self._showing = True
        try:
            self._show(error)
        finally:
            self._showing = False
