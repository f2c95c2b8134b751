"""Tables of the figures under the timeline: what all of them do, and the one of a `StatTable` by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from core.analysis import Analysis
from core.figures.model import Figures, StatTable
from core.kinds import DEVICE_WORK
from gui.models.columns import Column, ColumnModel
from gui.session import Document
from gui.widgets.same_name import show_per_step
from gui.widgets.sandwich import show_callers
from gui.widgets.stat_box import stat_columns
from gui.widgets.step_bars import StepBars
from gui.widgets.table import TableBox

BARS_PX, MOST_BARS_PX = 24, 220


@dataclass(frozen=True)
class Rows:
    """What a table shows of an analysis: columns, the slice of each row (-1: none), and a note on the line above.

    ``empty`` says what is missing where there are no rows, ``advice`` how to get it. ``by_name``: a row is all slices
    of the name of its slice, so that their time per step can be shown.
    """

    columns: Sequence[Column]
    slices: Sequence[int] | np.ndarray
    note: str = ""
    empty: str = ""
    advice: str = ""
    by_name: bool = False


class FiguresTable(TableBox):
    """Uses the document's ``analysisChanged``: says that the figures are coming, then shows them, once per analysis.

    Parameters
    ----------
    document
        Whose analysis is shown.
    rows
        Makes the table of an analysis.
    name
        What the table is called.
    part
        The part of an analysis that it shows: the table is made again when this is another object.
    on_open
        Gets the slice of the row that was opened; None zooms to it.
    """

    offers_callers = True

    def __init__(
        self,
        document: Document,
        rows: Callable[[Analysis], Rows],
        *,
        name: str,
        part: Callable[[Analysis], object] = lambda analysis: analysis.figures,
        on_open: Callable[[int], None] | None = None,
    ) -> None:
        self._document, self._rows, self._part = document, rows, part
        self._shown: object = None
        self._whole_names = False
        super().__init__(ColumnModel([]), on_open or document.go_to_slice, name=name)
        self.bars = StepBars(BARS_PX)
        self.bars.setMaximumWidth(MOST_BARS_PX)
        self.bars.opened.connect(document.go_to_slice)
        self.top.insertWidget(self.top.count() - 1, self.bars)
        self.bars.hide()
        self.table.row_actions = self._row_actions
        self.table.selectionModel().currentRowChanged.connect(lambda now, _before: self._row_chosen(now.row()))
        document.when_analysed(self.show_all)
        self.show_all()

    def show_all(self) -> None:
        """Show the figures when they are there."""
        analysis = self._document.analysis
        if analysis is None:
            failed = self._document.analysis_error is not None
            waiting = self.tr("The figures are being worked out.")
            self.set_empty(self.tr("There are no figures: the diagnosis failed.") if failed else waiting)
            return
        if self._part(analysis) is self._shown:
            return
        self._shown = self._part(analysis)
        self.show_rows(self._rows(analysis))

    def show_rows(self, rows: Rows) -> None:
        """Show these rows, or say why there are none."""
        self._whole_names = rows.by_name
        self.bars.hide()
        self.model.replace(rows.columns, rows.slices)
        self.say(rows.note)
        self.set_empty(rows.empty, rows.advice)
        self.refresh()

    def _row_actions(self, row: int) -> list[tuple[str, Callable[[], object]]]:
        """What a row's menu offers: where calls on a thread stand behind it, who makes them and what they call."""
        slice_id, slices = self.model.slice_of(row), self._document.trace.slices
        if not self.offers_callers or slice_id < 0 or int(slices.kind[slice_id]) in DEVICE_WORK:
            return []
        show = partial(show_callers, self, self._document, slice_id, self.note.set_text, self.note.full_text())
        return [(self.tr("Callers and callees"), show)]

    def _row_chosen(self, row: int) -> None:
        """Show the time per step of what the row stands for."""
        slice_id = self.model.slice_of(row) if self._whole_names else -1
        shown = show_per_step(self.bars, self._document, slice_id)
        self.bars.setVisible(shown)
        self.note.set_text(self.bars.summary() if shown else self._words)


class StatPanel(FiguresTable):
    """One `StatTable`, by name; opening a row zooms to the slowest slice of that name.

    Parameters
    ----------
    document
        Whose figures are shown.
    pick
        The table to show, of the figures.
    name, note, empty, advice
        Words: of the table, of what a row does, and for a table without rows.
    device_only
        The rows are device work, whose host times say nothing.
    """

    def __init__(
        self,
        document: Document,
        pick: Callable[[Figures], StatTable],
        *,
        name: str,
        note: str,
        empty: str,
        advice: str = "",
        device_only: bool = False,
    ) -> None:
        def rows(analysis: Analysis) -> Rows:
            stats = pick(analysis.figures)
            columns = stat_columns(document.trace, stats, device_only=device_only)
            return Rows(columns, stats.first_slice, note, empty, advice, by_name=True)

        super().__init__(document, rows, name=name)
