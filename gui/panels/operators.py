"""Operators by name, with the device work they launched."""

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
        lambda figures: figures.operators,
        name=document.tr("Operators"),
        note=document.tr("Double-click a row to see its slowest call."),
        empty=document.tr("No operators were recorded."),
        advice=document.tr("Record with ProfilerActivity.CPU."),
    )


PANEL = PanelSpec(
    "operators",
    "Operators",
    "bottom",
    create,
    tip="Operators of PyTorch, by name, with the device work that they launch",
)
