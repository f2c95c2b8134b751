"""Python functions by name."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from PySide6.QtWidgets import QWidget

from core.figures.model import StatTable
from core.source_frames import is_launcher_frame
from core.trace import Trace
from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.widgets.stat_panel import StatPanel


def without_launcher(trace: Trace, stats: StatTable) -> StatTable:
    """Rows but those of what started the script under the profiler: they are no part of the user's program."""
    foreign = [is_launcher_frame(trace.strings[int(i)]) for i in stats.name_id]
    if not any(foreign):
        return stats
    kept = ~np.asarray(foreign, np.bool_)
    return replace(stats, **{field.name: getattr(stats, field.name)[kept] for field in fields(stats)})


def create(session: Session, document: Document | None) -> QWidget:
    """Make the panel."""
    assert document is not None
    trace = document.trace
    return StatPanel(
        document,
        lambda figures: without_launcher(trace, figures.python),
        name=document.tr("Python functions"),
        note=document.tr("Double-click a row to see its slowest call."),
        empty=document.tr("No Python functions were recorded."),
        advice=document.tr("Record with with_stack=True; runs that StepLens profiles have it."),
    )


PANEL = PanelSpec("python", "Python", "bottom", create, tip="Python functions, by file and name")
