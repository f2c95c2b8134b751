"""Tabs of traces and pages whose titles stay readable."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QSizePolicy, QTabBar, QWidget

LEAST_PX = 150
MOST_PX = 260


class DocumentTabs(QTabBar):
    """One tab per trace or page. With many of them the bar scrolls; a title never shrinks to a letter and dots."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("documents")
        self.setMovable(True)
        self.setExpanding(False)
        self.setDrawBase(False)
        self.setElideMode(Qt.TextElideMode.ElideMiddle)
        self.setUsesScrollButtons(True)
        self.setAccessibleName(self.tr("Open traces"))
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def tabSizeHint(self, index: int) -> QSize:  # noqa: N802 - Qt's name
        """As wide as the title, within limits."""
        size = super().tabSizeHint(index)
        return QSize(min(size.width(), MOST_PX), size.height())

    def minimumTabSizeHint(self, index: int) -> QSize:  # noqa: N802 - Qt's name
        """Short titles whole, long ones down to a width that still tells them apart."""
        size = self.tabSizeHint(index)
        return QSize(min(size.width(), LEAST_PX), size.height())
