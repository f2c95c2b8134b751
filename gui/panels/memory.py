"""Memory: what is in use over time per device, and who allocates it for how long."""

from __future__ import annotations

from functools import partial

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QScrollArea, QVBoxLayout, QWidget

from core.device_words import device_word
from core.figures.allocations import (
    UNKNOWN,
    AllocatedBy,
    Allocations,
    allocated_by,
    allocations,
    in_use,
    least_per_step,
)
from core.figures.lookup import outermost_op
from core.tables import I64
from gui import jobs, text
from gui.models.columns import Column, ColumnModel
from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.widgets.charts import LineChart
from gui.widgets.choice import Choice
from gui.widgets.empty import EmptyState
from gui.widgets.labels import Elided, restyle
from gui.widgets.table import TableBox

MOST = 500
FEWEST_STEPS = 3  # of fewer nobody can say how memory goes from step to step
LOW_PX, CHART_PX, LOW_CHART_PX = 300, 72, 48
ABOUT = 20  # a click on the curve shows a twentieth of it


class MemoryPanel(QWidget):
    """The curves come from the trace alone; the tables from a job. Opening a row zooms to what ran then."""

    def __init__(self, session: Session, document: Document) -> None:
        super().__init__()
        self._session, self._document = session, document
        self._titles: list[tuple[Elided, str, I64, I64]] = []
        self._found: tuple[Allocations, AllocatedBy] | None = None
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 6, 0, 0)
        box.setSpacing(2)
        m = document.trace.memory
        if not len(m):
            box.setContentsMargins(0, 0, 0, 0)
            words = self.tr("No memory events were recorded.")
            box.addWidget(EmptyState(words, self.tr("Record with profile_memory=True.")))
            return
        self._charts = QWidget()
        self._charts.setObjectName("scrolled")
        self._side_by_side = QBoxLayout(QBoxLayout.Direction.TopToBottom, self._charts)
        self._side_by_side.setContentsMargins(16, 0, 16, 0)
        devices = np.unique(m.device).tolist()
        for device in sorted(devices, key=lambda d: (d < 0, d)):  # the devices, then the CPU
            self._add_chart(self._side_by_side, device)
        self._scroll = QScrollArea()
        self._scroll.setWidgetResizable(True)
        self._scroll.setWidget(self._charts)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        box.addWidget(self._scroll)
        self.table = TableBox(ColumnModel([]), document.go_to_slice, name=self.tr("Allocations"))
        self.table.set_empty(self.tr("Who allocated it is being worked out."))
        self.group = Choice(
            self.tr("What the rows stand for"),
            (self.tr("Largest allocations"), False),
            (self.tr("By operator"), True),
            on_choice=self._show_table,
        )
        self.table.top.insertWidget(1, self.group)
        box.addWidget(self.table, 1)
        trace = document.trace
        jobs.run(
            self,
            lambda progress: (allocations(trace), allocated_by(trace)),
            self._came,
            session.raise_error,
            key=f"memory-{id(self)}",
        )
        document.when_analysed(self._say_steps)
        self._say_steps()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Curves take half of the height at most; in a low panel two of them stand side by side."""
        super().resizeEvent(event)
        if not self._titles:
            return
        height, low = event.size().height(), event.size().height() < LOW_PX and len(self._titles) == 2
        way = QBoxLayout.Direction.LeftToRight if low else QBoxLayout.Direction.TopToBottom
        self._side_by_side.setDirection(way)
        for chart in self._charts.findChildren(LineChart):
            chart.setMinimumHeight(LOW_CHART_PX if height < LOW_PX else CHART_PX)
        self._side_by_side.activate()
        self._scroll.setFixedHeight(min(self._charts.sizeHint().height() + 2, max(height // 2, LOW_CHART_PX + 24)))

    def _device(self, device: int) -> str:
        return self.tr("CPU") if device < 0 else f"{device_word(self._document.trace, device)} {device}"

    def _add_chart(self, box: QBoxLayout, device: int) -> None:
        m = self._document.trace.memory
        times, used, total = in_use(self._document.trace, device)
        if not len(times):
            return
        words = self.tr("{device}: peak {peak} allocated")
        if not total:
            words = self.tr("{device}: at most {peak} allocated since the recording began")
        words = words.format(device=self._device(device), peak=text.size(int(used.max())))
        reserved = m.reserved_bytes[(m.device == device) & (m.allocated_bytes >= 0)] if total else np.zeros(0, np.int64)
        second = reserved if len(reserved) == len(times) and int(reserved.max()) > 0 else None
        if second is not None:
            words = self.tr("{words}, {size} reserved (line above)").format(
                words=words, size=text.size(int(second.max()))
            )
        title = Elided(words, "dim", at_end=True)
        self._titles.append((title, words, times, used))
        chart = LineChart()
        chart.show_values(times, used, text.size, second, self._document.trace.extent_ns)
        chart.picked.connect(partial(self._zoom, chart))
        holder = QVBoxLayout()
        holder.setContentsMargins(0, 2, 0, 2)
        holder.setSpacing(0)
        holder.addWidget(title)
        holder.addWidget(chart)
        box.addLayout(holder)

    def _zoom(self, chart: LineChart, time_ns: float) -> None:
        first, last = self._document.trace.extent_ns
        half = max((last - first) / ABOUT / 2, 1.0)
        self._document.zoom_to(time_ns - half, time_ns + half)

    def _say_steps(self) -> None:
        """How the least memory in use goes from step to step: what grows there is never given back."""
        analysis = self._document.analysis
        if analysis is None:
            return
        for title, words, times, used in self._titles:
            least = least_per_step(analysis.figures, times, used)
            least = least[least >= 0]
            if len(least) < FEWEST_STEPS or int(least.min()) == int(least.max()):
                continue
            change = int(least[-1] - least[0]) // (len(least) - 1)
            grows = len(least) > FEWEST_STEPS and bool((np.diff(least)[1:] > 0).all())
            said = self.tr("least in a step {low} to {high}").format(
                low=text.size(int(least.min())), high=text.size(int(least.max()))
            )
            if grows:
                said = self.tr("the least in a step grows, by {size} a step").format(size=text.size(change))
            restyle(title, "role", "warn" if grows else "dim")
            title.set_text(f"{words} · {said}")

    def _came(self, found: tuple[Allocations, AllocatedBy]) -> None:
        self._found = found
        self._show_table()

    def _show_table(self) -> None:
        if self._found is None:
            return
        if self.group.currentData():
            self._show_operators(self._found[1])
        else:
            self._show_allocations(self._found[0])
        self.table.refresh()

    def _show_allocations(self, found: Allocations) -> None:
        m, trace = self._document.trace.memory, self._document.trace
        chosen = np.argsort(-m.bytes[found.row], kind="stable")[:MOST]
        rows, places = found.row[chosen], found.slice_id[chosen]
        outer = outermost_op(trace, np.maximum(places, 0)) if len(trace.slices) else places
        outer = np.where(places >= 0, outer, -1)
        columns = [
            Column(
                self.tr("Allocated in"),
                "name",
                [trace.name(i) if i >= 0 else "" for i in places.tolist()],
                self.tr("The operator or call that ran at that moment"),
            ),
            Column(
                self.tr("Under"),
                "text",
                [trace.name(i) if i >= 0 else "" for i in outer.tolist()],
                self.tr("The outermost operator around it"),
            ),
            Column(self.tr("Size"), "bytes", m.bytes[rows]),
            Column(self.tr("Device"), "text", [self._device(d) for d in m.device[rows].tolist()]),
            Column(self.tr("Time"), "ns", m.time_ns[rows], self.tr("From the trace's begin")),
        ]
        if (found.life_ns != UNKNOWN).any():
            held = self.tr("From here until it was freed")
            columns.append(Column(self.tr("Held for"), "life", found.life_ns[chosen], held))
        self.table.say(
            self.tr("The largest {count} of {all} allocations.").format(
                count=text.count(len(rows)), all=text.count(len(found))
            )
        )
        self.table.model.replace(columns, places)
        self.table.set_empty(self.tr("Nothing was allocated while the trace was recorded."))

    def _show_operators(self, found: AllocatedBy) -> None:
        trace = self._document.trace
        outside = self.tr("(outside any operator)")
        names = [trace.strings[i] if i >= 0 else outside for i in found.name_id.tolist()]
        net = self.tr("Allocated minus freed by the operator itself: what it leaves behind")
        columns = [
            Column(self.tr("Operator"), "name", names, self.tr("The innermost operator that ran at that moment")),
            Column(self.tr("Allocations"), "count", found.count),
            Column(self.tr("Allocated"), "bytes", found.bytes),
            Column(self.tr("Net"), "bytes", found.net_bytes, net),
            Column(self.tr("Largest"), "bytes", found.largest_bytes),
            Column(self.tr("Device"), "text", [self._device(d) for d in found.device.tolist()]),
        ]
        self.table.say(self.tr("Double-click a row to see its largest allocation."))
        self.table.model.replace(columns, found.example)


def create(session: Session, document: Document | None) -> QWidget:
    """Make the panel."""
    assert document is not None
    return MemoryPanel(session, document)


PANEL = PanelSpec(
    "memory", "Memory", "bottom", create, tip="Allocated memory over time, who allocates it, and for how long"
)
