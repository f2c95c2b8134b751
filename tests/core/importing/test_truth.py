"""Every real trace agrees with figures worked out by independent code.

Where a difference is allowed, it is this: the figures were computed in float64 microseconds, so a time may be off by
a nanosecond, and by up to a quarter of a microsecond where the trace writes epoch microseconds (there the digits of
the file itself are the judge, see `test_epoch_times_keep_their_nanoseconds`).
"""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from core.importing import open_trace
from core.kinds import SliceKind
from tests.shared import TRACES, TRUTH, needs_shared, trace_path

_FILES = sorted(TRUTH.glob("*.json")) if TRUTH.is_dir() else []
_KINDS = {
    "operator": "cpu", "cpu_op": "cpu", "user_annotation": "cpu", "python_function": "python",
    "runtime": "RUNTIME", "cuda_runtime": "RUNTIME", "mtia_runtime": "RUNTIME", "cuda_driver": "DRIVER",
    "kernel": "KERNEL", "mtia_ccp_events": "KERNEL", "memcpy": "MEMCPY", "gpu_memcpy": "MEMCPY",
    "memset": "MEMSET", "gpu_memset": "MEMSET", "gpu_user_annotation": "DEVICE_RANGE",
    "cuda_profiler_range": "DEVICE_RANGE", "cuda_sync": "DEVICE_SYNC", "overhead": "OVERHEAD",
}  # fmt: skip
_GROUPS = {"CPU_OP": "cpu", "RANGE": "cpu", "STEP": "cpu", "PYTHON": "python", "GC": "python"}


def _union_ms(start: np.ndarray, end: np.ndarray) -> float:
    order = np.argsort(start)
    start, reach = start[order], np.maximum.accumulate(end[order])
    return float(reach[-1] - start[0] - np.maximum(start[1:] - reach[:-1], 0).sum()) / 1e6


@needs_shared
@pytest.mark.parametrize("truth_file", _FILES, ids=lambda path: path.stem[:3])
def test_a_trace_agrees_with_its_figures(truth_file):
    truth = json.loads(truth_file.read_text())
    trace = open_trace(TRACES / truth["file"])
    if "X_events" not in truth:  # invalid JSON: nothing to compare with, but it opens
        assert len(trace.slices) > 600
        return
    slices = trace.slices
    loose_ms = 3e-4 if truth["file"].startswith("d07") else 3e-6

    wanted: Counter[str] = Counter()
    for category, n in truth["X_events"].items():
        wanted[_KINDS[category]] += n
    got: Counter[str] = Counter()
    for kind, n in zip(*np.unique(slices.kind, return_counts=True), strict=True):
        name = SliceKind(kind).name
        got[_GROUPS.get(name, name)] += int(n)
    assert got == wanted

    assert (trace.span_ns[1] - trace.span_ns[0]) / 1e6 == pytest.approx(truth["window_ms"], abs=loose_ms)
    assert [trace.strings[i] for i in trace.steps.name_id] == [step["name"] for step in truth["steps"]]
    assert trace.steps.start_ns / 1e6 == pytest.approx([s["start_ms"] for s in truth["steps"]], abs=loose_ms)
    durations = (trace.steps.end_ns - trace.steps.start_ns) / 1e6
    assert durations == pytest.approx([s["dur_ms"] for s in truth["steps"]], abs=loose_ms)
    for name, call in truth["blocking_calls"].items():
        mine = slices.name_id == trace.strings.id_of(name)
        assert int(mine.sum()) == call["n"], name
        assert slices.dur_ns[mine].sum() / 1e6 == pytest.approx(call["total_ms"], abs=1e-5)
    devices = trace.tracks.device[slices.track_id]
    for index, figures in truth["gpu"].items():
        mine = trace.device_work_mask & (devices == int(index))
        assert int(mine.sum()) == figures["ops"]
        assert slices.dur_ns[mine].sum() / 1e6 == pytest.approx(figures["sum_ms"], abs=1e-5)
        busy = _union_ms(slices.start_ns[mine], trace.end_ns[mine])
        assert busy == pytest.approx(figures["busy_union_ms"], abs=max(100 * loose_ms, 1e-2 * (loose_ms > 1e-4)))


@needs_shared
def test_epoch_times_keep_their_nanoseconds():
    trace = open_trace(trace_path("d07"))
    # in the file: 1712195495502094.565 and 1712195495537248.299; float64 would be 16 ns off
    assert trace.steps.start_ns[:2].tolist() == [0, 35_153_734]


@needs_shared
@pytest.mark.parametrize("trace_id", ["d01", "d05", "d12", "d13", "m11", "m27", "m60"])
def test_nesting_holds_everywhere(trace_id):
    trace = open_trace(trace_path(trace_id))
    slices, tracks = trace.slices, trace.tracks
    end = trace.end_ns
    child = np.flatnonzero(slices.parent_id >= 0)
    parent = slices.parent_id[child]
    assert np.all(slices.track_id[child] == slices.track_id[parent])
    assert np.all(parent < child)
    assert np.all(slices.start_ns[child] >= slices.start_ns[parent])
    plain = (slices.flags[child] & 2) == 0
    assert np.all(slices.depth[child][plain] == slices.depth[parent][plain] + 1)
    for track in range(len(tracks)):
        a, b = tracks.first_id[track], tracks.end_id[track]
        assert np.all(np.diff(slices.start_ns[a:b]) >= 0)
        assert tracks.lanes[track] == slices.depth[a:b].max() + 1
        for lane in range(min(int(tracks.lanes[track]), 40)):
            rows = np.arange(a, b)[slices.depth[a:b] == lane]
            overlap = end[rows[:-1]] - slices.start_ns[rows[1:]]
            assert overlap.max(initial=0) <= 1000, "slices of a lane overlap by more than rounding"
    for i in range(0, len(slices), max(len(slices) // 50, 1)):
        inside = slices.subtree_end[i]
        stop = tracks.end_id[slices.track_id[i]]
        assert np.all(slices.start_ns[i + 1 : inside] <= end[i])
        assert inside == stop or slices.start_ns[inside] >= end[i]


@needs_shared
def test_links_lead_both_ways():
    trace = open_trace(trace_path("d13"))  # one graph launch owns hundreds of kernels
    launch = trace.strings.id_of("hipGraphLaunch")
    (row,) = np.flatnonzero(trace.slices.name_id == launch)
    kernels = trace.links.device_work_of(int(row), int(row) + 1)
    assert len(kernels) == 421
    assert np.all(trace.links.launch_of[kernels] == row)
