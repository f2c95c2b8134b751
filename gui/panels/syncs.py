"""Sync points: each moment at which the CPU waits for the device."""

from __future__ import annotations

import numpy as np
from PySide6.QtWidgets import QWidget

from core.figures.model import SyncTable
from core.kinds import CopyDirection, SyncKind
from gui import text
from gui.models.columns import Column, ColumnModel, Names
from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.widgets.table import TableBox


class SyncsPanel(TableBox):
    """Uses the document's ``analysisChanged``; opening a row zooms to the wait."""

    def __init__(self, session: Session, document: Document) -> None:
        self._document = document
        self._shown: object = None
        super().__init__(ColumnModel([]), document.go_to_slice, name=document.tr("Sync points"))
        self.set_empty(self.tr("The figures are being worked out."))
        document.analysisChanged.connect(self.show_all)
        self.show_all()

    def show_all(self) -> None:
        """Show the figures when they are there."""
        analysis = self._document.analysis
        if analysis is None or analysis.figures is self._shown:
            return
        self._shown = analysis.figures
        syncs = analysis.figures.syncs
        self.model.replace(self._columns(syncs), syncs.slice_id)
        waited = int(syncs.wait_ns.sum())
        note = self.tr(
            "{count} {count|sync point|sync points}, {time} waited in all. Double-click a row to see the wait."
        )
        self.note.setText(text.counted(note, len(syncs), time=text.duration(waited)))
        if self._document.trace.has_device_work:
            self.set_empty(self.tr("The CPU never waits for the device in this trace."))
        else:
            self.set_empty(self.tr("No device work was recorded, so there is no device to wait for."))
        self.refresh()

    def _columns(self, t: SyncTable) -> list[Column]:
        trace, figures = self._document.trace, self._document.analysis
        assert figures is not None
        names = trace.slices.name_id
        steps = figures.figures.steps

        def named(ids: np.ndarray) -> Names:
            return Names(trace.strings, np.where(ids >= 0, names[np.maximum(ids, 0)], -1))

        step_names = np.where(t.step_id >= 0, steps.name_id[np.maximum(t.step_id, 0)], -1) if len(steps) else -1
        kinds = [self._kind(int(k)) for k in t.kind]
        directions = [_direction(int(d)) for d in t.direction]
        return [
            Column(self.tr("Call"), "name", named(t.slice_id)),
            Column(self.tr("Wait"), "ns", t.wait_ns, self.tr("Time in which the work waited for is not finished")),
            Column(self.tr("In the call"), "ns", trace.slices.dur_ns[t.slice_id]),
            Column(self.tr("Kind"), "text", kinds),
            Column(self.tr("Copy"), "text", directions),
            Column(self.tr("At"), "ns", t.wait_start_ns),
            Column(self.tr("Step"), "name", Names(trace.strings, np.broadcast_to(step_names, len(t)))),
            Column(self.tr("Operator"), "name", named(t.op_id)),
            Column(self.tr("Range"), "name", named(t.range_id)),
            Column(self.tr("Waits for"), "name", named(t.waited_id)),
        ]

    def _kind(self, kind: int) -> str:
        return {
            SyncKind.STREAM: self.tr("stream"),
            SyncKind.DEVICE: self.tr("device"),
            SyncKind.EVENT: self.tr("event"),
            SyncKind.MEMCPY: self.tr("blocking copy"),
            SyncKind.ALLOC: self.tr("allocation"),
        }[SyncKind(kind)]


def _direction(direction: int) -> str:
    names = {CopyDirection.HTOD: "HtoD", CopyDirection.DTOH: "DtoH", CopyDirection.DTOD: "DtoD"}
    return names.get(CopyDirection(direction), "")


def create(session: Session, document: Document | None) -> QWidget:
    """Make the panel."""
    assert document is not None
    return SyncsPanel(session, document)


PANEL = PanelSpec("syncs", "Sync points", "bottom", create)
