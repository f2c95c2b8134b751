"""nn.Module calls by name."""

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
        lambda figures: figures.modules,
        name=document.tr("Modules"),
        note=document.tr("Double-click a row to see its slowest call."),
        empty=document.tr("No module calls were recorded."),
        advice=document.tr("Record with with_stack=True; runs that StepLens profiles have it."),
    )


PANEL = PanelSpec("modules", "Modules", "bottom", create, tip="Calls of nn.Module, by name")
