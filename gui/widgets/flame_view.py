"""A flame graph on the screen: one box per call path, the costliest at the left, the callers on top."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QHelpEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QMenu, QToolTip

from core.figures.flame import FlameGraph
from core.tables import Bool
from gui.widgets.flame_boxes import FlameBoxes, row_px
from gui.widgets.labels import plain_tip

ABOVE_ROWS = 2  # callers kept in view over the box that fills the width
ALONE = 0.85  # part of its caller's time with which a box is as good as the only one


class FlameView(FlameBoxes):
    """Boxes of a `FlameGraph`; a click makes one as wide as the view, Esc goes back, a right click offers all."""

    zoomChanged = Signal()
    currentChanged = Signal(int)  # box under the pointer or the keys, -1 none
    opened = Signal(int)  # node whose slowest slice is asked for
    sandwiched = Signal(int)  # node whose callers and callees are asked for

    def __init__(self) -> None:
        super().__init__()
        self._pressed = -1
        self.offers_callers = False
        self.setFrameShape(FlameBoxes.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setMouseTracking(True)
        self.setMinimumHeight(3 * row_px())
        self.setAccessibleName(self.tr("Flame graph"))

    # What is shown --------------------------------------------------------------------------------------------

    def show_graph(self, graph: FlameGraph) -> None:
        """Show another graph; what filled the view fills it again where the new one has the same calls."""
        trail = self._trail_in(graph)
        self.graph, self._found = graph, None
        # Neighbours of one kind get two shades, by their names: the same name looks the same everywhere.
        self._colour = graph.kind.astype(np.int64) * 2 + (graph.name_id & 1)
        self._own_wait = graph.wait_ns.copy()
        np.subtract.at(self._own_wait, graph.parent[1:], graph.wait_ns[1:])
        self._trail, self._pressed, self._hovered, self._cursor = trail, -1, -1, trail[-1]
        self._fit()
        level = max(0, graph.level_of(self.zoomed) - ABOVE_ROWS) if self.zoomed else self._first_fork()
        self.verticalScrollBar().setValue(level * row_px())
        self.zoomChanged.emit()
        self.viewport().update()

    def _trail_in(self, graph: FlameGraph) -> list[int]:
        """Nodes of another graph with the call paths of those that filled the view one after the other."""
        old, trail = self.graph, [0]
        for node in self._trail[1:] if old is not None else ():
            assert old is not None
            at = 0
            for above in [*old.ancestors(node)[1:], node] if node else ():
                same = (old.name_id[above], old.kind[above])
                at = next((k for k in graph.children(at) if (graph.name_id[k], graph.kind[k]) == same), -1)
                if at < 0:
                    break
            if at >= 0 and at != trail[-1]:
                trail.append(at)
        return trail

    def set_found(self, found: Bool | None) -> None:
        """Let these nodes stand out; None: all alike."""
        self._found = found
        self.viewport().update()

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
        bar, top = self.verticalScrollBar(), level * row_px()
        if not bar.value() <= top <= bar.value() + self.viewport().height() // 2:
            bar.setValue(max(0, level - ABOVE_ROWS) * row_px())
        self.zoomChanged.emit()
        self.viewport().update()

    def _first_fork(self) -> int:
        """Level to begin with: callers of one callee that takes nearly all of the time tell nothing."""
        graph, node, level = self.graph, 0, 0
        assert graph is not None
        while (below := graph.children(node)) and graph.total_ns[below[0]] >= ALONE * graph.total_ns[node]:
            node, level = below[0], level + 1
        if not below:
            return 0  # one chain down to its end: it is read from the top
        rows = self.viewport().height() // row_px()
        return max(0, level - ABOVE_ROWS) if graph.levels > rows else 0

    # Pointer --------------------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """A click zooms."""
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

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802 - Qt's name
        """Offer what can be done with the box under the pointer, or the one that the keys are at."""
        by_mouse = event.reason() == QContextMenuEvent.Reason.Mouse
        node = self.node_at(event.pos()) if by_mouse else self._cursor
        if self.graph is not None:
            place = event.globalPos()
            if not by_mouse:
                place = self.viewport().mapToGlobal(self.box_of(node).center().toPoint())
            self.menu(node).popup(place)

    def menu(self, node: int) -> QMenu:
        """Make the menu of a node; -1 for none, which leaves the ways back."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        on_box, gone_in = node > 0, len(self._trail) > 1
        offered: list[tuple[str, str, Callable[[], object], bool]] = [
            (self.tr("Zoom into the box"), "Enter", partial(self.zoom_to, node), on_box and node != self.zoomed),
            (self.tr("Show its slowest call"), "Ctrl+Enter", partial(self.opened.emit, node), on_box),
            (self.tr("Back"), "Esc", self.back, gone_in),
            (self.tr("Show all"), "Home", self.whole, self.zoomed != 0),
        ]
        if self.offers_callers:
            offered.insert(2, (self.tr("Callers and callees"), "C", partial(self.sandwiched.emit, node), on_box))
        for title, keys, act, possible in offered:
            menu.addAction(f"{title}\t{keys}", act).setEnabled(possible)
        return menu

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

    def event(self, event: QEvent) -> bool:
        """Keep Ctrl+Enter for the boxes: elsewhere in the window it marks a suggestion as done."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
            if enter and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
                event.accept()
                return True
        return super().event(event)

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
        elif key == Qt.Key.Key_C and event.modifiers() == Qt.KeyboardModifier.NoModifier:
            self.sandwiched.emit(self.current)
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
        bar, top = self.verticalScrollBar(), self.graph.level_of(node) * row_px()
        bar.setValue(min(max(bar.value(), top + 2 * row_px() - self.viewport().height()), top))
        self.setAccessibleDescription(self.words_of(node))
        self.currentChanged.emit(node)
        self.viewport().update()
