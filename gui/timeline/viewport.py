"""Time <-> pixel, zoom, pan, clamp: pure arithmetic, no Qt."""

from __future__ import annotations

import math


class Viewport:
    """The visible stretch of time ``[start_ns, end_ns)`` (floats, so that zooming is smooth below one ns per pixel).

    Parameters
    ----------
    first_ns, last_ns
        Span of the trace; the view may leave it by a tenth of its own width.
    """

    MIN_WIDTH_NS = 20.0
    MARGIN = 0.1  # share of the view's width by which it may leave the trace
    HISTORY = 200  # views remembered in each direction

    def __init__(self, first_ns: int, last_ns: int) -> None:
        self.first_ns = float(first_ns)
        self.last_ns = float(max(last_ns, first_ns + 1))
        self.start_ns = self.first_ns
        self.end_ns = self.last_ns
        self._back: list[tuple[float, float]] = []
        self._forward: list[tuple[float, float]] = []

    @property
    def width_ns(self) -> float:
        """Visible time, ns."""
        return self.end_ns - self.start_ns

    @property
    def span_ns(self) -> float:
        """Length of the trace, ns."""
        return self.last_ns - self.first_ns

    @property
    def can_go_back(self) -> bool:
        """An earlier view is remembered."""
        return bool(self._back)

    @property
    def can_go_forward(self) -> bool:
        """A view left by `back` is remembered."""
        return bool(self._forward)

    def show(self, start_ns: float, end_ns: float, *, remember: bool = False) -> None:
        """Show a stretch of time, clamped to the trace."""
        if remember:
            self.remember()
        self.start_ns, self.end_ns = self.clamped(start_ns, end_ns)

    def clamped(self, start_ns: float, end_ns: float) -> tuple[float, float]:
        """Return the nearest allowed view: neither narrower than MIN_WIDTH_NS nor further out than the margin."""
        if not (math.isfinite(start_ns) and math.isfinite(end_ns)):
            return self.start_ns, self.end_ns  # nothing that can be shown: the view stays
        widest = self.span_ns * (1 + 2 * self.MARGIN)
        width = min(max(float(end_ns) - float(start_ns), self.MIN_WIDTH_NS), max(widest, self.MIN_WIDTH_NS))
        middle = (float(start_ns) + float(end_ns)) / 2
        start = middle - width / 2
        margin = width * self.MARGIN
        low, high = self.first_ns - margin, self.last_ns + margin - width
        if low > high:
            start = (low + high) / 2 if width > self.span_ns else low
        else:
            start = min(max(start, low), high)
        return start, start + width

    def remember(self) -> None:
        """Keep the present view, so that `back` returns to it."""
        here = (self.start_ns, self.end_ns)
        if not self._back or self._back[-1] != here:
            self._back.append(here)
            del self._back[: -self.HISTORY]
        self._forward.clear()

    def back(self) -> bool:
        """Return to the view before; False when there is none."""
        while self._back:
            view = self._back.pop()
            if view != (self.start_ns, self.end_ns):
                self._forward.append((self.start_ns, self.end_ns))
                self.start_ns, self.end_ns = view
                return True
        return False

    def forward(self) -> bool:
        """Return to the view that `back` left; False when there is none."""
        if not self._forward:
            return False
        self._back.append((self.start_ns, self.end_ns))
        self.start_ns, self.end_ns = self._forward.pop()
        return True

    def fit(self, *, remember: bool = False) -> None:
        """Show the whole trace with a little room at both ends."""
        margin = self.span_ns * 0.01
        self.show(self.first_ns - margin, self.last_ns + margin, remember=remember)

    def zoom(self, factor: float, anchor_ns: float) -> None:
        """Zoom about a point of time that stays where it is; factor > 1 shows more time."""
        self.start_ns, self.end_ns = self.zoomed(factor, anchor_ns)

    def zoomed(self, factor: float, anchor_ns: float) -> tuple[float, float]:
        """Return the view that `zoom` would show."""
        widest = max(self.span_ns * (1 + 2 * self.MARGIN), self.MIN_WIDTH_NS)
        width = min(max(self.width_ns * factor, self.MIN_WIDTH_NS), widest)
        share = (anchor_ns - self.start_ns) / self.width_ns
        start = anchor_ns - share * width
        return self.clamped(start, start + width)

    def pan(self, delta_ns: float) -> None:
        """Move the view; positive goes towards later times."""
        self.start_ns, self.end_ns = self.clamped(self.start_ns + delta_ns, self.end_ns + delta_ns)

    def x_of(self, time_ns: float, width_px: float) -> float:
        """Pixel of a time."""
        return (time_ns - self.start_ns) / self.width_ns * width_px

    def time_at(self, x_px: float, width_px: float) -> float:
        """Time at a pixel."""
        return self.start_ns + x_px / width_px * self.width_ns
