"""The boxes of a flame graph: where they lie on the screen, and how they are drawn."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from PySide6.QtCore import QPoint, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QAbstractScrollArea

from core.figures.flame import ROOT_KIND, THREAD_KIND, FlameGraph
from core.tables import Bool
from gui import theme
from gui.painting import guarded
from gui.text_size import px
from gui.timeline.overlays.syncs import hatch
from gui.timeline.rects import draw_rects
from gui.widgets.budget_bar import ink_on

ROW_PX = 19
LABEL_PX = 34  # narrower boxes carry no words
NARROW_PX = 1.5  # narrower boxes are drawn as one
DIMMED = 0.28  # strength of what a search did not find
CALLER = 0.55  # strength of what calls the box that fills the width
WAIT_GROUND = 0.3  # strength of red between the stripes of a wait


def row_px() -> int:
    """Height of a row, with its gap."""
    return px(ROW_PX)


class FlameBoxes(QAbstractScrollArea):
    """Draws a `FlameGraph`; `FlameView` makes it answer.

    ``name_of`` is the text on a node's box, ``words_of`` says all about it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.graph: FlameGraph | None = None
        self.name_of: Callable[[int], str] = str
        self.words_of: Callable[[int], str] = str
        self._found: Bool | None = None
        self._colour: np.ndarray = np.zeros(0, np.int64)
        self._own_wait: np.ndarray = np.zeros(0, np.int64)
        self._trail = [0]
        self._hovered = -1
        self._cursor = 0

    @property
    def zoomed(self) -> int:
        """Node that is as wide as the view."""
        return self._trail[-1]

    # Geometry -------------------------------------------------------------------------------------------------

    def _scale(self) -> tuple[float, float]:
        """Left edge of the view, in nanoseconds of merged time, and pixels per nanosecond."""
        assert self.graph is not None
        total = max(int(self.graph.total_ns[self.zoomed]), 1)
        return float(self.graph.x_ns[self.zoomed]), self.viewport().width() / total

    def box_of(self, node: int) -> QRectF:
        """Place of a node on the screen, px; callers of the zoomed node are as wide as the view."""
        assert self.graph is not None
        left_ns, scale = self._scale()
        level = self.graph.level_of(node)
        y = level * row_px() - self.verticalScrollBar().value()
        x = (float(self.graph.x_ns[node]) - left_ns) * scale
        width = float(self.graph.total_ns[node]) * scale
        if level < self.graph.level_of(self.zoomed):
            x, width = 0.0, float(self.viewport().width())
        return QRectF(x, y, width, row_px())

    def node_at(self, at: QPoint) -> int:
        """Node under a point of the view, -1 none."""
        graph = self.graph
        level = (at.y() + self.verticalScrollBar().value()) // row_px()
        if graph is None or not 0 <= level < graph.levels:
            return -1
        chain = graph.ancestors(self.zoomed)
        if level < len(chain):
            return chain[level]
        left_ns, scale = self._scale()
        time = left_ns + (at.x() + 0.5) / max(scale, 1e-12)
        first, end = int(graph.level_first[level]), int(graph.level_first[level + 1])
        node = first + int(np.searchsorted(graph.x_ns[first:end], time, side="right")) - 1
        inside = node >= first and time < graph.x_ns[node] + graph.total_ns[node]
        return node if inside else -1

    def _fit(self) -> None:
        rows = self.graph.levels if self.graph is not None else 0
        room = self.viewport().height()
        bar = self.verticalScrollBar()
        bar.setPageStep(room)
        bar.setSingleStep(row_px())
        bar.setRange(0, max(0, rows - room // row_px()) * row_px())  # whole rows: none is cut at the top

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Ten rows."""
        return QSize(480, 10 * row_px())

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Keep the rows that fit."""
        super().resizeEvent(event)
        self._fit()

    # Drawing --------------------------------------------------------------------------------------------------

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw the rows in view; what is too narrow to be told apart is drawn as one."""
        graph = self.graph
        if graph is None:
            return
        painter = QPainter(self.viewport())
        painter.fillRect(self.viewport().rect(), QColor(theme.current().window))
        font = QFont(self.font())
        font.setPixelSize(px(11))
        painter.setFont(font)
        chain = graph.ancestors(self.zoomed)
        top = self.verticalScrollBar().value() // row_px()
        last = min(graph.levels, (self.verticalScrollBar().value() + self.viewport().height()) // row_px() + 1)
        for level in range(top, last):
            if level < len(chain):
                self._draw_box(painter, chain[level], QFontMetrics(font), strength=CALLER)
            else:
                self._draw_level(painter, level, QFontMetrics(font))
        self._draw_cursor(painter)
        painter.end()

    def _draw_level(self, painter: QPainter, level: int, metrics: QFontMetrics) -> None:
        graph = self.graph
        assert graph is not None
        left_ns, scale = self._scale()
        first, end = int(graph.level_first[level]), int(graph.level_first[level + 1])
        x, total = graph.x_ns[first:end], graph.total_ns[first:end]
        a = int(np.searchsorted(x + total, left_ns, side="right"))
        b = int(np.searchsorted(x, left_ns + self.viewport().width() / scale, side="left"))
        if level == graph.level_of(self.zoomed):
            a, b = self.zoomed - first, self.zoomed - first + 1
        width = total[a:b] * scale
        nodes = np.arange(first + a, first + b)
        plain = (width >= NARROW_PX) & (width < LABEL_PX)
        self._draw_plain(painter, level, nodes[plain])
        for node in nodes[width >= LABEL_PX].tolist():
            self._draw_box(painter, node, metrics)
        self._draw_narrow(painter, level, nodes[width < NARROW_PX])

    def _draw_plain(self, painter: QPainter, level: int, nodes: np.ndarray) -> None:
        """Boxes without room for words: all of a colour with one call."""
        graph, t = self.graph, theme.current()
        if not len(nodes) or graph is None:
            return
        left_ns, scale = self._scale()
        lit = np.ones(len(nodes), bool) if self._found is None else self._found[nodes]
        rows = np.empty((len(nodes), 4))
        rows[:, 0] = np.maximum((graph.x_ns[nodes] - left_ns) * scale, 0)
        rows[:, 1] = level * row_px() - self.verticalScrollBar().value()
        rows[:, 2] = graph.total_ns[nodes] * scale
        rows[:, 2] -= rows[:, 2] > 3
        rows[:, 3] = row_px() - 1
        painter.setPen(Qt.PenStyle.NoPen)
        code = self._colour[nodes] * 2 + lit
        for one in np.unique(code).tolist():
            painter.setBrush(QColor(_fill(one // 2, t.dark, 1.0 if one % 2 else DIMMED)))
            draw_rects(painter, rows[code == one])
        self._draw_waits(painter, nodes[lit])
        if self._found is not None:
            rows[:, 1] += row_px() - 3
            rows[:, 3] = 2
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(t.warn))
            draw_rects(painter, rows[lit])

    def _draw_waits(self, painter: QPainter, nodes: np.ndarray) -> None:
        """Hatch in red what boxes wait for the device themselves: the right part of their own time."""
        graph, t = self.graph, theme.current()
        assert graph is not None
        _, scale = self._scale()
        stripes = hatch(t.wait, _wait_ground(t), self.devicePixelRatioF())
        for node in nodes[self._own_wait[nodes] * scale >= 1.0].tolist():
            box = self.box_of(node).adjusted(0, 0, 0, -1)
            box.setLeft(box.right() - self._own_wait[node] * scale)
            painter.fillRect(box, stripes)

    def _draw_narrow(self, painter: QPainter, level: int, nodes: np.ndarray) -> None:
        """Runs of boxes without room for themselves, in a colour of no kind; what a search found keeps standing out."""
        graph, t = self.graph, theme.current()
        if not len(nodes) or graph is None:
            return
        left_ns, scale = self._scale()
        y = level * row_px() - self.verticalScrollBar().value()
        lit = self._found[nodes] if self._found is not None else np.zeros(len(nodes), bool)
        for chosen, colour in ((nodes[~lit], t.border), (nodes[lit], t.warn)):
            start = np.floor((graph.x_ns[chosen] - left_ns) * scale).astype(np.int64)
            stop = np.ceil((graph.x_ns[chosen] + graph.total_ns[chosen] - left_ns) * scale).astype(np.int64)
            heads = np.flatnonzero(np.append(True, start[1:] > stop[:-1])) if len(start) else start
            tails = np.append(heads[1:], len(start)) - 1
            for k, m in zip(heads.tolist(), tails.tolist(), strict=len(heads) == len(tails)):
                box = QRectF(float(start[k]), y, max(float(stop[m] - start[k]), 1.0), row_px() - 1)
                painter.fillRect(box, QColor(colour))

    def _draw_box(self, painter: QPainter, node: int, metrics: QFontMetrics, strength: float = 1.0) -> None:
        assert self.graph is not None
        box = self.box_of(node)
        visible = box.intersected(QRectF(self.viewport().rect())).adjusted(0, 0, -1 if box.width() > 3 else 0, -1)
        found = self._found is None or bool(self._found[node])
        fill = _fill(int(self._colour[node]), theme.current().dark, strength if found else min(strength, DIMMED))
        painter.fillRect(visible, QColor(fill))
        if found and strength == 1.0:
            self._draw_waits(painter, np.array([node]))
        if found and self._found is not None:  # told by a line, too: not every eye sees the colours
            line = QRectF(visible.left(), visible.bottom() - 2, visible.width(), 2)
            painter.fillRect(line, QColor(theme.current().warn))
        if visible.width() >= LABEL_PX:
            waits = found and 2 * self._own_wait[node] > int(self.graph.total_ns[node])
            painter.setPen(QColor(theme.current().text if waits else ink_on(fill)))
            words = visible.adjusted(5, 0, -3, 0)
            shown = metrics.elidedText(self.name_of(node), Qt.TextElideMode.ElideRight, int(words.width()))
            if waits:  # no stripes behind the words
                behind = QRectF(words.left() - 4, words.top(), metrics.horizontalAdvance(shown) + 8, words.height())
                painter.fillRect(behind.intersected(visible), QColor(_wait_ground(theme.current())))
            painter.drawText(words, int(Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine), shown)

    def _draw_cursor(self, painter: QPainter) -> None:
        """Frame of the box under the pointer, and of the one that the keys are at."""
        t = theme.current()
        for node, colour in ((self._cursor if self.hasFocus() else -1, t.accent), (self._hovered, t.text)):
            if node >= 0:
                box = self.box_of(node).intersected(QRectF(self.viewport().rect()))
                painter.setPen(QPen(QColor(colour), 1.5))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRect(box.adjusted(0.75, 0.75, -1.75, -1.75))


@cache
def _fill(code: int, dark: bool, strength: float) -> str:
    """Colour of a box: of its kind, the odd ones a shade off, paler where it does not stand out."""
    kind, odd = divmod(code, 2)
    t = theme.theme(dark)
    base = QColor(t.raised if kind in (ROOT_KIND, THREAD_KIND) else theme.slice_color(kind, dark))
    if odd and kind < THREAD_KIND:
        base = base.darker(112) if dark else base.darker(106)
    return _mixed(base, QColor(t.window), strength)


def _wait_ground(t: theme.Theme) -> str:
    return _mixed(QColor(t.wait), QColor(t.window), WAIT_GROUND)


def _mixed(colour: QColor, ground: QColor, strength: float) -> str:
    pairs = (
        (colour.red(), ground.red()),
        (colour.green(), ground.green()),
        (colour.blue(), ground.blue()),
    )
    return QColor(*(round(g + (c - g) * strength) for c, g in pairs)).name()
