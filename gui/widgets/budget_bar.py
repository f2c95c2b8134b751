"""One period as a bar of its parts, which add up; what has no room inside is named below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QHelpEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from gui import text, theme
from gui.painting import guarded
from gui.text_size import px
from gui.widgets.labels import plain_tip

BAR_PX, LEGEND_PX, SWATCH_PX = 18, 18, 9
DARK_INK, LIGHT_INK = "#000000", "#ffffff"


@dataclass(frozen=True)
class Part:
    """One part of a budget; ``short`` is its name where the whole one has no room."""

    name: str
    value_ns: float
    color: str
    short: str = ""


def luminance(color: QColor) -> float:
    """Relative luminance (WCAG 2.1)."""
    red, green, blue = (
        v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4
        for v in (color.redF(), color.greenF(), color.blueF())
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours (WCAG 2.1), 1 to 21."""
    low, high = sorted((luminance(QColor(one)), luminance(QColor(other))))
    return (high + 0.05) / (low + 0.05)


def ink_on(color: str) -> str:
    """Colour of text on a ground: dark or light, whichever is read more easily."""
    return max(DARK_INK, LIGHT_INK, key=lambda ink: contrast(ink, color))


class BudgetBar(QWidget):
    """Parts of one period, left to right, as long as their time. The tooltip names every part."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[Part] = []
        self._whole = 0.0
        self._heading = ""
        self._names_below, self._room_kept = True, False
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._fit()

    def show_parts(self, parts: Sequence[Part], whole_ns: float, title: str = "") -> None:
        """``parts`` in drawing order; ``title`` heads the tooltip."""
        self._heading = title
        self._parts, self._whole = [p for p in parts if p.value_ns > 0], whole_ns
        self.setAccessibleName(title + " " + "; ".join(self._line(p) for p in self._parts))
        self.setVisible(bool(self._parts) and whole_ns > 0)
        self._fit()
        self.update()

    def show_names_below(self, shown: bool) -> None:
        """Name below what has no room inside; without it only the tooltip does."""
        if shown != self._names_below:
            self._names_below = shown
            self._fit()
            self.update()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Grow with the text."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fit()

    def keep_room(self, kept: bool) -> None:
        """Have a place, with names below where they are shown, while hidden: what stands under the bar stays there."""
        self._room_kept = kept
        policy = self.sizePolicy()
        policy.setRetainSizeWhenHidden(kept)
        self.setSizePolicy(policy)
        self._fit()

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """As wide as allowed."""
        return QSize(400, self.maximumHeight())

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Names that fit no more go below."""
        super().resizeEvent(event)
        self._fit()

    def labels(self) -> list[str]:
        """What is written in each part: its name and share, or as much of them as has room."""
        metrics = QFontMetrics(self._font())
        written = []
        for part in self._parts:
            room, share = self._px(part) - 10, self._share(part)
            short = part.short or part.name
            alone = () if self._names_below else (short,)  # a name says more than a share, where none stands below
            offered = (f"{part.name} {share}", f"{short} {share}", *alone, share)
            written.append(next((words for words in offered if metrics.horizontalAdvance(words) <= room), ""))
        return written

    def legend(self) -> list[tuple[Part, str]]:
        """Parts whose name has no room inside, with the words for the line below; all that fit in its width."""
        metrics, shown, x = QFontMetrics(self._font()), [], 0
        if not self._names_below:
            return []
        for part, written in zip(self._parts, self.labels(), strict=True):
            if written in ("", self._share(part)):
                words = f"{part.name} {self._share(part)}"
                x += px(SWATCH_PX) + 5 + metrics.horizontalAdvance(words) + 14
                if x > self.width() + 14:
                    break
                shown.append((part, words))
        return shown

    def event(self, event: QEvent) -> bool:
        """Tooltip: all parts as lines, the one under the pointer marked."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            under = self._part_at(event.pos().x()) if event.pos().y() < px(BAR_PX) else None
            lines = [("▸ " if p is under else "") + self._line(p) for p in self._parts]
            QToolTip.showText(event.globalPos(), plain_tip("\n".join([self._heading, *lines])), self)
            return True
        return super().event(event)

    def _fit(self) -> None:
        below = self._names_below if self._room_kept else bool(self.legend())
        self.setFixedHeight(px(BAR_PX) + (px(LEGEND_PX) if below else 0))

    def _font(self) -> QFont:
        font = QFont(self.font())
        font.setPointSizeF(max(6.5, font.pointSizeF() - 1.5))
        return font

    def _px(self, part: Part) -> float:
        return self.width() * part.value_ns / self._whole if self._whole else 0.0

    def _part_at(self, x: int) -> Part | None:
        end = 0.0
        for part in self._parts:
            end += self._px(part)
            if x < end:
                return part
        return None

    def _share(self, part: Part) -> str:
        return text.percent(100 * part.value_ns / self._whole if self._whole else None)

    def _line(self, part: Part) -> str:
        return self.tr("{name}: {time} ({share})").format(
            name=part.name, time=text.duration(part.value_ns), share=self._share(part)
        )

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw the parts with their names inside, and below the names that had no room."""
        if not self._parts or self._whole <= 0:
            return
        t, painter = theme.current(), QPainter(self)
        painter.setFont(self._font())
        painter.fillRect(QRectF(0, 0, self.width(), px(BAR_PX)), QColor(t.raised))
        x, middle = 0.0, int(Qt.AlignmentFlag.AlignVCenter)
        for part, words in zip(self._parts, self.labels(), strict=True):
            width = self._px(part)
            box = QRectF(x, 0, max(1.0, width - 1), px(BAR_PX))
            painter.fillRect(box, QColor(part.color))
            painter.setPen(QColor(ink_on(part.color)))
            painter.drawText(box.adjusted(5, 0, 0, 0), middle, words)
            x += width
        x = 0.0
        painter.setPen(QColor(t.dim))
        for part, words in self.legend():
            painter.fillRect(QRectF(x, px(BAR_PX) + 6, px(SWATCH_PX), px(SWATCH_PX)), QColor(part.color))
            x += px(SWATCH_PX) + 5
            painter.drawText(QRectF(x, px(BAR_PX) + 3, self.width() - x, px(LEGEND_PX) - 3), middle, words)
            x += painter.fontMetrics().horizontalAdvance(words) + 14
        painter.end()
