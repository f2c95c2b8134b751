"""Sync points: each moment at which the CPU waits for the device."""

from __future__ import annotations

import numpy as np
from PySide6.QtWidgets import QWidget

from core.analysis import Analysis
from core.card_lines import CardLines
from core.figures.lookup import view_of
from core.figures.model import SyncTable
from core.kinds import CopyDirection, SyncKind
from core.source import SourceFinder
from core.source_frames import parse_frame
from core.suggestions import SourceRef
from gui import text
from gui.models.columns import Column, Names
from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.widgets.stat_panel import FiguresTable, Rows


class SyncsPanel(FiguresTable):
    """Opening a row zooms to the wait."""

    def __init__(self, session: Session, document: Document) -> None:
        super().__init__(document, self._syncs, name=document.tr("Sync points"))

    def _syncs(self, analysis: Analysis) -> Rows:
        syncs = analysis.figures.syncs
        words = self.tr(
            "{count} {count|sync point|sync points}, {time} waited in all. Double-click a row to see the wait."
        )
        note = text.counted(words, len(syncs), time=text.duration(int(syncs.wait_ns.sum())))
        trace = self._document.trace
        view = view_of(trace)
        if trace.has_device_work and not view.saw_calls and len(view.host_calls):
            empty = (
                self.tr("The calls of this device's runtime are not known, so what the CPU waits for is unknown."),
                "",
            )
        elif trace.has_device_work and not view.saw_calls:
            empty = self.tr("No calls of the device's runtime were recorded, so what the CPU waits for is unknown."), ""
        elif trace.has_device_work:
            empty = self.tr("The CPU never waits for the device in this trace."), ""
        else:
            empty = (
                self.tr("No device work was recorded, so there is no device to wait for."),
                self.tr("Record with ProfilerActivity.CUDA, or your accelerator's activity."),
            )
        return Rows(self._columns(analysis, syncs), syncs.slice_id, note, *empty)

    def _columns(self, analysis: Analysis, t: SyncTable) -> list[Column]:
        trace, steps = self._document.trace, analysis.figures.steps
        names = trace.slices.name_id

        def named(ids: np.ndarray) -> Names:
            return Names(trace.strings, np.where(ids >= 0, names[np.maximum(ids, 0)], -1))

        step_names = np.where(t.step_id >= 0, steps.name_id[np.maximum(t.step_id, 0)], -1) if len(steps) else -1
        code = self._code(t, CardLines(trace, analysis.suggestions))
        columns = [
            Column(self.tr("Call"), "name", named(t.slice_id), self.tr("The call in which the CPU waits")),
            Column(self.tr("Wait"), "ns", t.wait_ns, self.tr("Time in which the work waited for is not finished")),
            Column(self.tr("In your code"), "text", code, self.tr("The innermost function of your own around it")),
            Column(self.tr("Operator"), "name", named(t.op_id), self.tr("The outermost operator that makes the call")),
            Column(self.tr("Waits for"), "name", named(t.waited_id), self.tr("The device work that releases the CPU")),
            Column(self.tr("Step"), "name", Names(trace.strings, np.broadcast_to(step_names, len(t)))),
            Column(self.tr("Start"), "ns", t.wait_start_ns, self.tr("When the wait begins, from the trace's begin")),
            Column(self.tr("In the call"), "ns", trace.slices.dur_ns[t.slice_id], self.tr("How long the call takes")),
            Column(self.tr("Kind"), "text", [self._kind(int(k)) for k in t.kind], self.tr("What is waited for")),
            Column(self.tr("Copy"), "text", [_direction(int(d)) for d in t.direction], self.tr("H: host, D: device")),
            Column(self.tr("Range"), "name", named(t.range_id), self.tr("The innermost range around it")),
        ]
        return [c for c in columns if c.form not in ("name", "text") or any(c.values[k] for k in range(len(t)))]

    def _code(self, t: SyncTable, lines: CardLines) -> list[str]:
        """Where the user's own code waits, as far as was recorded: the exact line where a card has it."""
        trace = self._document.trace
        finder = self._document.finder or SourceFinder(trace)
        found = finder.user_frames(t.slice_id).tolist() if len(t) else []
        if max(found, default=0) < 0:  # no Python was recorded: old versions of torch tell lines by the operators
            return [_told(finder.of_slice(one)) for one in t.slice_id.tolist()]
        frames = {one: parse_frame(trace.name(one)) if one >= 0 else None for one in set(found)}
        begins = {one: SourceRef(f.file, f.line, f.function) if f else None for one, f in frames.items()}
        places = (lines.better(i, begins[one]) for i, one in zip(t.slice_id.tolist(), found, strict=True))
        return [_told(place) for place in places]

    def _kind(self, kind: int) -> str:
        return {
            SyncKind.STREAM: self.tr("stream"),
            SyncKind.DEVICE: self.tr("device"),
            SyncKind.EVENT: self.tr("event"),
            SyncKind.MEMCPY: self.tr("blocking copy"),
            SyncKind.ALLOC: self.tr("allocation"),
        }[SyncKind(kind)]


def _told(place: SourceRef | None) -> str:
    return f"{text.place(place.file, place.line)} · {place.function}" if place is not None else ""


def _direction(direction: int) -> str:
    names = {CopyDirection.HTOD: "HtoD", CopyDirection.DTOH: "DtoH", CopyDirection.DTOD: "DtoD"}
    return names.get(CopyDirection(direction), "")


def create(session: Session, document: Document | None) -> QWidget:
    """Make the panel."""
    assert document is not None
    return SyncsPanel(session, document)


PANEL = PanelSpec("syncs", "Sync points", "bottom", create, tip="Every moment at which the CPU waits for the device")
