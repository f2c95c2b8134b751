"""The replay on real traces: it reproduces each of them, and says of their waits what hand analysis says."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from core.figures.compute import compute_figures
from core.figures.model import Figures
from core.importing import open_trace
from core.replay.accuracy import own_error
from core.replay.engine import Folder
from core.replay.graph import Graph
from core.replay.replay import ProcessReplay, Replay
from core.suggestions import Effect, EffectKind
from tests.shared import needs_shared, trace_path

pytestmark = needs_shared

# Every trace of the collection with device work and steps, but those that take seconds to open.
WITH_STEPS = ("d01", "d02", "d04", "d06", "d08", "d09", "d10", "m06", "m12", "m13", "m16", "m19", "m20", "m25", "m28",
              "m38", "m39", "m40")  # fmt: skip
LARGE = ("d07", "m14", "m27")


@lru_cache(maxsize=4)
def replayed(trace_id: str) -> tuple[Figures, Replay]:
    trace = open_trace(trace_path(trace_id))
    figures = compute_figures(trace)
    return figures, Replay(trace, figures)


def saved_pct(trace_id: str, rows=None) -> float:
    """Saving of letting sync points go, % of the step."""
    figures, replay = replayed(trace_id)
    rows = range(len(figures.syncs)) if rows is None else rows
    calls = tuple(int(figures.syncs.slice_id[row]) for row in rows)
    return 100.0 * replay.what_if([Effect(EffectKind.REMOVE_WAIT, calls)]).saved_ns / replay.step_ns


@pytest.mark.parametrize("trace_id", WITH_STEPS + LARGE)
def test_the_unchanged_replay_reproduces_the_recording(trace_id: str) -> None:
    figures, replay = replayed(trace_id)
    assert replay
    assert replay.error_pct < 5.0
    measured = figures.summary.period_ns or figures.summary.step_ns
    if replay.repeated and measured:
        assert replay.step_ns == pytest.approx(measured, rel=0.06)


def with_usual_delays(part: ProcessReplay) -> Graph:
    """The graph with the usual launch delay and gap of the queue for every piece, in place of its own."""
    work, names = part.graph.work, part.view.trace.slices.name_id
    launched = work.launch_id >= 0
    call = np.where(launched, names[np.maximum(work.launch_id, 0)], -1)
    before = np.full(len(work), np.iinfo(np.int64).min)
    same = np.diff(work.stream) == 0
    before[1:][same] = work.end_ns[:-1][same]
    empty = launched & (work.launch_ns >= before)
    latency, gap = work.latency_ns.copy(), work.gap_ns.copy()
    for one in np.unique(call[launched]):
        seen = work.latency_ns[empty & (call == one)]
        latency[call == one] = int(np.median(seen)) if len(seen) else work.typical_ns
    queued = launched & ~empty
    gap[launched] = int(np.median(work.gap_ns[queued])) if queued.any() else 1000
    return replace(part.graph, work=replace(work, latency_ns=latency, gap_ns=gap))


# What holds work up there is in no trace: other ranks, whose collectives it waits for.
HELD_UP = {"m14": 10.0}


@pytest.mark.parametrize("trace_id", ["m14", *WITH_STEPS])
def test_delays_follow_from_the_order_of_things(trace_id: str) -> None:
    """Recorded delays make the unchanged replay exact by construction: without them it is nearly as good."""
    _, replay = replayed(trace_id)
    for part in replay.parts:
        graph = with_usual_delays(part)
        inside = np.isin(graph.block_step, part.counted)[graph.block_of_group][graph.group_of]
        error = own_error(graph, Folder(graph), part.changes.nothing(), part.counted, inside)
        assert error < HELD_UP.get(trace_id, 1.0)


@pytest.mark.parametrize(("trace_id", "most_alone", "together"), [("m27", 1.0, (14, 18)), ("m14", 5.5, (14, 18))])
def test_chains_of_waits(trace_id: str, most_alone: float, together: tuple[float, float]) -> None:
    """Each wait alone is worth next to nothing, all together about a sixth of the step."""
    figures, _ = replayed(trace_id)
    longest = sorted(range(len(figures.syncs)), key=lambda row: -figures.syncs.wait_ns[row])[:20]
    assert max(saved_pct(trace_id, [row]) for row in longest) < most_alone
    assert together[0] < saved_pct(trace_id) < together[1]


@pytest.mark.parametrize(
    ("trace_id", "low", "high"),
    [
        ("m25", 0.5, 2.5),  # one long final read-back: 130 ms blocked, worth next to nothing
        ("d02", 6.0, 7.5),  # batches from pageable memory
        ("m48", 8.0, 15.5),  # control flow on device tensors
        ("d01", 0.8, 1.6),  # bound by its loader: the syncs are noise
    ],
)
def test_what_the_waits_are_worth(trace_id: str, low: float, high: float) -> None:
    assert low < saved_pct(trace_id) < high


def test_a_trace_that_runs_ahead_is_bound_by_its_device() -> None:
    """Host steps of 35 to 96 ms while the launch queue fills; the device takes 96 ms throughout."""
    figures, replay = replayed("d07")
    assert figures.summary.step_ns < 80e6
    assert replay.step_ns == pytest.approx(figures.summary.period_ns, rel=0.02)
