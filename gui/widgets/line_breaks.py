"""Where a text breaks into lines, for widgets that paint them themselves."""

from __future__ import annotations

from PySide6.QtGui import QFont, QTextLayout, QTextOption

LEAST_PX = 20  # a narrower line would hold no letter


def line_starts(words: str, font: QFont, width_px: int) -> list[int]:
    """Where each line begins, as positions in the text; a word that is longer than a line is broken, too."""
    layout, breaking = QTextLayout(words, font), QTextOption()
    breaking.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    layout.setTextOption(breaking)
    layout.beginLayout()
    starts = []
    while (line := layout.createLine()).isValid():
        line.setLineWidth(max(width_px, LEAST_PX))
        starts.append(line.textStart())
    layout.endLayout()
    return starts
