"""Memory: allocated bytes over time per device, and the largest allocations."""

from __future__ import annotations

import numpy as np
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from gui import text
from gui.models.columns import Column, ColumnModel
from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.widgets.charts import LineChart
from gui.widgets.empty import EmptyState
from gui.widgets.labels import label
from gui.widgets.table import TableBox

MOST = 500


class MemoryPanel(QWidget):
    """Built from the trace alone; opening a row zooms to what ran when it was allocated."""

    def __init__(self, session: Session, document: Document) -> None:
        super().__init__()
        self._document = document
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 6, 0, 0)
        box.setSpacing(2)
        m = document.trace.memory
        if not len(m):
            box.setContentsMargins(0, 0, 0, 0)
            words = self.tr("No memory events were recorded.")
            box.addWidget(EmptyState(words, self.tr("Record with profile_memory=True.")))
            return
        for device in np.unique(m.device):
            self._add_chart(box, int(device))
        self._add_table(box)

    def _add_chart(self, box: QVBoxLayout, device: int) -> None:
        m = self._document.trace.memory
        mine = (m.device == device) & (m.allocated_bytes >= 0)
        if int(mine.sum()) < 2:
            return
        name = self.tr("CPU") if device < 0 else self.tr("GPU {index}").format(index=device)
        peak = int(m.allocated_bytes[mine].max())
        words = self.tr("Allocated on {device}, peak {peak}").format(device=name, peak=text.size(peak))
        title: QLabel = label(words, "dim")
        title.setContentsMargins(16, 2, 16, 0)
        chart = LineChart()
        chart.show_values(m.time_ns[mine], m.allocated_bytes[mine], text.size)
        holder = QVBoxLayout()
        holder.setContentsMargins(16, 0, 16, 4)
        holder.addWidget(chart)
        box.addWidget(title)
        box.addLayout(holder)

    def _add_table(self, box: QVBoxLayout) -> None:
        m, trace = self._document.trace.memory, self._document.trace
        rows = np.flatnonzero(m.bytes > 0)
        rows = rows[np.argsort(-m.bytes[rows], kind="stable")[:MOST]]
        devices = [self.tr("CPU") if d < 0 else self.tr("GPU {index}").format(index=int(d)) for d in m.device[rows]]
        places = self._slices_at(rows)
        names = [trace.name(i) if i >= 0 else "" for i in places]
        columns = [
            Column(self.tr("Allocated in"), "name", names, self.tr("The operator or call that ran at that moment")),
            Column(self.tr("Size"), "bytes", m.bytes[rows]),
            Column(self.tr("Device"), "text", devices),
            Column(self.tr("Time"), "ns", m.time_ns[rows], self.tr("From the trace's begin")),
        ]
        note = self.tr("The largest {count} of {all} allocations.").format(
            count=text.count(len(rows)), all=text.count(int((m.bytes > 0).sum()))
        )
        model = ColumnModel(columns, places)
        box.addWidget(TableBox(model, self._document.go_to_slice, name=self.tr("Largest allocations"), note=note), 1)

    def _slices_at(self, rows: np.ndarray) -> list[int]:
        from core.kinds import TrackKind
        from gui.models.slice_facts import at_time

        trace, m, found = self._document.trace, self._document.trace.memory, []
        tracks: dict[int, int] = {}
        for row in rows:
            thread = int(m.thread_id[row])
            if thread >= 0 and thread not in tracks:
                tracks[thread] = trace.track_of_thread(thread, TrackKind.CPU_OPS)
            found.append(at_time(trace, tracks.get(thread, -1), int(m.time_ns[row])))
        return found


def create(session: Session, document: Document | None) -> QWidget:
    """Make the panel."""
    assert document is not None
    return MemoryPanel(session, document)


PANEL = PanelSpec("memory", "Memory", "bottom", create, tip="Allocated memory over time, and the largest allocations")
