"""What the colours mean; shown on demand."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QCoreApplication, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPen

from core.kinds import GapCause, SliceKind
from core.lod import LEVELS
from gui import text, theme
from gui.timeline.frame import Frame
from gui.timeline.labels import draw_text, slice_font
from gui.timeline.palette import HUES, Look, fill, gap_colour

ROW_PX = 18
WIDTH_PX = 236


def _tr(words: str) -> str:
    return QCoreApplication.translate("timeline", words)


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
    return found


def paint(painter: QPainter, frame: Frame) -> None:
    """Draw the legend in the lower right corner."""
    if not frame.show_legend:
        return
    rows = entries(frame)
    height = len(rows) * ROW_PX + 12
    box = QRectF(frame.width_px - WIDTH_PX - 12, frame.height_px - height - 12, WIDTH_PX, height)
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
        y = box.top() + 6 + i * ROW_PX
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(brush)
        if brush.color().name() in idle:  # pale on the timeline, and alike: its edge has the colour of the budget bar
            painter.setPen(QPen(idle[brush.color().name()], 2))
        painter.drawRect(QRectF(box.left() + 10, y + 4, 14, 10))
        draw_text(painter, QRectF(box.left() + 32, y, WIDTH_PX - 40, ROW_PX), words, frame.palette.text)
