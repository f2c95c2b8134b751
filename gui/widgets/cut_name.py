"""Short texts beside others: whole where there is room, cut with dots where there is none."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal

from PySide6.QtCore import QSize
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QSizePolicy

from gui.widgets.labels import Elided

_FIGURE = re.compile(r"(\D*)([1-9]\d*)\.(\d+)(\D*)")  # below one, no digit can be spared


def fewer_digits(figure: str) -> list[str]:
    """A figure as it stands, then rounded to fewer and fewer decimals; anything else only as it stands."""
    found = _FIGURE.fullmatch(figure)
    if found is None:
        return [figure]
    before, whole, decimals, unit = found.groups()
    exact = Decimal(f"{whole}.{decimals}")
    rounded = (exact.quantize(Decimal(1).scaleb(-d), ROUND_HALF_UP) for d in range(len(decimals) - 1, -1, -1))
    return [figure, *(f"{before}{number}{unit}" for number in rounded)]


class CutText(Elided):
    """As wide as its text, as any label; it gives way at its end."""

    def __init__(self, role: str = "") -> None:
        self._short = ""
        super().__init__("", role, at_end=True)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def set_text(self, text: str) -> None:
        """Replace the text; thin spaces before units stay."""
        super().set_text(text)
        self._text = text
        self._tell_whole()

    def set_short(self, text: str) -> None:
        """Say this where there is no room for all of it."""
        self._short = text
        self.update()

    def text(self) -> str:
        """Return the text, whole."""
        return self.full_text()

    def fitting(self, room_px: int) -> str:
        """The text, or what there is room for instead of it."""
        cut = self.fontMetrics().horizontalAdvance(self._text) > room_px
        return self._short if cut and self._short else super().fitting(room_px)


class CutName(CutText):
    """Its tooltip is that of what it names: the definition says more than the whole name would."""

    def _tell_whole(self) -> None:
        """Nothing of its own."""


class CutValue(CutName):
    """A figure, bold and ``delta`` points larger than the text: cut last of all, its digits before its unit."""

    def __init__(self, delta: float) -> None:
        super().__init__()
        font = QFont(self.font())
        font.setPointSizeF(font.pointSizeF() + delta)
        font.setWeight(QFont.Weight.Bold)
        self.setFont(font)

    def fitting(self, room_px: int) -> str:
        """All of it; else as many of its digits as there is room for, and its unit; else its beginning, with dots."""
        for words in fewer_digits(self._text):
            if self.fontMetrics().horizontalAdvance(words) <= room_px:
                return words
        return super().fitting(room_px)

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """All of it."""
        return self.sizeHint()
