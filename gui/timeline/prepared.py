"""Everything of a timeline that follows from the trace alone, made in the thread that has read it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.lanes import LaneIndex
from core.trace import Trace
from gui.timeline.counters import CounterData
from gui.timeline.layout import Layout
from gui.timeline.palette import coarse, looks
from gui.timeline.row import Row
from gui.timeline.rows import build_rows


@dataclass(eq=False)
class Prepared:
    """Lanes, rows and looks of one trace. One view takes the rows over and changes them."""

    index: LaneIndex
    counters: CounterData
    rows: list[Row]
    looks: NDArray[np.uint8]
    coarse_looks: NDArray[np.uint8]

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
            for lane in index.lanes(track):
                _ = lane.covered_ns
        for row in rows:
            if row.is_python:
                index.summary(row.track_id)
        for device in counters.working:
            _ = counters.busy(device).covered_ns
        for row in rows:
            if row.key.startswith(("memory/", "counter/")):
                counters.series(row, None)
    return Prepared(index, counters, rows, look, coarse(look))
