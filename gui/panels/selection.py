"""Statistics of the selected stretch of time."""

from __future__ import annotations

from functools import partial

import numpy as np
from PySide6.QtWidgets import QVBoxLayout, QWidget

from core.device_words import devices_word
from core.figures.lookup import view_of
from gui import jobs, text
from gui.models import range_stats
from gui.models.columns import Column, ColumnModel, Names
from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.widgets.labels import label
from gui.widgets.table import TableBox


class SelectionPanel(QWidget):
    """Uses the document's ``selectionChanged``; the figures come from a job, the newest selection wins."""

    def __init__(self, session: Session, document: Document) -> None:
        super().__init__()
        self._session, self._document = session, document
        self._shown: object = ()
        self.facts = label("", "", wrap=True)
        self.facts.setContentsMargins(16, 8, 16, 0)
        self.table = TableBox(ColumnModel([]), document.go_to_slice, name=self.tr("What ran in the selection"))
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(2)
        box.addWidget(self.facts)
        box.addWidget(self.table, 1)
        document.selectionChanged.connect(self.show_range)
        document.when_analysed(self._analysis_came)
        self.show_range()

    def _analysis_came(self) -> None:
        self._shown = ()
        self.show_range()

    def show_range(self) -> None:
        """Work out the figures of the selected range."""
        chosen = self._document.selected_range
        if chosen == self._shown:
            return
        self._shown = chosen
        if chosen is None:
            self.facts.hide()
            self.table.model.replace([])
            self.table.set_empty(
                self.tr("No stretch of time is selected."),
                self.tr(
                    "Drag along the time axis, or with Shift in the timeline. R selects the time of the selected slice."
                ),
            )
            self.table.refresh()
            return
        analysis = self._document.analysis
        figures = analysis.figures if analysis is not None else None
        trace = self._document.trace
        jobs.run(
            self,
            lambda progress: range_stats.compute(trace, figures, chosen.start_ns, chosen.end_ns, chosen.tracks),
            partial(self._came, chosen),
            self._session.raise_error,
            key=f"selection-{id(self)}",
        )

    def _came(self, chosen: object, stats: range_stats.RangeStats) -> None:
        if chosen != self._shown:
            return
        self.facts.setText(self._words(stats))
        self.facts.show()
        t = stats.totals
        columns = [
            Column(self.tr("Name"), "name", Names(self._document.trace.strings, t.name_id)),
            Column(self.tr("Kind"), "text", [text.kind_name(int(k)) for k in t.kind]),
            Column(self.tr("Calls"), "count", t.calls),
            Column(self.tr("Self"), "ns", t.self_ns),
            Column(self.tr("Total"), "ns", t.total_ns),
            Column(self.tr("Mean"), "ns", t.total_ns // np.maximum(t.calls, 1)),
        ]
        self.table.model.replace(columns, t.longest)
        self.table.set_empty(self.tr("Nothing ran in it."))
        self.table.refresh()

    def _words(self, stats: range_stats.RangeStats) -> str:
        trace = self._document.trace
        parts = [self.tr("{time} long").format(time=text.duration(stats.wall_ns))]
        if stats.busy_ns is not None or not trace.has_device_work:  # else no row of a device is among the chosen
            busy = text.percent(100 * stats.busy_ns / stats.wall_ns) if stats.busy_ns is not None else text.unknown()
            parts.append(self.tr("{device} busy {share}").format(device=devices_word(trace), share=busy))
        parts += [self._waits(stats), text.counted(self.tr("{count} {count|slice|slices}"), stats.slices)]
        if stats.copies:
            parts.append(
                text.counted(
                    self.tr("{count} {count|copy|copies}, {bytes} at {rate}"),
                    stats.copies,
                    bytes=text.size(stats.copy_bytes),
                    rate=text.rate(stats.copy_bytes, stats.copy_ns),
                )
            )
        return " · ".join(parts)

    def _waits(self, stats: range_stats.RangeStats) -> str:
        """Waits in it; where no call of a known runtime was recorded, nobody knows of any."""
        analysis = self._document.analysis
        summary = analysis.figures.summary if analysis is not None else None
        unsure = not stats.syncs and summary is not None and summary.sync_points_per_step is None
        if unsure and not view_of(self._document.trace).saw_calls:
            return self.tr("waits unknown")
        if not stats.syncs and stats.sync_wait_ns is not None:
            return self.tr("no sync points")
        return text.counted(
            self.tr("waits {time} in {count} {count|sync point|sync points}"),
            stats.syncs,
            time=text.duration(stats.sync_wait_ns),
        )


def create(session: Session, document: Document | None) -> QWidget:
    """Make the panel."""
    assert document is not None
    return SelectionPanel(session, document)


PANEL = PanelSpec("selection", "Selection", "bottom", create, tip="What ran in the stretch of time that you select")
