"""A flame graph on the screen: one box per call path, the costliest at the left, the callers on top."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetrics,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QToolTip

from core.figures.flame import ROOT_KIND, THREAD_KIND, FlameGraph
from core.tables import Bool
from gui import theme
from gui.painting import guarded
from gui.widgets.budget_bar import ink_on
from gui.widgets.labels import plain_tip

ROW_PX = 19
LABEL_PX = 34  # narrower boxes carry no words
NARROW_PX = 1.5  # narrower boxes are drawn as one
ABOVE_ROWS = 2  # callers kept in view over the box that fills the width
ALONE = 0.85  # part of its caller's time with which a box is as good as the only one
DIMMED = 0.28  # strength of what a search did not find


class FlameView(QAbstractScrollArea):
    """Boxes of a `FlameGraph`; a click makes one as wide as the view, a right click or Esc goes back.

    ``words_of`` gets a node and says all about it, for tooltip and status; ``name_of`` is the text on its box.
    """

    zoomChanged = Signal()
    currentChanged = Signal(int)  # box under the pointer or the keys, -1 none
    opened = Signal(int)  # node whose slowest slice is asked for

    def __init__(self) -> None:
        super().__init__()
        self.graph: FlameGraph | None = None
        self.name_of: Callable[[int], str] = str
        self.words_of: Callable[[int], str] = str
        self._found: Bool | None = None
        self._colour: np.ndarray = np.zeros(0, np.int64)
        self._trail = [0]
        self._pressed = self._hovered = -1
        self._cursor = 0
        self.setFrameShape(QAbstractScrollArea.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setMouseTracking(True)
        self.setMinimumHeight(3 * ROW_PX)
        self.setAccessibleName(self.tr("Flame graph"))

    # What is shown --------------------------------------------------------------------------------------------

    def show_graph(self, graph: FlameGraph) -> None:
        """Show another graph, the whole of it."""
        self.graph, self._found = graph, None
        # Neighbours of one kind get two shades, by their names: the same name looks the same everywhere.
        self._colour = graph.kind.astype(np.int64) * 2 + (graph.name_id & 1)
        self._trail, self._pressed, self._hovered, self._cursor = [0], -1, -1, 0
        self._fit()
        self.verticalScrollBar().setValue(self._first_fork() * ROW_PX)
        self.zoomChanged.emit()
        self.viewport().update()

    def set_found(self, found: Bool | None) -> None:
        """Let these nodes stand out; None: all alike."""
        self._found = found
        self.viewport().update()

    @property
    def zoomed(self) -> int:
        """Node that is as wide as the view."""
        return self._trail[-1]

    @property
    def current(self) -> int:
        """Node under the pointer, else the one that the keys are at."""
        return self._hovered if self._hovered >= 0 else self._cursor

    def zoom_to(self, node: int) -> None:
        """Make a node as wide as the view."""
        if self.graph is None or not 0 <= node < len(self.graph) or node == self.zoomed:
            return
        self._trail.append(node)
        self._zoom_changed()

    def back(self) -> None:
        """Go back to the node that filled the view before."""
        if len(self._trail) > 1:
            self._trail.pop()
            self._zoom_changed()

    def whole(self) -> None:
        """Show the whole graph again."""
        self.zoom_to(0)

    def _zoom_changed(self) -> None:
        assert self.graph is not None
        self._cursor = self.zoomed
        level = self.graph.level_of(self.zoomed)
        self._fit()
        bar, top = self.verticalScrollBar(), level * ROW_PX
        if not bar.value() <= top <= bar.value() + self.viewport().height() // 2:
            bar.setValue(max(0, level - ABOVE_ROWS) * ROW_PX)
        self.zoomChanged.emit()
        self.viewport().update()

    def _first_fork(self) -> int:
        """Level to begin with: callers of one callee that takes nearly all of the time tell nothing."""
        graph, node, level = self.graph, 0, 0
        assert graph is not None
        while (below := graph.children(node)) and graph.total_ns[below[0]] >= ALONE * graph.total_ns[node]:
            node, level = below[0], level + 1
        rows = self.viewport().height() // ROW_PX
        return max(0, level - ABOVE_ROWS) if graph.levels > rows else 0

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
        y = level * ROW_PX - self.verticalScrollBar().value()
        x = (float(self.graph.x_ns[node]) - left_ns) * scale
        width = float(self.graph.total_ns[node]) * scale
        if level < self.graph.level_of(self.zoomed):
            x, width = 0.0, float(self.viewport().width())
        return QRectF(x, y, width, ROW_PX)

    def node_at(self, at: QPoint) -> int:
        """Node under a point of the view, -1 none."""
        graph = self.graph
        level = (at.y() + self.verticalScrollBar().value()) // ROW_PX
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
        bar.setSingleStep(ROW_PX)
        bar.setRange(0, max(0, rows - room // ROW_PX) * ROW_PX)  # whole rows: none is cut at the top

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Ten rows."""
        return QSize(480, 10 * ROW_PX)

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
        font.setPixelSize(11)
        painter.setFont(font)
        chain = graph.ancestors(self.zoomed)
        top = self.verticalScrollBar().value() // ROW_PX
        last = min(graph.levels, (self.verticalScrollBar().value() + self.viewport().height()) // ROW_PX + 1)
        for level in range(top, last):
            if level < len(chain):
                self._draw_box(painter, chain[level], QFontMetrics(font), strength=0.55)
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
        wide = width >= NARROW_PX
        for node in (first + a + np.flatnonzero(wide)).tolist():
            self._draw_box(painter, node, metrics)
        self._draw_narrow(painter, level, first + a + np.flatnonzero(~wide))

    def _draw_narrow(self, painter: QPainter, level: int, nodes: np.ndarray) -> None:
        """Runs of boxes without room for themselves, in a colour of no kind; what a search found keeps standing out."""
        graph, t = self.graph, theme.current()
        if not len(nodes) or graph is None:
            return
        left_ns, scale = self._scale()
        y = level * ROW_PX - self.verticalScrollBar().value()
        lit = self._found[nodes] if self._found is not None else np.zeros(len(nodes), bool)
        for chosen, colour in ((nodes[~lit], t.border), (nodes[lit], t.warn)):
            start = np.floor((graph.x_ns[chosen] - left_ns) * scale).astype(np.int64)
            stop = np.ceil((graph.x_ns[chosen] + graph.total_ns[chosen] - left_ns) * scale).astype(np.int64)
            heads = np.flatnonzero(np.append(True, start[1:] > stop[:-1])) if len(start) else start
            tails = np.append(heads[1:], len(start)) - 1
            for k, m in zip(heads.tolist(), tails.tolist(), strict=len(heads) == len(tails)):
                box = QRectF(float(start[k]), y, max(float(stop[m] - start[k]), 1.0), ROW_PX - 1)
                painter.fillRect(box, QColor(colour))

    def _draw_box(self, painter: QPainter, node: int, metrics: QFontMetrics, strength: float = 1.0) -> None:
        box = self.box_of(node)
        visible = box.intersected(QRectF(self.viewport().rect())).adjusted(0, 0, -1 if box.width() > 3 else 0, -1)
        found = self._found is None or bool(self._found[node])
        fill = _fill(int(self._colour[node]), theme.current().dark, strength if found else min(strength, DIMMED))
        painter.fillRect(visible, QColor(fill))
        if found and self._found is not None:  # told by a line, too: not every eye sees the colours
            line = QRectF(visible.left(), visible.bottom() - 2, visible.width(), 2)
            painter.fillRect(line, QColor(theme.current().warn))
        if visible.width() >= LABEL_PX:
            painter.setPen(QColor(ink_on(fill)))
            words = visible.adjusted(5, 0, -3, 0)
            shown = metrics.elidedText(self.name_of(node), Qt.TextElideMode.ElideRight, int(words.width()))
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

    # Pointer --------------------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """A click zooms, a right click goes back."""
        if event.button() == Qt.MouseButton.RightButton:
            self.back()
            return
        if event.button() != Qt.MouseButton.LeftButton:
            return
        self._pressed = self.node_at(event.position().toPoint())
        if self._pressed >= 0:
            self.zoom_to(self._pressed)
            self._hover(self.node_at(event.position().toPoint()))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Open what the first click was on: the boxes have moved since."""
        if event.button() == Qt.MouseButton.LeftButton and self._pressed >= 0:
            self.opened.emit(self._pressed)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Frame the box under the pointer."""
        self._hover(self.node_at(event.position().toPoint()))

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """No box is under the pointer any more."""
        self._hover(-1)
        super().leaveEvent(event)

    def _hover(self, node: int) -> None:
        if node != self._hovered:
            self._hovered = node
            self.currentChanged.emit(self.current)
            self.viewport().update()

    def viewportEvent(self, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Tooltip: all about the box under the pointer."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            node = self.node_at(event.pos())
            QToolTip.showText(event.globalPos(), plain_tip(self.words_of(node)) if node >= 0 else "", self)
            return True
        return super().viewportEvent(event)

    # Keys -----------------------------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Arrows go from box to box, Enter zooms, Ctrl+Enter opens, Esc and Backspace go back, Home shows all."""
        key = event.key()
        if self.graph is None:
            return super().keyPressEvent(event)
        if key in (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Right):
            self._go(self._next(Qt.Key(key)))
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
                self.opened.emit(self._cursor)
            else:
                self.zoom_to(self._cursor)
        elif key in (Qt.Key.Key_Escape, Qt.Key.Key_Backspace):
            self.back()
        elif key == Qt.Key.Key_Home:
            self.whole()
        else:
            super().keyPressEvent(event)
        return None

    def _next(self, key: Qt.Key) -> int:
        """Box above, the widest below, or the neighbour on the same row that is in view."""
        graph = self.graph
        assert graph is not None
        if key == Qt.Key.Key_Up:
            return int(graph.parent[self._cursor])
        if key == Qt.Key.Key_Down:
            below = graph.children(self._cursor)
            return below[0] if below else -1
        level, step = graph.level_of(self._cursor), -1 if key == Qt.Key.Key_Left else 1
        node = self._cursor + step
        if not graph.level_first[level] <= node < graph.level_first[level + 1]:
            return -1
        x, z = int(graph.x_ns[node]), self.zoomed
        return node if graph.x_ns[z] <= x < graph.x_ns[z] + graph.total_ns[z] else -1

    def _go(self, node: int) -> None:
        if node < 0 or self.graph is None:
            return
        self._cursor, self._hovered = node, -1
        bar, top = self.verticalScrollBar(), self.graph.level_of(node) * ROW_PX
        bar.setValue(min(max(bar.value(), top + 2 * ROW_PX - self.viewport().height()), top))
        self.setAccessibleDescription(self.words_of(node))
        self.currentChanged.emit(node)
        self.viewport().update()


@cache
def _fill(code: int, dark: bool, strength: float) -> str:
    """Colour of a box: of its kind, the odd ones a shade off, paler where it does not stand out."""
    kind, odd = divmod(code, 2)
    t = theme.theme(dark)
    base = QColor(t.raised if kind in (ROOT_KIND, THREAD_KIND) else theme.slice_color(kind, dark))
    if odd and kind < THREAD_KIND:
        base = base.darker(112) if dark else base.darker(106)
    ground = QColor(t.window)
    pairs = ((base.red(), ground.red()), (base.green(), ground.green()), (base.blue(), ground.blue()))
    return QColor(*(round(g + (c - g) * strength) for c, g in pairs)).name()
