"""A run that goes on by itself takes no page from under the user: what he does elsewhere stays in front."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication

if TYPE_CHECKING:
    from gui.session import Document, Session
    from profiling.result import RunResult

RUN, ROUNDS = "output", "iterations"  # who looks at these waits for the run


def is_watched(session: Session, *pages: str) -> bool:
    """Whether the window shows one of these pages; where no window can tell, it does."""
    shown = session.ask("shown_page")
    return shown is None or shown in pages


def is_partial(result: RunResult) -> bool:
    """Whether a script failed before the steps were recorded that were to be."""
    wanted = result.manifest.get("spec", {}).get("schedule", {}).get("active", 0)
    recorded, rows = result.manifest.get("steps", {}).get("recorded") or (), result.manifest.get("traces") or [{}]
    return result.outcome == "failed" and (len(recorded) < max(wanted, 1) or bool(rows[0].get("left_out")))


def show_measured(session: Session, document: Document, number: int) -> None:
    """A round was measured: show the rounds to who waits for it, and tell who does not."""
    if session.current is document or is_watched(session, RUN, ROUNDS):
        session.pageRequested.emit(ROUNDS)
    else:
        words = QCoreApplication.translate("staying", "Round {number} is measured: menu, View, Pages, Rounds.")
        session.set_status(words.format(number=number))


def say_opened(session: Session, name: str) -> None:
    """The trace of a run was opened behind what is shown."""
    words = QCoreApplication.translate("staying", "{name} has ended: its trace is open in a tab of its own.")
    session.set_status(words.format(name=name))


def say_started(session: Session, name: str) -> None:
    """A run began behind what is shown."""
    words = QCoreApplication.translate("staying", "{name} runs now; its output is in the tab Run.")
    session.set_status(words.format(name=name))
