"""A text that changes, above things that must not move when it does."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRect, QSize, Qt

from gui.text import breakable_anywhere
from gui.widgets.labels import Wrapped


class Steady(Wrapped):
    """As high as the longest of its texts needs: what stands below it stays when another is shown."""

    def __init__(self, role: str = "") -> None:
        super().__init__()
        self._texts: tuple[str, ...] = ()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        if role:
            self.setProperty("role", role)

    def keep_room_for(self, texts: Sequence[str]) -> None:
        """Name the texts that it shows in turn."""
        self._texts = tuple(breakable_anywhere(text) for text in texts)
        self.updateGeometry()

    def heightForWidth(self, width_px: int) -> int:  # noqa: N802 - Qt's name
        """Room for the longest."""
        return max(super().heightForWidth(width_px), self._longest(width_px))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """The height of the longest, in the present width."""
        least = super().minimumSizeHint()
        return QSize(least.width(), max(least.height(), self._longest(max(self.width(), least.width()))))

    def _longest(self, width_px: int) -> int:
        metrics, place = self.fontMetrics(), QRect(0, 0, max(width_px, 1), 1 << 20)
        wrap = int(Qt.TextFlag.TextWordWrap)
        return max((metrics.boundingRect(place, wrap, text).height() for text in self._texts), default=0)
