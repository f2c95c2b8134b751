"""Two rounds beside each other: traces that are not open are opened first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from core.run_folder import RunRecord, read_run
from gui.session import Session

if TYPE_CHECKING:
    from gui.loop import Loop


class RoundsCompared(QObject):
    """Remembers which two are wanted until both are open; another wish takes the place of the last."""

    def __init__(self, session: Session, parent: QObject) -> None:
        super().__init__(parent)
        self._session = session
        self._loop: Loop | None = None
        self._wanted: tuple[RunRecord, ...] = ()
        self._numbers = (0, 0)
        session.documentsChanged.connect(self._look)
        session.openingEnded.connect(self._opening_ended)

    def compare(self, loop: Loop, numbers: tuple[int, int]) -> None:
        """Compare two rounds of the project that is looked at; what cannot be opened is told, and ends the wish."""
        found = [loop.project.get(number) if loop.project is not None else None for number in numbers]
        runs = [read_run(Path(one.run_folder)) if one is not None else None for one in found]
        self._loop, self._wanted = loop, tuple(run for run in runs if run is not None and run.trace is not None)
        whole, self._numbers = len(self._wanted) == len(numbers), numbers
        for number, run in zip(numbers, runs, strict=True):
            if run is None or loop.document_of(run) is None:
                loop.open_iteration(number)
        self._wanted = self._wanted if whole else ()
        self._look()

    def _opening_ended(self, path: str) -> None:
        """One that could not be opened, or was called off, ends the wish: a later one is not taken for it."""
        loop = self._loop
        for number, run in zip(self._numbers, self._wanted, strict=False):
            if loop is not None and str(run.trace) == path and loop.document_of(run) is None:
                self._wanted = ()
                words = self.tr(
                    "Rounds {before} and {after} are not compared: the trace of round {number} is not open."
                )
                before, after = self._numbers
                self._session.set_status(words.format(before=before, after=after, number=number))
                return

    def _look(self) -> None:
        if self._loop is None or not self._wanted:
            return
        documents = [self._loop.document_of(run) for run in self._wanted]
        if all(document is not None for document in documents):
            self._wanted = ()
            self._session.ask("compare_documents", *documents)
