"""Smooth moves: the view eases towards a target, or runs while a key is held."""

from __future__ import annotations

import math

from PySide6.QtCore import QElapsedTimer, QObject, QTimer

from gui.session import Document

TICK_MS = 12
EASE_MS = 55.0  # the distance left shrinks by a factor of e in this time
ZOOM_PER_S = 5.5  # a held key zooms by e to this power in a second
PAN_PER_S = 1.3  # a held key moves by this share of the view in a second
TAP_S = 0.045  # a tap counts as holding the key so long


class Motion(QObject):
    """Moves the viewport of one document; a move from elsewhere stops it.

    ``animated`` False makes every move arrive at once (tests, pictures, and where the desktop asks for no motion).
    """

    def __init__(self, document: Document, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self.animated = True
        self._target: tuple[float, float] | None = None
        self._held: dict[str, float] = {}  # direction -> anchor, ns
        self._moving = False
        self._clock = QElapsedTimer()
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self._tick)
        self._idle = QElapsedTimer()
        document.viewChanged.connect(self._moved)

    def _moved(self) -> None:
        if not self._moving:
            self._target = None

    def _show(self, start_ns: float, end_ns: float) -> None:
        self._moving = True
        self._document.zoom_to(start_ns, end_ns, remember=False)
        self._moving = False

    def _begin(self) -> None:
        """Remember the view when a new burst of moves begins, so that "back" returns to before the burst."""
        if not self._idle.isValid() or self._idle.elapsed() > 900:
            self._document.viewport.remember()
        self._idle.restart()

    def _goal(self) -> tuple[float, float]:
        view = self._document.viewport
        return self._target or (view.start_ns, view.end_ns)

    def zoom(self, factor: float, anchor_ns: float) -> None:
        """Zoom about a time; successive calls add up."""
        self._begin()
        start, end = self._goal()
        view = self._document.viewport
        width = min(max((end - start) * factor, view.MIN_WIDTH_NS), view.span_ns * (1 + 2 * view.MARGIN))
        share = (anchor_ns - view.start_ns) / view.width_ns
        self._aim(anchor_ns - share * width, anchor_ns + (1 - share) * width)

    def pan(self, share: float) -> None:
        """Move by a share of the view's width; positive goes to later times."""
        self._begin()
        start, end = self._goal()
        shift = (end - start) * share
        self._aim(start + shift, end + shift)

    def _aim(self, start_ns: float, end_ns: float) -> None:
        goal = self._document.viewport.clamped(start_ns, end_ns)
        if not self.animated:
            self._show(*goal)
            return
        self._target = goal
        self._run()

    def _run(self) -> None:
        if not self._timer.isActive():
            self._clock.restart()
            self._timer.start()

    def hold(self, direction: str, anchor_ns: float) -> None:
        """Start moving: ``in``, ``out``, ``left`` or ``right``, until `release`."""
        self._begin()
        self._held[direction] = anchor_ns
        self._advance(TAP_S)
        if self.animated:
            self._run()

    def release(self, direction: str | None = None) -> None:
        """Stop moving in a direction (None: in all)."""
        if direction is None:
            self._held.clear()
        else:
            self._held.pop(direction, None)

    @property
    def running(self) -> bool:
        """The view is moving by itself."""
        return self._timer.isActive()

    def _tick(self) -> None:
        passed_s = min(self._clock.restart() / 1000.0, 0.08)
        if self._held:
            self._target = None
            self._advance(passed_s)
            return
        if self._target is None:
            self._timer.stop()
            return
        view = self._document.viewport
        keep = math.exp(-passed_s * 1000.0 / EASE_MS)
        start = self._target[0] + (view.start_ns - self._target[0]) * keep
        end = self._target[1] + (view.end_ns - self._target[1]) * keep
        close = max(abs(start - self._target[0]), abs(end - self._target[1])) < view.width_ns * 4e-4
        if close:
            start, end = self._target
            self._target = None
            self._timer.stop()
        self._show(start, end)

    def _advance(self, seconds: float) -> None:
        view = self._document.viewport
        start, end = view.start_ns, view.end_ns
        for direction, anchor in list(self._held.items()):
            if direction in ("in", "out"):
                factor = math.exp(ZOOM_PER_S * seconds * (-1 if direction == "in" else 1))
                width = min(max((end - start) * factor, view.MIN_WIDTH_NS), view.span_ns * (1 + 2 * view.MARGIN))
                share = (anchor - start) / (end - start)
                start, end = anchor - share * width, anchor + (1 - share) * width
            else:
                shift = (end - start) * PAN_PER_S * seconds * (-1 if direction == "left" else 1)
                start, end = view.clamped(start + shift, end + shift)
        if self._held:
            self._show(start, end)
