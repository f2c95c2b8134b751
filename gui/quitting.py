"""A window that is closed while a script runs: the script would end with it, so the user is asked first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMessageBox, QWidget

from gui.said import spoken

if TYPE_CHECKING:
    from gui.session import Session

RUN_PAGE = "output"


def run_is_on(session: Session) -> bool:
    """Whether a script runs that was started here."""
    capture: Any = session.ask("capture")
    return capture is not None and capture.running


def ask(window: QWidget) -> bool:
    """Ask whether the script that runs may be ended; tests put another function in this one's place."""
    tr = QCoreApplication.translate
    box = QMessageBox(
        QMessageBox.Icon.NoIcon, tr("quitting", "Quit"), tr("quitting", "A script is running. End it and quit?")
    )
    box.setParent(window, box.windowFlags())
    box.setInformativeText(tr("quitting", "What it has recorded until now may be lost."))
    end = box.addButton(tr("quitting", "End it and quit"), QMessageBox.ButtonRole.DestructiveRole)
    stay = box.addButton(tr("quitting", "Cancel"), QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(stay)
    box.setEscapeButton(stay)
    box.exec()
    return box.clickedButton() is end


def may_close(window: QWidget, session: Session) -> bool:
    """Whether a user who closes the window means it; at the end of the desktop's session nobody is asked."""
    app = QCoreApplication.instance()
    ends = isinstance(app, QGuiApplication) and app.isSavingSession()
    return ends or not run_is_on(session) or ask(window)


def say_hidden(session: Session) -> None:
    """The page of a run was closed, the run was not."""
    words = QCoreApplication.translate("quitting", "The script runs on. Its output: menu, View, Pages, Run.")
    session.set_status(words)


def say_ended(session: Session) -> None:
    """A run whose page is hidden has ended: without a trace, which would open, nothing else tells."""
    capture: Any = session.ask("capture")
    result = capture.result if capture is not None else None
    if result is not None and result.trace is None:
        session.set_status(spoken(result.words))
