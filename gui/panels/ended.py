"""A line above the trace of a script that failed: how it ended, that no more is shown, and the way to its error."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from core.errors import TraceError
from core.own_run import failed_words
from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.staying import RUN
from gui.widgets.labels import Elided, button

if TYPE_CHECKING:
    from core.run_folder import RunRecord

MOST_FRAMES = 6  # of a traceback, the innermost ones


class EndedBar(QFrame):
    """Hidden for every trace but that of a run whose script failed."""

    def __init__(self, session: Session, document: Document) -> None:
        super().__init__()
        self.setObjectName("band")
        run = document.run
        how = failed_words(run) if run is not None else ""
        if run is None or not how:
            self.hide()
            return
        words = self.tr("{how} What was recorded until then is shown.").format(how=how)
        self.words = Elided(words, "wait")
        self.show_error = button(self.tr("Show the error"), partial(_show, session, run), "link")
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 4, 16, 4)
        row.addWidget(self.words, 1)
        row.addWidget(self.show_error)
        self.setAccessibleName(words)


def _show(session: Session, run: RunRecord) -> None:
    """The page of the run, where it is still this one's; else what the run has kept of its error."""
    capture: Any = session.ask("capture")
    if capture is not None and capture.result is not None and capture.result.folder == run.folder:
        session.pageRequested.emit(RUN)
        return
    tr, failure = QCoreApplication.translate, run.failure
    frames = [f"{Path(file).name}:{line} · {function}" for file, line, function, _ in failure.frames[-MOST_FRAMES:]]
    output = tr("ended", "The whole output is in {file}.").format(file=run.folder / "output.log")
    title = failure.title or failed_words(run)
    session.raise_error(TraceError(title, "\n".join(frames), " ".join(part for part in (failure.hint, output) if part)))


def create(session: Session, document: Document | None) -> QWidget:
    """Make the line."""
    assert document is not None
    return EndedBar(session, document)


PANEL = PanelSpec("ended", "How the run ended", "band", create)
