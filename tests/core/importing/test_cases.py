"""The collection of fault cases, as far as they concern opening: each behaves as its description says."""

from __future__ import annotations

import numpy as np
import pytest

from core.errors import TraceError
from core.importing import open_trace
from core.kinds import SliceKind, TrackKind
from core.tables import FLAG_CROSSING, FLAG_NO_DURATION, FLAG_UNFINISHED
from tests.shared import CASES, case_path, needs_shared, trace_path
from tests.trace_builder import rows

pytestmark = needs_shared


def names(trace):
    return [trace.name(i) for i in range(len(trace.slices))]


def us(column):
    return (np.asarray(column) / 1000).tolist()


def busy_us(trace, device=0):
    mine = trace.device_work_mask & (trace.tracks.device[trace.slices.track_id] == device)
    order = np.argsort(trace.slices.start_ns[mine])
    start, end = trace.slices.start_ns[mine][order], trace.end_ns[mine][order]
    reach = np.maximum.accumulate(end)
    return float(reach[-1] - start[0] - np.maximum(start[1:] - reach[:-1], 0).sum()) / 1000


@pytest.mark.parametrize("name", ["a_raw_backslashes.json", "b_correctly_escaped.json"])
def test_01_windows_paths(name):
    trace = open_trace(case_path("01", name))
    assert names(trace) == [
        r"torch\cuda\__init__.py(219): _lazy_init",
        r"C:\Users\new_user\train.py(10): main",
        r"D:\bin\fetch\results\utils.py(7): go",
        r"\\server\share\nightly\run.py(1): <module>",
    ]
    assert us(trace.slices.start_ns) == [0, 10, 20, 30]
    assert us(trace.slices.dur_ns) == [8] * 4
    assert ("backslashes-repaired" in trace.report.repaired) == name.startswith("a")
    assert trace.event(1)["name"] == r"C:\Users\new_user\train.py(10): main"


def test_03_control_characters():
    trace = open_trace(case_path("03", "a.json"))
    assert [n[: len(w)] for n, w in zip(names(trace), W03, strict=True)] == W03
    assert not any(ord(c) < 32 for n in names(trace) for c in n)
    assert trace.report.repaired["control-characters-repaired"] == 5


W03 = ["|||S", "line one", "tab", "nul", "bell", "normal"]


def test_04_bytes_that_are_not_utf8():
    trace = open_trace(case_path("04", "a.json"))
    assert len(trace.slices) == 6
    assert "good 中文 name" in names(trace)
    (op,) = rows(trace, "aten::add")
    label = trace.strings[trace.tracks.name_id[trace.slices.track_id[op]]]
    assert label.startswith("pt_\ufffd")
    assert label.endswith("_worker")
    assert trace.report.repaired["invalid-utf8-repaired"] == 6


def test_05_words_for_numbers():
    trace = open_trace(case_path("05", "a.json"))
    copies = trace.slices.kind == SliceKind.MEMCPY
    assert int(copies.sum()) == 10
    assert trace.slices.dur_ns[copies].sum() == 36_000
    (kernel,) = rows(trace, "kernel: inf, nan, N/A and -inf in a name")
    assert trace.slices.dur_ns[kernel] == 6_000
    shown = [trace.args(int(i))["memory bandwidth (GB/s)"] for i in np.flatnonzero(copies)]
    assert {"inf", "nan", "N/A"} <= set(shown)
    assert 0 not in shown


def test_05_words_for_times():
    trace = open_trace(case_path("05", "b_in_ts_and_dur.json"))
    assert names(trace) == ["k", "dur is inf"]
    assert trace.report.dropped == {"no-time": 1}
    assert trace.slices.flags[1] & FLAG_NO_DURATION
    assert trace.span_ns == (0, 50_000)


@pytest.mark.parametrize(
    ("name", "ops", "note"),
    [
        ("a_cut_inside_event.json", 5, "truncated"),
        ("b_cut_inside_string.json", 5, "truncated"),
        ("c_cut_after_comma.json", 5, "truncated"),
        ("d_only_closing_missing.json", 10, "brackets-missing"),
        ("f_cut_inside_utf8_char.json", 5, "truncated"),
    ],
)
def test_06_cut_files(name, ops, note):
    trace = open_trace(case_path("06", name))
    assert names(trace) == [f"aten::op{i}" for i in range(ops)]
    assert us(trace.slices.start_ns) == [100 * i for i in range(ops)]
    assert trace.report.repaired == {note: 1}
    assert trace.report.dropped == {}


def test_06_cut_before_the_events():
    with pytest.raises(TraceError, match="no trace events in it .it ends after 60 bytes") as caught:
        open_trace(case_path("06", "e_cut_in_header.json"))
    assert caught.value.offset_bytes == 60


@pytest.mark.parametrize("name", "abcdefg")
def test_07_list_forms(name):
    (path,) = case_path("07").glob(f"{name}_*")
    trace = open_trace(path)
    assert names(trace) == ["aten::a", "aten::b", "aten::c"]
    assert us(trace.slices.start_ns) == [0, 40, 70]
    assert trace.slices.dur_ns.sum() == 60_000
    if name == "a":
        assert trace.report.notes == ()
    if name == "g":
        assert trace.report.dropped == {"not-an-event": 5}


def test_08_legacy_array():
    trace = open_trace(case_path("08", "a.json"))
    assert [trace.strings[i] for i in trace.processes.name_id] == ["CPU functions", "CUDA functions"]
    assert us(trace.slices.dur_ns) == [20.25] * 3 + [10] * 3
    assert trace.links.launch_of.tolist() == [-1, -1, -1, 0, 1, 2]
    assert busy_us(trace) == 30


def test_09_begin_and_end():
    trace = open_trace(case_path("09", "a.json"))
    spans = {
        (trace.threads.tid[trace.tracks.thread_id[trace.slices.track_id[i]]], trace.name(i)): (start, dur)
        for i, (start, dur) in enumerate(zip(us(trace.slices.start_ns), us(trace.slices.dur_ns), strict=True))
    }
    assert spans[("1", "A")] == (0, 50)
    assert spans[("1", "B")] == (10, 10)
    assert spans[("2", "D")] == (10, 30)
    assert spans[("2", "C")] == (60, 30)
    assert spans[("3", "never ends")] == (5, 95)
    assert spans[("4", "alone")] == (40, 20)
    (open_ended,) = rows(trace, "never ends")
    assert trace.slices.flags[open_ended] & FLAG_UNFINISHED
    assert us(trace.slices.dur_ns[rows(trace, "same")]) == [100, 100]
    assert us(trace.slices.dur_ns[rows(trace, "request")]) == [70, 60]
    assert trace.report.dropped == {"unmatched-end": 1}
    assert trace.report.repaired["unfinished"] == 1


def test_10_text_times():
    trace = open_trace(case_path("10", "trace_view.json"))
    device = np.flatnonzero(trace.device_work_mask)
    assert us(trace.slices.start_ns[device]) == [0, 0.51, 1.02, 1.52, 1.65]
    assert us(trace.slices.dur_ns[device]) == [0.5, 0.5, 0.49, 0.12, 1.0]
    assert trace.slices.depth[device].tolist() == [0] * 5
    (op,) = rows(trace, "aten::mm")
    assert trace.slices.dur_ns[op] == 250
    assert trace.links.launch_of[device].tolist() == [op] * 5


def test_12_crossing_slices():
    trace = open_trace(case_path("12", "a_profilerstep_crosses_frames.json"))
    assert us(trace.steps.start_ns) == [530, 1530, 2530]
    assert us(trace.steps.end_ns - trace.steps.start_ns) == [1000] * 3
    for child, parent in zip(rows(trace, "aten::addmm"), rows(trace, "aten::linear"), strict=True):
        assert trace.slices.parent_id[child] == parent
    trace = open_trace(case_path("12", "b_orphan_frame.json"))
    (lost,), (loss,), (main,) = (
        rows(trace, n) for n in ("<built-in method run>", "model.py(9): loss", "train.py(1): main")
    )
    assert trace.slices.flags[lost] & FLAG_CROSSING
    assert trace.slices.parent_id[loss] == main
    assert trace.report.repaired["crossing"] == 1


def test_14_devices_stay_apart():
    trace = open_trace(case_path("14", "b_same_stream_id_on_three_gpus.json"))
    assert [busy_us(trace, device) for device in range(3)] == [86_000, 40_000, 10_000]
    assert int((trace.tracks.kind == TrackKind.DEVICE_STREAM).sum()) == 3
    assert busy_us(open_trace(case_path("14", "c_sync_records_and_annotations.json"))) == 10_000
    assert busy_us(open_trace(case_path("14", "a_two_streams.json"))) == 80_000


def test_15_durations():
    trace = open_trace(case_path("15", "a.json"))
    assert us(trace.slices.dur_ns[rows(trace, "tiny")]) == [0.2] * 3
    for name in ("unfinished", "no dur", "end time zero"):
        (row,) = rows(trace, name)
        assert trace.slices.flags[row] & FLAG_NO_DURATION
    (zero,) = rows(trace, "zero")
    assert not trace.slices.flags[zero] & FLAG_NO_DURATION
    assert trace.report.repaired["no-duration"] == 3
    assert trace.slices.dur_ns.min() == 0
    assert trace.span_ns == (0, 28_000)


def test_16_no_steps():
    trace = open_trace(case_path("16", "a.json"))
    assert len(trace.steps) == 0
    assert busy_us(trace) == 20_000
    assert trace.span_ns[1] == 39_400_000


def test_18_steps():
    trace = open_trace(case_path("18", "a_repeat.json"))
    assert trace.steps.number.tolist() == [2, 3, 2, 3]
    assert us(trace.steps.end_ns - trace.steps.start_ns) == [1000, 1100, 1200, 1300]
    trace = open_trace(case_path("18", "b_two_threads.json"))
    assert sorted(trace.steps.thread_id.tolist()) == [0, 0, 1, 1]
    trace = open_trace(case_path("18", "c_holes_and_odd_names.json"))
    assert trace.steps.number.tolist() == [7, 12, 13]
    assert trace.report.repaired["unnumbered-step"] == 2


def test_20_graph_launch():
    trace = open_trace(case_path("20", "a.json"))
    (launch,) = rows(trace, "cudaGraphLaunch")
    kernels = trace.links.device_work_of(launch, launch + 1)
    assert len(kernels) == 200
    assert trace.slices.dur_ns[kernels].sum() == 800_000
    assert set(trace.links.launch_of[kernels]) == {launch}
    assert set(trace.links.op_of[kernels]) == {-1}
    assert busy_us(trace) == 840


def test_21_orphans():
    trace = open_trace(case_path("21", "a.json"))
    device = trace.device_ids
    assert len(device) == 11
    assert int((trace.links.launch_of[device] < 0).sum()) == 6
    linked = device[trace.links.launch_of[device] >= 0]
    delays = trace.slices.start_ns[linked] - trace.slices.start_ns[trace.links.launch_of[linked]]
    assert us(delays) == [30] * 5
    assert busy_us(trace) == 250


def test_23_arrows():
    trace = open_trace(case_path("23", "a.json"))
    (mul,), (back,), (kernel,) = (rows(trace, n) for n in ("aten::mul", "MulBackward0", "k"))
    assert (trace.links.forward.tolist(), trace.links.backward.tolist()) == ([mul], [back])
    assert trace.links.launched.tolist() == [kernel]
    assert trace.report.repaired["dangling-flow"] == 3
    assert trace.span_ns[1] == 402_000


def test_24_ids():
    trace = open_trace(case_path("24", "a.json"))
    assert len(trace.slices) == 7
    assert "140390667650624" in trace.threads.tid
    assert trace.tracks.device[trace.slices.track_id[rows(trace, "g0") + rows(trace, "g1")]].tolist() == [0, 1]
    (a,), (c,) = rows(trace, "aten::a"), rows(trace, "aten::c")
    assert trace.slices.depth[a] != trace.slices.depth[c] or trace.slices.track_id[a] != trace.slices.track_id[c]
    assert "-1" in trace.threads.tid
    assert "" in trace.threads.tid


def test_25_deep_stack():
    trace = open_trace(case_path("25", "a.json"))
    assert len(trace.slices) == 1501
    python = np.flatnonzero(trace.slices.kind == SliceKind.PYTHON)
    assert trace.slices.depth[python].tolist() == list(range(1500))
    assert us(trace.slices.dur_ns[python[[0, -1]]]) == [3001, 3]


def test_26_long_names():
    trace = open_trace(case_path("26", "a.json"))
    assert max(map(len, names(trace))) == 52041
    assert busy_us(trace) == 300
    (op,) = rows(trace, "aten::_foreach_add_")
    assert len(str(trace.args(op))) > 500_000


def test_27_unicode():
    trace = open_trace(case_path("27", "a.json"))
    found = names(trace)
    assert len(found) == 10
    assert "<b>bold</b> & <script>alert(1)</script>" in found
    assert "lone \ufffd surrogate" in found
    assert trace.strings.id_of("MERHABA") < 0
    assert sum("前向" in n for n in found) == sum("🚀" in n for n in found) == 1


@pytest.mark.parametrize("letter", "acdefghij")
def test_28_wrappings(letter):
    (path,) = case_path("28").glob(f"{letter}_*")
    trace = open_trace(path)
    assert sorted(names(trace)) == sorted(f"aten::op{i}" for i in range(2000))
    assert trace.slices.dur_ns.sum() == 100_000_000
    assert trace.span_ns == (0, 199_950_000)
    for row in (0, 777, 1999):
        assert trace.event(row)["name"] == trace.name(row)
    notes = {note.code for note in trace.report.notes}
    assert notes == {"f": {"gzip-checksum"}, "i": {"utf16"}}.get(letter, set())


def test_28_cut_and_doubled():
    (path,) = case_path("28").glob("b_*")
    trace = open_trace(path)
    assert abs(len(trace.slices) - 1326) <= 1
    assert trace.report.repaired == {"gzip-truncated": 1}
    assert trace.event(1300)["name"] == trace.name(1300)
    (path,) = case_path("28").glob("k_*")
    assert len(open_trace(path).slices) == 50


@pytest.mark.parametrize("name", ["a_empty_events.json", "b_only_metadata.json"])
def test_29_empty_traces_open(name):
    trace = open_trace(case_path("29", name))
    assert len(trace.slices) == 0
    assert trace.span_ns == (0, 0)
    assert "no-events" in trace.report.repaired


@pytest.mark.parametrize(
    ("letter", "words"),
    [
        ("c", "is empty"),
        ("d", "not a PyTorch trace"),
        ("e", "no traceEvents"),
        ("f", "speedscope"),
        ("g", "not a Chrome or PyTorch trace"),
        ("h", "HTML"),
        ("i", "Git LFS pointer"),
        ("j", "traceEvents is an object"),
        ("k", "execution trace"),
        ("l", "binary"),
    ],
)
def test_29_foreign_files_are_named(letter, words):
    (path,) = case_path("29").glob(f"{letter}_*")
    with pytest.raises(TraceError, match=words) as caught:
        open_trace(path)
    assert path.name in caught.value.title


def test_31_and_36_and_37():
    for name in ("a_multi_worker.json", "b_single_process.json"):
        trace = open_trace(case_path("31", name))
        assert us(trace.steps.end_ns - trace.steps.start_ns) == [10_000] * 4
        assert busy_us(trace) == 8_400
    trace = open_trace(case_path("36", "a.json"))
    memory = trace.memory
    assert len(memory) == 19
    first = memory.device == 0
    assert memory.allocated_bytes[first].max() == 10_000_000
    peak = int(memory.allocated_bytes[first].argmax())
    assert us(memory.time_ns[first])[peak] == 90
    assert memory.allocated_bytes[first][-1] == 4_000_000
    assert memory.allocated_bytes[memory.device == 1].max() == 3_000_000
    assert memory.allocated_bytes[memory.device == -1].max() == 500
    trace = open_trace(case_path("37", "a.json"))
    assert trace.steps.number.tolist() == [5]
    assert busy_us(trace) == 452
    (kernel,), (op,), (call,) = (
        rows(trace, n) for n in ("volta_scudnn_128x64_relu", "aten::conv2d", "cudaLaunchKernel")
    )
    assert trace.links.launch_of[kernel] == call
    assert trace.links.op_of[call] == trace.links.op_of[kernel] == op
    assert not (trace.slices.kind == SliceKind.OTHER).any()


def test_33_metadata_flood():
    trace = open_trace(case_path("33", "a.json"))
    assert len(trace.slices) == 2000
    assert len(trace.tracks) == 1
    assert trace.strings[trace.tracks.name_id[0]] in ("final name", "stream 4")
    assert busy_us(trace) == 10_000


def test_34_order():
    trace = open_trace(case_path("34", "a_children_first.json"))
    assert names(trace) == ["root", "mid", "leaf", "leaf2"]
    assert trace.slices.parent_id.tolist() == [-1, 0, 1, 0]
    for name in ("b_same_interval.json", "c_same_interval_reversed.json"):
        trace = open_trace(case_path("34", name))
        assert names(trace) == ["outer", "inner", "innermost"]
        assert trace.slices.depth.tolist() == [0, 1, 2]
    trace = open_trace(case_path("34", "d_exact_duplicates.json"))
    assert len(rows(trace, "dup")) == 3
    assert busy_us(trace) == 20


def test_invalid_json_of_torch_2_13():
    trace = open_trace(trace_path("m61"))
    (row,) = rows(trace, 'say "hi"')
    assert trace.slices.dur_ns[row] == 23_125
    assert trace.report.repaired["quotes-repaired"] == 1


def test_no_case_is_forgotten():
    mine = {path.name[:2] for path in CASES.iterdir() if path.name[:2] < "40"}
    tested = {"01", "03", "04", "05", "06", "07", "08", "09", "10", "12", "14", "15", "16", "18", "20", "21", "23",
              "24", "25", "26", "27", "28", "29", "31", "33", "34", "36", "37"}  # fmt: skip
    assert mine == tested
