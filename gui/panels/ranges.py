"""record_function ranges by name."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from gui.panels import PanelSpec
from gui.session import Document, Session
from gui.widgets.stat_panel import StatPanel


def create(session: Session, document: Document | None) -> QWidget:
    """Make the panel."""
    assert document is not None
    return StatPanel(
        document,
        lambda figures: figures.ranges,
        name=document.tr("Ranges"),
        note=document.tr("Double-click a row to see its slowest one."),
        empty=document.tr("No ranges were recorded."),
        advice=document.tr('Name parts of your step: with torch.profiler.record_function("loss"): …'),
    )


PANEL = PanelSpec(
    "ranges", "Ranges", "bottom", create, tip="Parts of the step that your program names (record_function)"
)
