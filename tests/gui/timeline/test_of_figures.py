"""What a timeline makes of the figures is made once for all stages of a diagnosis, of the columns as they stand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from core.figures.compute import compute_figures
from core.lanes import LaneIndex
from gui.timeline.counters import CounterData
from gui.timeline.rows import build_rows
from gui.timeline.waits import gap_lane, sync_lane
from tests.gui.conftest import training


def later(figures):
    """Figures of a later stage: another summary, the same tables."""
    return replace(figures, summary=replace(figures.summary, sustained_step_ns=1.0))


def test_stages_of_a_diagnosis_share_lanes_and_curves() -> None:
    trace = training().build()
    figures = compute_figures(trace)
    counters = CounterData(trace)
    queue = next(row for row in build_rows(trace, LaneIndex(trace)) if row.key == "queue")
    assert gap_lane(later(figures), 0) is gap_lane(figures, 0)
    assert sync_lane(later(figures)) is sync_lane(figures)
    assert counters.series(queue, None) is None
    assert counters.series(queue, figures) is not None
    assert counters.series(queue, later(figures)) is counters.series(queue, figures)
    other = replace(figures, queue_time_ns=figures.queue_time_ns[:1], queue_depth=figures.queue_depth[:1])
    assert len(counters.series(queue, other).time_ns) == 1


def test_gaps_in_order_are_not_copied_and_others_are_sorted() -> None:
    figures = compute_figures(training().build())
    gaps = figures.gaps
    lane = gap_lane(figures, 0)
    assert len(lane) > 2
    assert np.shares_memory(lane.start_ns, gaps.start_ns)
    assert lane.ids.tolist() == np.flatnonzero(gaps.device == 0).tolist()
    turned = replace(gaps, **{name: getattr(gaps, name)[::-1].copy() for name in gaps.__dataclass_fields__})
    again = gap_lane(replace(figures, gaps=turned), 0)
    assert again.start_ns.tolist() == lane.start_ns.tolist()
    assert turned.start_ns[again.ids].tolist() == lane.start_ns.tolist()
