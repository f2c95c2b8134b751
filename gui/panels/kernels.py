"""Kernels, copies and memsets by name."""

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
        lambda figures: figures.kernels,
        name=document.tr("Kernels"),
        note=document.tr("Double-click a row to see its slowest one."),
        empty=document.tr("No device work was recorded."),
        advice=document.tr("Record with ProfilerActivity.CUDA, or your accelerator's activity."),
        device_only=True,
    )


PANEL = PanelSpec("kernels", "Kernels", "bottom", create, tip="Kernels, copies and memsets on the device, by name")
