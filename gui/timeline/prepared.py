"""Everything of a timeline that follows from the trace alone, made in the thread that has read it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.figures.model import Figures
from core.lanes import LaneIndex
from core.trace import Trace
from gui.timeline.counters import CounterData
from gui.timeline.layout import Layout
from gui.timeline.palette import coarse, looks
from gui.timeline.row import Row
from gui.timeline.rows import build_rows
from gui.timeline.waits import gap_lane, sync_lane


@dataclass(eq=False)
class Prepared:
    """Lanes, rows and looks of one trace. One view takes the rows over and changes them."""

    index: LaneIndex
    counters: CounterData
    rows: list[Row]
    looks: NDArray[np.uint8]
    coarse_looks: NDArray[np.uint8]
    queue: Row | None = None  # the row of the launch queue

    def take_figures(self, figures: Figures) -> None:
        """Make what a view shows of the figures, in the thread that has them, before a view asks for it."""
        from gui.timeline.step_bounds import bounds_of  # late: it needs the theme

        bounds_of(figures)
        sync_lane(figures)
        for device in self.counters.working:
            gap_lane(figures, device)
        if self.queue is not None:
            self.counters.series(self.queue, figures)

    def layout(self) -> Layout:
        """Rows for a view: the prepared ones for the first, fresh ones for any other."""
        rows, self.rows = self.rows, []
        return Layout(rows or build_rows(self.index.trace, self.index), self.index)


def prepare(trace: Trace, whole: bool = True) -> Prepared:
    """Make the parts (no Qt object among them, so that any thread can).

    Parameters
    ----------
    whole
        Also split every track into its lanes, which a view otherwise does when it first draws one.
    """
    index, counters = LaneIndex(trace), CounterData(trace)
    rows = build_rows(trace, index)
    look = looks(trace, False)
    _ = trace.end_ns, trace.span_ns, trace.has_device_work  # kept by the trace once worked out
    if whole:
        for track in range(len(trace.tracks)):
            index.lanes(track)
        for row in rows:
            if row.is_python:
                index.summary(row.track_id)
        for device in counters.working:
            counters.busy(device)
        for row in rows:
            if row.key.startswith(("memory/", "counter/")):
                counters.series(row, None)
            if row.key.startswith("memory/"):
                counters.reserved(row.device)
    queue = next((row for row in rows if row.key == "queue"), None)
    return Prepared(index, counters, rows, look, coarse(look), queue)
