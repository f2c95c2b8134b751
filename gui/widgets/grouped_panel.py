"""A table of figures by name that can be grouped more finely; what has to be read from the file comes from a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QProgressBar

from core.analysis import Analysis
from core.errors import TraceError
from gui import jobs
from gui.session import Document, Session
from gui.widgets.choice import Choice
from gui.widgets.labels import button
from gui.widgets.stat_panel import FiguresTable, Rows

Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Grouping:
    """One way to group: its words, and what makes its rows.

    ``preview`` (GUI thread, fast) is shown at once. ``make`` runs in a worker thread, with progress that calls it off;
    until it is done, and where it fails, the rows that were there stay.
    """

    title: str
    preview: Callable[[Analysis], Rows] | None = None
    make: Callable[[Analysis, Progress], Rows] | None = None


class GroupedPanel(FiguresTable):
    """`FiguresTable` with a choice of groupings.

    Parameters
    ----------
    groupings
        In the order of the list; the first one, which is shown at the start, has a preview.
    """

    def __init__(self, session: Session, document: Document, groupings: Sequence[Grouping], *, name: str) -> None:
        self._session, self._groupings = session, tuple(groupings)
        self._job: jobs.Job | None = None
        self._ready, self._at = False, 0
        super().__init__(document, self._first, name=name)
        words = ((g.title, k) for k, g in enumerate(groupings))
        self.group = Choice(self.tr("What the rows stand for"), *words, on_choice=self._choice_made)
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setFixedWidth(80)
        self.bar.setAccessibleName(self.tr("Reading the file"))
        self.stop = button(self.tr("Stop"), self.cancel, "flat", self.tr("Stop reading the file"))
        for at, widget in enumerate((self.group, self.bar, self.stop)):
            self.top.insertWidget(1 + at, widget)
        self._busy(False)
        self._ready = True
        self.show_all()

    def _first(self, analysis: Analysis) -> Rows:
        make = self._groupings[0].preview
        assert make is not None
        return make(analysis)

    def show_all(self) -> None:
        """Show the figures when they are there, and have the rest worked out."""
        before = self._shown
        if self._ready:
            super().show_all()
        if self._shown is not before and self.model.total:
            self._start()

    def _choice_made(self) -> None:
        if self.group.currentIndex() != self._at:
            self._start()

    def _start(self) -> None:
        analysis, grouping = self._document.analysis, self._groupings[self.group.currentIndex()]
        if self._job is not None:
            self._job.cancel()
        self._busy(False)
        if analysis is None:
            return
        if grouping.preview is not None:
            self._show(grouping, grouping.preview(analysis))
        make = grouping.make
        if make is None:
            return
        self._busy(True)
        self._job = jobs.run(
            self,
            lambda progress: make(analysis, progress),
            partial(self._came, grouping),
            self._failed,
            on_progress=lambda fraction, _words: self.bar.setValue(round(100 * fraction)),
            key=f"group-{id(self)}",
        )

    def cancel(self) -> None:
        """Stop reading the file; what is shown stays."""
        if self._job is not None:
            self._job.cancel()
        self._busy(False)
        self.group.setCurrentIndex(self._at)

    def _busy(self, busy: bool) -> None:
        self.bar.setVisible(busy)
        self.stop.setVisible(busy)
        self.bar.setValue(0)

    def _came(self, grouping: Grouping, rows: Rows) -> None:
        self._busy(False)
        self._show(grouping, rows)

    def _show(self, grouping: Grouping, rows: Rows) -> None:
        self._at = self._groupings.index(grouping)
        self.table.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.DescendingOrder)  # other columns
        self.show_rows(rows)

    def _failed(self, error: BaseException) -> None:
        self.cancel()
        if isinstance(error, TraceError):
            self.say(str(error))
        else:
            self._session.raise_error(error)
