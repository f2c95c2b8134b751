from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import Cancelled, TraceError
from core.importing import open_trace
from core.trace import Trace
from core.trim import chosen_slices, trim
from tests.shared import needs_shared, trace_path
from tests.trace_builder import TraceBuilder, rows


def steps() -> TraceBuilder:
    made = TraceBuilder(with_stack=1, baseTimeNanoseconds=1_700_000_000_000_000_000)
    for k in range(4):
        at = k * 1000
        made.step(k, at, 990).op(f"aten::mm_{k}", at + 20, 60, Input_Dims=[[4, 8]])
        made.launch(f"gemm_{k}", at=at + 40, call=10, start=at + 900, dur=300)
        made.memory(at + 30, 512, 512 * (k + 1), 4096).counter("power", at + 10, watts=100.0 + k)
    return made


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return steps().build(tmp_path / "train.json")


def test_range_is_kept_with_the_work_it_launched(trace: Trace, tmp_path: Path) -> None:
    out = tmp_path / "part.json.gz"
    count = trim(trace, out, 1_000_000, 2_000_000)
    part = open_trace(out)
    names = {part.name(i) for i in range(len(part.slices))}
    assert count == len(part.slices)
    assert {"ProfilerStep#1", "aten::mm_1", "gemm_1"} <= names
    assert not {"aten::mm_0", "aten::mm_2", "gemm_3"} & names
    assert int((part.links.launch_of >= 0).sum()) == 2  # gemm_0 runs into the range, and keeps its launch
    assert part.report.dropped == {}
    assert part.report.repaired == {}


def test_times_sizes_and_arguments_stay(trace: Trace, tmp_path: Path) -> None:
    out = tmp_path / "part.json"
    trim(trace, out, 1_000_000, 2_000_000)
    part = open_trace(out)
    old, new = rows(trace, "aten::mm_1")[0], rows(part, "aten::mm_1")[0]
    shift = trace.meta.origin_ns - part.meta.origin_ns
    assert int(part.slices.start_ns[new]) == int(trace.slices.start_ns[old]) + shift
    assert part.slices.dur_ns[new] == trace.slices.dur_ns[old]
    assert part.args(new)["Input Dims"] == [[4, 8]]
    assert part.memory.allocated_bytes.tolist() == [1024]
    assert [c.value.tolist() for c in part.counters] == [[101.0]]


def test_every_viewer_finds_what_it_needs(trace: Trace, tmp_path: Path) -> None:
    out = tmp_path / "part.json.gz"
    trim(trace, out, 0, 1_000_000)
    text: dict[str, Any] = json.loads(gzip.decompress(out.read_bytes()))
    events = text["traceEvents"]
    assert all(isinstance(e["ts"], (int, float)) for e in events)
    starts = [e["id"] for e in events if e["ph"] == "s"]
    assert starts
    assert starts == [e["id"] for e in events if e["ph"] == "f"]
    assert text["deviceProperties"][0]["name"] == "Test GPU"


def test_chosen_tracks_only(trace: Trace, tmp_path: Path) -> None:
    track = int(trace.slices.track_id[rows(trace, "gemm_1")[0]])
    ids = chosen_slices(trace, 0, 4_000_000, [track])
    assert set(trace.slices.track_id[ids].tolist()) == {track}


def test_nothing_is_overwritten(trace: Trace, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="exists already"):
        trim(trace, tmp_path / "train.json", 0, 1_000_000)
    assert len(open_trace(tmp_path / "train.json").slices) == len(trace.slices)
    with pytest.raises(TraceError, match=r"\.json"):
        trim(trace, tmp_path / "part.txt", 0, 1_000_000)


def test_an_empty_range_and_a_changed_source_are_told(trace: Trace, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="nothing to save"):
        trim(trace, tmp_path / "part.json", 90_000_000, 91_000_000)
    (tmp_path / "train.json").write_text("{}")
    with pytest.raises(TraceError, match="has changed"):
        trim(trace, tmp_path / "part.json", 0, 1_000_000)
    assert not (tmp_path / "part.json").exists()


def test_cancelling_leaves_no_file(trace: Trace, tmp_path: Path) -> None:
    def stop(fraction: float, what: str) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        trim(trace, tmp_path / "part.json.gz", 0, 4_000_000, progress=stop)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["train.json"]


@needs_shared
@pytest.mark.parametrize("name", ["m14", "d09", "d13", "m19"])
def test_real_traces_come_back_the_same(name: str, tmp_path: Path) -> None:
    trace = open_trace(trace_path(name))
    first, last = trace.span_ns
    middle = (first + last) // 2
    out = tmp_path / "part.json.gz"
    ids = chosen_slices(trace, first, middle)
    assert trim(trace, out, first, middle) == len(ids)
    part = open_trace(out)
    assert sorted(part.slices.dur_ns.tolist()) == sorted(trace.slices.dur_ns[ids].tolist())
    kept = np.zeros(len(trace.slices), np.bool_)
    kept[ids] = True
    launches = trace.links.launch_of[ids]
    assert int((part.links.launch_of >= 0).sum()) == int((launches >= 0).sum())
