"""What the colours mean; shown on demand."""

from __future__ import annotations

import math

import numpy as np
from PySide6.QtCore import QCoreApplication, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFontMetricsF, QLinearGradient, QPainter, QPen, QTransform

from core.kinds import GapCause, SliceKind
from core.lod import LEVELS
from gui import text, theme
from gui.timeline.frame import Frame
from gui.timeline.labels import draw_text, slice_font
from gui.timeline.palette import HUES, Look, fill, gap_colour
from gui.timeline.step_bounds import bound_colour, bound_text, bounds_of

ROW_PX = 18
TEXT_AT_PX, AFTER_PX = 32, 10  # of an entry: where its words begin, and what follows them
SWATCH_PX = 14


def _tr(words: str) -> str:
    return QCoreApplication.translate("timeline", words)


def step_entries(frame: Frame) -> list[tuple[QBrush, str]]:
    """Colours of the step bars above the timeline, with what bound those steps."""
    if frame.figures is None or not len(frame.figures.steps):
        return []
    bounds = np.unique(bounds_of(frame.figures)).tolist()
    words = _tr("step · {bound}")
    return [(QBrush(bound_colour(b, frame.palette)), words.format(bound=bound_text(b))) for b in bounds]


def _faded(frame: Frame) -> list[tuple[QBrush, str]]:
    """Pale to strong, as slices are drawn that are too short for one pixel each."""
    used = [look for look in np.unique(frame.looks).tolist() if look != SliceKind.STEP]
    if not used:
        return []
    look = SliceKind.KERNEL if SliceKind.KERNEL in used else used[0]
    shades = QLinearGradient(0, 0, SWATCH_PX, 0)  # of the object itself, Qt would emulate it, and misplace the texts
    for level in range(1, LEVELS + 1):
        for at in ((level - 1) / LEVELS, level / LEVELS - 0.001):
            shades.setColorAt(at, fill(look, level, frame.palette.dark))
    return [(QBrush(shades), _tr("pale or low: short slices, gaps"))]


def entries(frame: Frame) -> list[tuple[QBrush, str]]:
    """Colours that occur in this trace, with their meaning; red first."""
    pal = frame.palette
    found: list[tuple[QBrush, str]] = [(QBrush(pal.wait, Qt.BrushStyle.BDiagPattern), _tr("CPU waits for the device"))]
    seen = set(np.unique(frame.looks).tolist())
    extra = {
        Look.COMMUNICATION: _tr("communication"),
        Look.BACKWARD: _tr("backward"),
        Look.OPTIMIZER: _tr("optimizer"),
        Look.LOADER: _tr("data loader"),
        Look.MODULE: _tr("module"),
        Look.COPY_OP: _tr("copying operator"),
    }
    for look in sorted(seen):
        if look in extra:
            found.append((QBrush(fill(look, LEVELS, pal.dark)), extra[Look(look)]))
        elif look <= SliceKind.OTHER and look != SliceKind.STEP:
            found.append((QBrush(fill(look, LEVELS, pal.dark)), text.kind_name(look)))
    if any(look >= HUES for look in seen):
        found.append((QBrush(fill(HUES, LEVELS, pal.dark)), _tr("one colour per name")))
    if frame.figures is not None and len(frame.figures.gaps):
        for cause in np.unique(frame.figures.gaps.cause).tolist():
            words = _tr("device idle: {cause}").format(cause=text.gap_cause(cause))
            found.append((QBrush(gap_colour(cause, pal.dark)), words))
    return [*found, *_faded(frame), *step_entries(frame)]


def column_px(rows: list[tuple[QBrush, str]]) -> int:
    """Width of a column in which the words of all entries are whole, px."""
    metrics = QFontMetricsF(slice_font())
    return TEXT_AT_PX + AFTER_PX + max((math.ceil(metrics.horizontalAdvance(words)) for _, words in rows), default=0)


def paint(painter: QPainter, frame: Frame) -> None:
    """Draw the legend in the lower right corner."""
    if not frame.show_legend:
        return
    rows = entries(frame)
    column = column_px(rows)
    fitting = max(1, int((frame.height_px - 36) // ROW_PX))  # in a low window it takes more columns
    columns = max(1, min(-(-len(rows) // fitting), int((frame.width_px - 24) // column)))
    high = -(-len(rows) // columns)
    width, height = columns * column, high * ROW_PX + 12
    box = QRectF(frame.width_px - width - 12, frame.height_px - height - 12, width, height)
    ground = QColor(frame.palette.window)
    ground.setAlpha(240)
    painter.setBrush(ground)
    painter.setPen(QPen(frame.palette.line, 1))
    painter.drawRoundedRect(box, 6, 6)
    painter.setFont(slice_font())
    idle = {
        gap_colour(int(cause), frame.palette.dark).name(): QColor(theme.gap_color(int(cause), frame.palette.dark))
        for cause in GapCause
    }
    for i, (brush, words) in enumerate(rows):
        x, y = box.left() + i // high * column, box.top() + 6 + i % high * ROW_PX
        painter.setPen(Qt.PenStyle.NoPen)
        if brush.gradient() is not None:
            brush.setTransform(QTransform.fromTranslate(x + 10, 0))
        painter.setBrush(brush)
        if brush.color().name() in idle:  # pale on the timeline, and alike: its edge has the colour of the budget bar
            painter.setPen(QPen(idle[brush.color().name()], 2))
        painter.drawRect(QRectF(x + 10, y + 4, SWATCH_PX, 10))
        draw_text(painter, QRectF(x + TEXT_AT_PX, y, column - TEXT_AT_PX - 4, ROW_PX), words, frame.palette.text)
