"""Time <-> pixel, zoom, pan, clamp: pure arithmetic, no Qt."""

from __future__ import annotations


class Viewport:
    """The visible stretch of time ``[start_ns, end_ns)`` (floats, so that zooming is smooth below one ns per pixel).

    Parameters
    ----------
    first_ns, last_ns
        Span of the trace; the view may leave it by a tenth of its own width.
    """

    MIN_WIDTH_NS = 20.0

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

    def show(self, start_ns: float, end_ns: float, *, remember: bool = False) -> None:
        """Show a stretch of time, clamped to the trace."""
        if remember:
            self._back.append((self.start_ns, self.end_ns))
            self._forward.clear()
        self.start_ns, self.end_ns = float(start_ns), float(max(end_ns, start_ns + self.MIN_WIDTH_NS))

    def zoom(self, factor: float, anchor_ns: float) -> None:
        """Zoom about a point of time that stays where it is; factor > 1 shows more time."""
        width = min(max(self.width_ns * factor, self.MIN_WIDTH_NS), (self.last_ns - self.first_ns) * 1.2)
        share = (anchor_ns - self.start_ns) / self.width_ns
        self.start_ns = anchor_ns - share * width
        self.end_ns = self.start_ns + width

    def x_of(self, time_ns: float, width_px: float) -> float:
        """Pixel of a time."""
        return (time_ns - self.start_ns) / self.width_ns * width_px

    def time_at(self, x_px: float, width_px: float) -> float:
        """Time at a pixel."""
        return self.start_ns + x_px / width_px * self.width_ns
