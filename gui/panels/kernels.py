"""Kernels, copies and memsets by name, or finer: by launch, by operator; with how they were launched."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from core.analysis import Analysis
from core.figures.grouping import device_work_by_operator
from core.figures.launches import Launches, by_launch, launch_columns, read_launches
from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.widgets.grouped_panel import GroupedPanel, Grouping, Progress
from gui.widgets.stat_box import stat_columns
from gui.widgets.stat_groups import grouped_columns, launch_columns_of
from gui.widgets.stat_panel import Rows


class KernelsPanel(GroupedPanel):
    """The launches are read from the file once, in a worker thread, and kept."""

    def __init__(self, session: Session, document: Document) -> None:
        self._trace, tr = document.trace, document.tr
        self._launches: Launches | None = None
        self._note = tr("Double-click a row to see its slowest one.")
        groupings = (
            Grouping(tr("By name"), preview=self._by_name, make=self._with_launches),
            Grouping(tr("By name and launch"), make=self._by_launch),
            Grouping(tr("By name and operator"), make=self._by_operator),
        )
        super().__init__(session, document, groupings, name=tr("Kernels"))

    def _by_name(self, analysis: Analysis) -> Rows:
        columns = stat_columns(self._trace, analysis.figures.kernels, device_only=True)
        empty = self._document.tr("No device work was recorded.")
        advice = self._document.tr("Record with ProfilerActivity.CUDA, or your accelerator's activity.")
        return Rows(columns, analysis.figures.kernels.first_slice, self._note, empty, advice, by_name=True)

    def _read(self, progress: Progress) -> Launches:
        if self._launches is None:
            self._launches = read_launches(self._trace, progress)
        return self._launches

    def _with_launches(self, analysis: Analysis, progress: Progress) -> Rows:
        stats = analysis.figures.kernels
        found = launch_columns(self._trace, self._read(progress), stats)
        columns = stat_columns(self._trace, stats, device_only=True) + launch_columns_of(self._trace, stats, found)
        return Rows(columns, stats.first_slice, self._note, by_name=True)

    def _by_launch(self, analysis: Analysis, progress: Progress) -> Rows:
        launches = self._read(progress)
        if not launches.shapes:
            return self._by_name(analysis)
        grouped = by_launch(self._trace, launches)
        found = launch_columns(self._trace, launches, grouped.stats, grouped.label_id)
        columns = stat_columns(self._trace, grouped.stats, device_only=True)
        return Rows(
            columns + launch_columns_of(self._trace, grouped.stats, found), grouped.stats.first_slice, self._note
        )

    def _by_operator(self, analysis: Analysis, progress: Progress) -> Rows:
        grouped = device_work_by_operator(self._trace, progress)
        title = self._document.tr("Operator")
        tip = self._document.tr("The innermost operator that launched it")
        columns = grouped_columns(self._trace, grouped, title, tip, device_only=True)
        return Rows(columns, grouped.stats.first_slice, self._note)


def create(session: Session, document: Document | None) -> QWidget:
    """Make the panel."""
    assert document is not None
    return KernelsPanel(session, document)


PANEL = PanelSpec(
    "kernels", "Kernels", "bottom", create, tip="Kernels, copies and memsets on the device, and how they were launched"
)
