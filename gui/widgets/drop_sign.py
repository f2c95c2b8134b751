"""The sign over the window while files are held above it."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from gui import theme
from gui.painting import guarded

EDGE_PX = 16


class DropSign(QWidget):
    """Covers its parent, lets it shine through, and says what letting go does."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAccessibleName(self.tr("Drop to open"))
        self.hide()

    def show_over(self, shown: bool) -> None:
        """Cover the parent, or go."""
        over = self.parentWidget()
        if shown and over is not None:
            self.setGeometry(over.rect())
            self.raise_()
        self.setVisible(shown)

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw a veil, a dashed frame and the words."""
        t, painter = theme.current(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        veil = QColor(t.window)
        veil.setAlpha(215)
        painter.fillRect(self.rect(), veil)
        frame = QRectF(self.rect()).adjusted(EDGE_PX, EDGE_PX, -EDGE_PX, -EDGE_PX)
        painter.setPen(QPen(QColor(t.accent), 2.5, Qt.PenStyle.DashLine))
        painter.drawRoundedRect(frame, 12, 12)
        font = QFont(self.font())
        font.setPointSizeF(font.pointSizeF() + 8)
        font.setWeight(QFont.Weight.Bold)
        painter.setFont(font)
        painter.setPen(QColor(t.text))
        painter.drawText(frame, int(Qt.AlignmentFlag.AlignCenter), self.tr("Drop to open"))
        painter.end()
