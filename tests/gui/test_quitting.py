"""A script that runs is not ended without a question, and its page only hides."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QApplication, QMessageBox

from gui import quitting
from gui.main_window import MainWindow
from gui.session import Document

ROOT = Path(__file__).resolve().parents[2]


class ByTheFrame(QCloseEvent):
    """As the desktop sends it when the user closes the window."""

    def spontaneous(self) -> bool:
        return True


@pytest.fixture
def capture(window: MainWindow) -> Any:
    """A run that is on, its page shown."""
    made: Any = window.session.ask("capture")
    window.show_page("output")
    made.run = SimpleNamespace(running=False)
    window.session.runChanged.emit()
    assert quitting.run_is_on(window.session)
    return made


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], list[int]]:
    """Answer the question; the list has an entry for each time it was asked."""

    def prepare(answer: bool) -> list[int]:
        asked: list[int] = []
        monkeypatch.setattr(quitting, "ask", lambda _window: asked.append(1) or answer)
        return asked

    return prepare


def closes(window: MainWindow) -> bool:
    event = ByTheFrame()
    window.closeEvent(event)
    return event.isAccepted()


def test_quitting_during_a_run_asks_and_a_no_keeps_all(window: MainWindow, capture: Any, answered: Any) -> None:
    asked = answered(False)
    window.run_command("quit")
    assert window.isVisible()
    assert not closes(window)
    assert len(asked) == 2


def test_a_yes_closes_the_window(window: MainWindow, capture: Any, answered: Any) -> None:
    asked = answered(True)
    window.run_command("quit")
    assert not window.isVisible()
    assert len(asked) == 1


def test_without_a_run_and_by_a_signal_nobody_is_asked(window: MainWindow, answered: Any) -> None:
    asked = answered(False)
    assert closes(window)
    capture: Any = window.session.ask("capture")
    capture.run = SimpleNamespace(running=False)
    assert window.close()  # as the application closes it when it is told to end
    assert asked == []


def test_at_the_end_of_the_session_nobody_is_asked(
    window: MainWindow, capture: Any, answered: Any, qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answered(False)
    monkeypatch.setattr(type(qapp), "isSavingSession", lambda _app: True)
    assert closes(window)
    assert asked == []


@pytest.mark.parametrize("end", [True, False])
def test_the_question_names_both_ways(window: MainWindow, capture: Any, end: bool) -> None:
    seen: list[str] = []

    def press() -> None:
        box = QApplication.activeModalWidget()
        assert isinstance(box, QMessageBox)
        seen.append(box.text())
        words = "End it and quit" if end else "Cancel"
        next(b for b in box.buttons() if b.text() == words).click()

    QTimer.singleShot(0, press)
    assert quitting.ask(window) is end
    assert seen == ["A script is running. End it and quit?"]


def test_the_page_of_a_run_that_is_on_only_hides(window: MainWindow, document: Document, capture: Any) -> None:
    window.show_page("output")
    page = window.pages["output"]
    window.run_command("close")
    assert window.session.current is document
    assert window._tab_of("output") < 0
    assert "runs on" in window.session.status
    assert quitting.run_is_on(window.session)
    window.show_page("output")
    assert window.pages["output"] is page and window._tab_of("output") >= 0
    window.run_command("close")
    capture.result = SimpleNamespace(trace=None, words="The script ended with an error.")
    window.session.runChanged.emit()
    assert window.session.status == "The script ended with an error."
    window.show_page("output")
    window.run_command("close")  # it is over: the page goes
    assert "output" not in window.pages


WINDOW = """
import os, signal, sys
from PySide6.QtCore import QTimer
from gui import app

make = app.make_window


def made():
    window = make()
    QTimer.singleShot(0, lambda: os.kill(os.getpid(), getattr(signal, sys.argv[1])))
    return window


app.make_window = made
app.QApplication.setQuitOnLastWindowClosed(False)
print("quit", app.run([]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals end a program at once there")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
@pytest.mark.usefixtures("signals_heard")
def test_a_signal_quits_in_good_order(name: str, tmp_path: Path) -> None:
    """Else a script that runs would leave no result."""
    homes = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"), str(tmp_path))
    env = {**os.environ, **homes, "QT_QPA_PLATFORM": "offscreen"}
    command = [sys.executable, "-c", WINDOW, name]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=100)
    assert (done.stdout.strip(), done.returncode) == ("quit 0", 0)


IDLE = """
import os, signal, subprocess, sys
from PySide6.QtCore import QCoreApplication, QTimer
from gui.app import listen

app = QCoreApplication([])
signal.signal(signal.SIGTERM, lambda *_: QTimer.singleShot(0, app.quit))
beat = listen(app)
other = subprocess.Popen([sys.executable, "-c", f"import os; os.kill({os.getpid()}, {int(signal.SIGTERM)})"])
app.exec()
print("quit")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals end a program at once there")
@pytest.mark.usefixtures("signals_heard")
def test_a_window_at_rest_hears_a_signal() -> None:
    """No Python runs in it that would see the signal by chance."""
    done = subprocess.run([sys.executable, "-c", IDLE], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "quit"
