"""Two documents whose views move together while they are compared."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QObject

from core.figures.model import Figures
from core.kinds import TrackKind
from gui import evidence
from gui.session import Document

if TYPE_CHECKING:
    from gui.timeline.view import TimelineView

FAR = 40  # times the stretch about a slice: another one that far away is not shown with it
LOW_PX = 260  # of a view: with all lanes of the operators the device's rows would lie below it


def typical(figures: Figures) -> int:
    """The counted step whose duration is nearest to the median, -1 without steps."""
    if not len(figures.steps):
        return -1
    counted = figures.step_figures.counted
    chosen = np.flatnonzero(counted) if counted.any() else np.arange(len(figures.steps))
    length = (figures.steps.end_ns - figures.steps.start_ns)[chosen]
    return int(chosen[int(np.argmin(np.abs(length - np.median(length))))])


class Link(QObject):
    """Keeps the views of two documents on the same stretch, counted from one step of each, while they are compared.

    The documents are the user's own, open in tabs: `leave` puts their views back to where they were.
    """

    def __init__(self, before: Document, after: Document, parent: QObject) -> None:
        super().__init__(parent)
        self._sides = (before, after)
        self._starts = [0, 0]
        self._moving = self._inside = False
        self._own: list[tuple[float, float]] = []  # where the documents were, before
        self._limits: list[tuple[float, float]] = []  # how far they could be moved, before
        self._shown: tuple[float, float] | None = None  # what of the first side was compared, when it was left
        self._wish: tuple[float, float] | None = None  # where to begin, as soon as the steps are known
        for at, document in enumerate(self._sides):
            document.viewChanged.connect(partial(self._moved, at))

    @property
    def stretch(self) -> tuple[float, float] | None:
        """What of the first side is compared, or was when it was left; None before it was shown."""
        view = self._sides[0].viewport
        return (view.start_ns, view.end_ns) if self._inside else self._shown

    def own_view(self, document: Document) -> tuple[float, float] | None:
        """Where a document is to go when the page is left; None while it is there, or where it is none of the two."""
        return self._own[self._sides.index(document)] if self._inside and document in self._sides else None

    def restore(self, stretch: tuple[float, float]) -> None:
        """Compare this stretch of the first side, as an earlier session did."""
        self._shown = self._wish = stretch
        self.begin()

    def enter(self) -> None:
        """The page is shown: go to what was compared when it was left, to a typical step at first."""
        if not self._inside:
            views = [d.viewport for d in self._sides]
            self._own = [(view.start_ns, view.end_ns) for view in views]
            self._limits = [(view.first_ns, view.last_ns) for view in views]
            self._inside = True
            self.begin(self._shown)

    def leave(self) -> None:
        """The page is left, or others are compared: the documents' views are as they were."""
        if not self._inside:
            return
        self._inside = False
        self._shown = (self._sides[0].viewport.start_ns, self._sides[0].viewport.end_ns)
        for document, window, limits in zip(self._sides, self._own, self._limits, strict=True):
            document.viewport.first_ns, document.viewport.last_ns = limits
            document.zoom_to(*window, remember=False)

    def begin(self, window: tuple[float, float] | None = None) -> None:
        """Show the typical step of the longer side on both, or a stretch of the first side, as one that is wished."""
        if not self._inside:
            return
        window = window or self._wish
        steps = [_typical_step(document) for document in self._sides]
        self._starts = [start for start, _ in steps]
        self._widen()
        if window is None:
            start = steps[0][0]
            window = (start, start + 1.1 * max(*(end - start for start, end in steps), 1000))
        self._sides[0].zoom_to(*window, remember=False)
        self._moved(0)

    def show(self, slice_ids: tuple[int, int]) -> None:
        """Select a slice on each side (-1: none), and show both; where they lie far apart, the one of the last side."""
        if not self._inside:
            return
        stretches = []
        for document, slice_id, start in zip(self._sides, slice_ids, self._starts, strict=True):
            if slice_id >= 0:
                low, high = evidence.window_about(document.trace, (slice_id,))
                stretches.append((low - start, high - start))
        if not stretches:
            return
        low, high = min(low for low, _ in stretches), max(high for _, high in stretches)
        if high - low > FAR * max(end - begin for begin, end in stretches):
            low, high = stretches[-1]
        self._sides[0].zoom_to(low + self._starts[0], high + self._starts[0], remember=False)
        self._moved(0)
        for document, slice_id in zip(self._sides, slice_ids, strict=True):
            document.select(slice_id)

    def _widen(self) -> None:
        """Let either view go as far as the other's trace reaches: the shorter one is empty there, not out of step."""
        around = [(low - start, high - start) for (low, high), start in zip(self._limits, self._starts, strict=True)]
        low, high = min(a for a, _ in around), max(b for _, b in around)
        for document, start in zip(self._sides, self._starts, strict=True):
            document.viewport.first_ns, document.viewport.last_ns = low + start, high + start

    def _moved(self, at: int) -> None:
        if self._moving or not self._inside:
            return
        here, there = self._sides[at], self._sides[1 - at]
        shift = self._starts[1 - at] - self._starts[at]
        start, end = here.viewport.start_ns + shift, here.viewport.end_ns + shift
        if abs(there.viewport.start_ns - start) < 1 and abs(there.viewport.end_ns - end) < 1:
            return
        self._moving = True
        there.zoom_to(start, end, remember=False)
        self._moving = False


def _typical_step(document: Document) -> tuple[int, int]:
    """Start and end of a typical step, of the whole trace where steps are not known."""
    figures = document.analysis.figures if document.analysis else None
    step = typical(figures) if figures is not None else -1
    if figures is None or step < 0:
        return document.trace.span_ns
    return int(figures.steps.start_ns[step]), int(figures.steps.end_ns[step])


def make_low(view: TimelineView) -> None:
    """Where little height is left for a view, one lane of each CPU row is enough, and the device's rows come into view.

    Rows that were opened by hand since are left as they are.
    """
    trace = view.document.trace
    if view.height() >= LOW_PX or not trace.has_device_work:
        return
    for row in view.rows.rows:
        if row.track_kind in (TrackKind.CPU_OPS, TrackKind.CPU_PYTHON) and row.expanded:
            view.toggle(row.key, False)
    stream = view.rows.row_of_track(int(trace.slices.track_id[trace.device_ids[0]]))
    if stream is not None:
        view.canvas.set_scroll(max(stream.y - stream.height - 8, 0))  # near the top: the height may still shrink
