"""Texts on slices: each distinct text is rendered once into an atlas, and all labels of a frame are one call."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QFontMetricsF, QPainter, QPixmap, QStaticText, QTransform

from gui.timeline.rects import draw_fragments
from gui.timeline.row import SLICE_PX

MAX_CHARACTERS = 72
MIN_WIDTH_PX = 22  # narrower slices carry no label
PADDING_PX = 4
NEW_PER_FRAME = 150  # texts rendered in one frame at most; the rest follows in the next
ATLAS_PX, FIRST_PX = 2048, 256  # width and greatest height of the picture that holds the texts; its first height
ELIDE_PX = 4  # texts are cut at multiples of it, so that one is not laid out anew for each pixel of a changing room
MUCH_PX = 1 << 20  # room for any text: what fits is laid out once for all widths
_RIGHT = int(Qt.AlignmentFlag.AlignRight)
_FontKey = tuple[int, QFont.Weight]  # size, px, and weight: what the fonts of the timeline differ in


@lru_cache(maxsize=1)
def slice_font() -> QFont:
    """Font of the labels on slices."""
    font = QFont()
    font.setPixelSize(11)
    font.setKerning(False)  # a text may be cut between any two letters: each is as wide as it is alone
    return font


class LabelAtlas:
    """Texts of one colour, rendered on demand. Row 0 is the ellipsis.

    ``lookup[name_id]`` is the row of a name's text, -1 while it has not been rendered.
    """

    def __init__(self, names: int, colour: QColor, dpr: float) -> None:
        self.colour, self.dpr = colour, dpr
        self.font = slice_font()
        self._metrics = QFontMetricsF(self.font)
        self._advance: dict[str, float] = {}
        self.lookup = np.full(names + 1, -1, np.int32)
        self._reset()

    def _reset(self) -> None:
        self.lookup.fill(-1)
        self.pixmap = QPixmap(ATLAS_PX, FIRST_PX)  # most traces need no more: the whole of it is 16 MB
        self.pixmap.fill(Qt.GlobalColor.transparent)
        self._x = self._y = 0
        self._source: NDArray[np.float64] = np.zeros((256, 2))
        self._advances: NDArray[np.float32] = np.full((256, MAX_CHARACTERS), np.inf, np.float32)
        self._width = np.zeros(256)
        self._count = 0
        self._render(["…"])

    def ensure(self, texts: dict[int, str]) -> None:
        """Render the texts of names (name id -> text)."""
        ids = list(texts)
        shown = [self._trimmed(texts[i]) for i in ids]
        while not self._room_for(shown):
            if self.pixmap.height() >= ATLAS_PX:
                self._reset()
                break
            self._grow()
        first = self._count
        self._render(shown)
        self.lookup[ids] = np.arange(first, self._count, dtype=np.int32)

    @staticmethod
    def _trimmed(text: str) -> str:
        line = " ".join(text[: MAX_CHARACTERS * 2].split())
        return line if len(line) <= MAX_CHARACTERS else line[: MAX_CHARACTERS - 1] + "…"

    def _room_for(self, texts: list[str]) -> bool:
        height = int(SLICE_PX * self.dpr)
        width = sum(min(self._metrics.horizontalAdvance(t) * self.dpr + 4, ATLAS_PX) for t in texts)
        rows_left = (self.pixmap.height() - self._y) // height - 1
        return width * 1.15 < rows_left * ATLAS_PX

    def _grow(self) -> None:
        """Give the picture twice the height; the texts stay where they are."""
        taller = QPixmap(ATLAS_PX, min(2 * self.pixmap.height(), ATLAS_PX))
        taller.fill(Qt.GlobalColor.transparent)
        painter = QPainter(taller)
        painter.drawPixmap(0, 0, self.pixmap)
        painter.end()
        self.pixmap = taller

    def _render(self, texts: list[str]) -> None:
        painter = QPainter(self.pixmap)
        painter.setFont(self.font)
        painter.setPen(self.colour)
        painter.scale(self.dpr, self.dpr)
        height = int(SLICE_PX * self.dpr)
        baseline = (SLICE_PX + self._metrics.ascent() - self._metrics.descent()) / 2
        for text in texts:
            width = self._metrics.horizontalAdvance(text) + 1
            pixels = min(int(np.ceil(width * self.dpr)) + 2, ATLAS_PX)
            if self._x + pixels > ATLAS_PX:
                self._x, self._y = 0, self._y + height
            painter.drawText(QPointF(self._x / self.dpr, self._y / self.dpr + baseline), text)
            self._append(text, width)
            self._x += pixels
        painter.end()

    def _append(self, text: str, width: float) -> None:
        if self._count == len(self._source):
            self._source = np.concatenate((self._source, np.zeros_like(self._source)))
            self._width = np.concatenate((self._width, np.zeros_like(self._width)))
            more = np.full_like(self._advances, np.inf)
            self._advances = np.concatenate((self._advances, more))
        row = self._count
        self._source[row] = (self._x, self._y)
        self._width[row] = width
        advance = 0.0
        for i, character in enumerate(text[:MAX_CHARACTERS]):
            known = self._advance.get(character)
            if known is None:
                known = self._advance[character] = self._metrics.horizontalAdvance(character)
            advance += known
            self._advances[row, i] = advance
        self._count += 1

    def draw(
        self, painter: QPainter, rows: NDArray[np.int32], x: NDArray[Any], y: NDArray[Any], room: NDArray[Any]
    ) -> None:
        """Draw texts at (x, y), px, cut with an ellipsis where ``room`` px are too few."""
        width = self._width[rows]
        cut = width > room
        shown = np.ceil(width)
        dots = np.ceil(self._width[0])
        if cut.any():
            advances = self._advances[rows[cut]]
            fits = advances <= (room[cut] - dots)[:, None]
            count = fits.sum(axis=1)
            shown[cut] = np.where(count > 0, advances[np.arange(len(count)), np.maximum(count - 1, 0)], 0.0)
        keep = shown > 0
        if not keep.all():
            rows, x, y, shown, cut = rows[keep], x[keep], y[keep], shown[keep], cut[keep]
        self._fragments(painter, rows, x, y, np.ceil(shown))
        if cut.any():
            at = x[cut] + np.ceil(shown[cut])
            self._fragments(painter, np.zeros(len(at), np.int32), at, y[cut], np.full(len(at), dots))

    def _fragments(
        self, painter: QPainter, rows: NDArray[Any], x: NDArray[Any], y: NDArray[Any], width: NDArray[Any]
    ) -> None:
        source = np.empty((len(rows), 4))
        source[:, 0:2] = self._source[rows]
        source[:, 2] = width * self.dpr
        source[:, 3] = int(SLICE_PX * self.dpr)
        target = np.empty((len(rows), 2))
        target[:, 0] = np.round(x) + width / 2
        target[:, 1] = np.round(y) + SLICE_PX / 2
        draw_fragments(painter, self.pixmap, target, source, 1 / self.dpr)


@dataclass(frozen=True, eq=False)
class _Line:
    """One line of text, laid out, with its size, px."""

    text: QStaticText
    width: float
    height: float


@lru_cache(maxsize=4096)
def _line(text: str, font: _FontKey, width_px: int) -> _Line:
    """Lay a line out once; ``width_px`` < 0 leaves it whole."""
    size, weight = font
    shaped = QFont()
    shaped.setPixelSize(size)
    shaped.setWeight(weight)
    shown = text
    if width_px >= 0:
        line = " ".join(text[:400].split())
        shown = line if width_px == MUCH_PX else _elided(line, shaped, width_px)
    static = QStaticText(shown)
    static.setTextFormat(Qt.TextFormat.PlainText)
    static.setPerformanceHint(QStaticText.PerformanceHint.AggressiveCaching)
    static.prepare(QTransform(), shaped)
    metrics = QFontMetricsF(shaped)
    return _Line(static, metrics.horizontalAdvance(shown), metrics.height())


def _elided(line: str, font: QFont, width_px: int) -> str:
    return QFontMetrics(font).elidedText(line, Qt.TextElideMode.ElideRight, width_px)


def draw_text(
    painter: QPainter, rect: QRectF, text: str, colour: QColor, flags: int = 0, *, elide: bool = True
) -> None:
    """One line of plain text in a rectangle, elided unless that is switched off; the painter's font is one of ours.

    ``flags``: to the left or the right, vertically in the middle in any case.
    """
    font = painter.font()
    key = (font.pixelSize(), font.weight())
    line = _line(text, key, MUCH_PX if elide else -1)
    if elide and line.width > rect.width():
        line = _line(text, key, max(int(rect.width()) // ELIDE_PX * ELIDE_PX, 0))
    x = rect.right() - line.width if flags & _RIGHT else rect.left()
    painter.setPen(colour)
    painter.drawStaticText(QPointF(x, rect.top() + (rect.height() - line.height) / 2), line.text)
