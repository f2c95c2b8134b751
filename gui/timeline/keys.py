"""Keys of the timeline -> what they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent

if TYPE_CHECKING:
    from gui.timeline.view import TimelineView

_NONE = Qt.KeyboardModifier.NoModifier
_SHIFT = Qt.KeyboardModifier.ShiftModifier
_ALT = Qt.KeyboardModifier.AltModifier
_IGNORED = Qt.KeyboardModifier.KeypadModifier
ROW_SCROLL_PX = 60


class Keys:
    """Key table of one view: held keys move for as long as they are held, the others act once."""

    def __init__(self, view: TimelineView) -> None:
        self._view = view
        key = Qt.Key
        self._held = {
            key.Key_W: "in",
            key.Key_S: "out",
            key.Key_A: "left",
            key.Key_D: "right",
            key.Key_Left: "left",
            key.Key_Right: "right",
            key.Key_Plus: "in",
            key.Key_Equal: "in",
            key.Key_Minus: "out",
        }
        canvas = view.canvas
        self._once: dict[tuple[Qt.Key, Qt.KeyboardModifier], Callable[[], None]] = {
            (key.Key_F, _NONE): view.fit,
            (key.Key_R, _NONE): view.select_area,
            (key.Key_M, _NONE): lambda: view.mark(keep=False),
            (key.Key_M, _SHIFT): lambda: view.mark(keep=True),
            (key.Key_Comma, _NONE): lambda: view.neighbour(-1),
            (key.Key_Period, _NONE): lambda: view.neighbour(1),
            (key.Key_BracketLeft, _NONE): lambda: view.follow(forward=False),
            (key.Key_BracketRight, _NONE): lambda: view.follow(forward=True),
            (key.Key_J, _NONE): lambda: view.go_to_sync(-1),
            (key.Key_L, _NONE): lambda: view.go_to_sync(1),
            (key.Key_Backspace, _NONE): view.back,
            (key.Key_Left, _ALT): view.back,
            (key.Key_Right, _ALT): view.forward,
            (key.Key_Up, _NONE): lambda: canvas.set_scroll(canvas.scroll_px - ROW_SCROLL_PX),
            (key.Key_Down, _NONE): lambda: canvas.set_scroll(canvas.scroll_px + ROW_SCROLL_PX),
            (key.Key_PageUp, _NONE): lambda: canvas.set_scroll(canvas.scroll_px - canvas.high() // 2),
            (key.Key_PageDown, _NONE): lambda: canvas.set_scroll(canvas.scroll_px + canvas.high() // 2),
            (key.Key_Escape, _NONE): view.clear,
            (key.Key_C, Qt.KeyboardModifier.ControlModifier): view.copy_text,
            (key.Key_C, _NONE): view.toggle_colours,
            (key.Key_G, _NONE): view.toggle_all_flows,
            (key.Key_K, _NONE): view.toggle_legend,
            (key.Key_T, _SHIFT): view.filter.open,
            (key.Key_H, _NONE): view.empty_rows.toggle,
        }

    def _direction(self, event: QKeyEvent) -> str | None:
        modifiers = event.modifiers() & ~_IGNORED
        plain = modifiers in (_NONE, _SHIFT)
        return self._held.get(Qt.Key(event.key())) if plain else None

    def _action(self, event: QKeyEvent) -> Callable[[], None] | None:
        return self._once.get((Qt.Key(event.key()), event.modifiers() & ~_IGNORED))

    def wants(self, event: QKeyEvent) -> bool:
        """The timeline answers this key while it has the focus, whatever shortcut it is elsewhere."""
        return self._direction(event) is not None or self._action(event) is not None

    def pressed(self, event: QKeyEvent) -> bool:
        """Act on a press; False when the key means nothing here."""
        action = self._action(event)
        if action is not None:
            action()
            return True
        direction = self._direction(event)
        if direction is None:
            return False
        if not event.isAutoRepeat():
            self._view.motion.hold(direction, self._view.anchor_ns())
        return True

    def released(self, event: QKeyEvent) -> bool:
        """Act on a release; False when the key means nothing here."""
        direction = self._held.get(Qt.Key(event.key()))
        if direction is None:
            return False
        if not event.isAutoRepeat():
            self._view.motion.release(direction)
        return True
