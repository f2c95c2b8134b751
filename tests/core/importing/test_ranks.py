"""Several files open as one trace on one clock; a folder stands for the traces in it."""

import gzip

import numpy as np
import pytest

from core.errors import TraceError
from core.figures.compute import compute_figures
from core.importing import open_trace, ranks
from tests.trace_builder import TraceBuilder, rows


def _rank(rank, at_us, base_ns=1_700_000_000_000_000_000):
    builder = TraceBuilder(
        distributedInfo={"rank": rank, "world_size": 2, "backend": "nccl"}, baseTimeNanoseconds=base_ns
    )
    return (
        builder.step(1, at_us, 100)
        .op("aten::mm", at_us + 10, 30)
        .launch(f"gemm{rank}", at_us + 15, 5, at_us + 40, 20)
        .memory(at_us + 12, 64, 64)
        .counter("speed", at_us + 1, value=rank)
    )


def test_two_files_share_a_clock(tmp_path):
    paths = [_rank(r, at).write(tmp_path / f"rank{r}.json") for r, at in ((0, 50), (1, 20))]
    trace = open_trace(paths)
    assert [trace.strings[i] for i in trace.processes.name_id][:2] == ["rank 0: process 100", "rank 0: GPU 0"]
    assert trace.processes.rank.tolist() == [0, 0, 1, 1]
    assert trace.processes.source_id.tolist() == [0, 0, 1, 1]
    assert trace.meta.world_size == 2
    assert trace.steps.start_ns.tolist() == [0, 30_000]
    for rank in (0, 1):
        (kernel,) = rows(trace, f"gemm{rank}")
        call = trace.links.launch_of[kernel]
        assert trace.slices.start_ns[kernel] - trace.slices.start_ns[call] == 25_000
        assert trace.links.device_work_of(int(call), int(call) + 1).tolist() == [kernel]
        assert trace.args(kernel)["correlation"] == 1000
        assert trace.event(kernel)["name"] == f"gemm{rank}"
    assert np.all(np.diff(trace.memory.time_ns) >= 0)
    assert len(trace.counters) == 2
    for track in range(len(trace.tracks)):
        mine = slice(trace.tracks.first_id[track], trace.tracks.end_id[track])
        assert set(trace.slices.track_id[mine].tolist()) == {track}


def test_a_folder_opens_what_is_a_trace(tmp_path):
    _rank(0, 0).write(tmp_path / "a.json")
    _rank(1, 0).write(tmp_path / "b.json")
    (tmp_path / "config.json").write_text('{"lr": 0.1}')
    (tmp_path / "notes.txt").write_text("hello")
    trace = open_trace(tmp_path)
    assert len(trace.sources) == 2
    assert trace.report.repaired["file-left-out"] == 1


def test_clocks_without_relation_are_said_to_be_so(tmp_path):
    first = _rank(0, 0).write(tmp_path / "a.json")
    second = _rank(1, 0, base_ns=0).write(tmp_path / "b.json")
    trace = open_trace([first, second])
    assert "clocks-not-comparable" in trace.report.repaired
    assert trace.steps.start_ns.tolist() == [0, 0]


def test_hidden_files_of_a_folder_are_no_traces(tmp_path):
    """macOS leaves ``._name`` beside each file it copies, and tools keep caches in hidden folders."""
    TraceBuilder().op("aten::mm", 0, 10).write(tmp_path / "rank0.trace.json")
    (tmp_path / "._rank0.trace.json").write_bytes(b"\0\5\x16\7 resource fork")
    assert open_trace(tmp_path).report.notes == open_trace(tmp_path / "rank0.trace.json").report.notes
    hidden = tmp_path / "other" / ".cache"
    hidden.mkdir(parents=True)
    (hidden / "x.json").write_text("{}")
    with pytest.raises(TraceError, match="holds no trace"):
        open_trace(tmp_path / "other")


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(TraceError, match="holds no trace"):
        open_trace(tmp_path)
    with pytest.raises(TraceError, match="No trace was given"):
        open_trace([])
    with pytest.raises(TraceError, match="does not exist"):
        open_trace(tmp_path / "missing.json")


def test_a_packed_copy_beside_its_trace_is_not_a_second_recording(tmp_path):
    plain = TraceBuilder().step(0, 0, 100).op("aten::mm", 0, 50).write(tmp_path / "a.pt.trace.json")
    (tmp_path / "a.pt.trace.json.gz").write_bytes(gzip.compress(plain.read_bytes()))
    trace = open_trace(tmp_path)
    assert [source.path.name for source in trace.sources] == ["a.pt.trace.json"]
    (note,) = [note for note in trace.report.notes if note.code == "file-left-out"]
    assert (note.count, note.example) == (1, "a.pt.trace.json.gz was opened unpacked: a.pt.trace.json.")
    both = open_trace([plain, tmp_path / "a.pt.trace.json.gz"])  # chosen one by one: then both are meant
    assert len(both.sources) == 2


def test_a_copy_of_a_file_is_no_further_rank(tmp_path):
    first = _rank(0, 0).write(tmp_path / "rank0.pt.trace.json")
    (tmp_path / "rank1.pt.trace.json").write_bytes(first.read_bytes())
    _rank(2, 0).write(tmp_path / "rank2.pt.trace.json")
    trace = open_trace(tmp_path)
    assert [source.path.name for source in trace.sources] == ["rank0.pt.trace.json", "rank2.pt.trace.json"]
    (note,) = trace.report.notes
    assert (note.code, note.example) == ("copy-left-out", "rank1.pt.trace.json holds the same as rank0.pt.trace.json")
    (said,) = [note for note in compute_figures(trace).doctor if note.code == "copy-left-out"]
    assert "rank1.pt.trace.json" in said.cure


def test_a_rank_in_two_files_at_the_same_time_is_told(tmp_path):
    paths = [_rank(rank, at).write(tmp_path / f"{name}.json") for name, rank, at in (("a", 0, 0), ("{b}", 0, 40))]
    paths.append(_rank(1, 0).write(tmp_path / "c.json"))
    trace = open_trace(paths)
    (note,) = trace.report.notes
    assert (note.code, note.count, note.example) == ("rank-twice", 1, "rank 0 is in a.json and in {b}.json")
    (said,) = [note for note in compute_figures(trace).doctor if note.code == "rank-twice"]
    assert "rank 0 is in a.json and in {b}.json" in said.cure and "not to be trusted" in said.consequence


def test_a_rank_recorded_twice_in_turn_is_no_contradiction(tmp_path):
    paths = [_rank(0, at).write(tmp_path / f"{at}.json") for at in (0, 5_000)]
    assert not open_trace(paths).report.notes


def test_rows_beyond_what_a_small_column_holds_are_shifted_right():
    shifted = ranks._shifted(np.array([-1, 5], np.int16), 40_000)
    assert shifted.tolist() == [-1, 40_005]
    assert ranks._shifted(np.array([-1, 5], np.int32), 7).dtype == np.int32
