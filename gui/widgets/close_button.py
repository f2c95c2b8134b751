"""The small × that closes a tab or takes a line away, as large as the text asks for."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QPushButton

from gui.text_size import px
from gui.widgets.labels import plain_tip

SIDE_PX = 20


class CloseButton(QPushButton):
    """``tip`` says what it does, ``name`` of what, for readers of the screen."""

    def __init__(self, handler: Callable[[], object], tip: str, name: str) -> None:
        super().__init__("×")
        self.setProperty("role", "flat")
        self.setToolTip(plain_tip(tip))
        self.setAccessibleName(name)
        self.setAutoDefault(False)
        self.setStyleSheet("padding: 0;")
        self.clicked.connect(lambda _checked=False: handler())
        self._fit()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Grow with the text."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fit()

    def _fit(self) -> None:
        side = px(SIDE_PX)
        if self.minimumSize().width() != side:
            self.setFixedSize(side, side)
