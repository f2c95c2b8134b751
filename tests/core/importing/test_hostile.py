"""Nothing a file holds raises anything but TraceError, and nothing makes memory grow without bound."""

from __future__ import annotations

import gzip
import json
import os
import resource
import zipfile
from pathlib import Path

import orjson
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import TraceError
from core.importing import open_trace, streams
from core.importing.decoders import PIECE_BYTES
from core.importing.pieces import decode_piece, walk_piece
from tests.trace_builder import TraceBuilder

_SETTINGS = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


def _sample():
    return (
        TraceBuilder(with_stack=1)
        .step(1, 0, 100)
        .python("train.py(14): loss", 1, 90, id=1)
        .op("aten::mm", 10, 30, Input_Dims=[[2, 3], [3, 4]], nested=[{"name": "x"}, {"name": "y"}])
        .launch("void gemm<float, 4>(int)", 15, 5, 40, 20)
        .copy("DtoH (Device -> Pageable)", 60, 20, 70, 5)
        .memory(12, 512, 512, 1024)
        .counter("speed", 5, value=1.5)
        .autograd(10, 100, 60, 100)
        .instant("Record Window End", 100)
        .to_json()
    )


SAMPLE = _sample()


def _open_or_none(folder, data):
    """The trace, or None where it was refused in words."""
    try:
        return _open(folder, data)
    except TraceError as error:
        if not error.title:
            raise
        return None


def _open(folder, data, name="t.json"):
    path = folder / name
    path.write_bytes(data)
    return open_trace(path)


@_SETTINGS
@given(st.data())
def test_random_damage_raises_only_trace_errors(tmp_path, data):
    text = bytearray(SAMPLE)
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(text) - 1))
        kind = data.draw(st.sampled_from(["flip", "cut", "drop", "insert", "swap"]))
        if kind == "flip":
            text[at] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            del text[max(at, 1) :]
        elif kind == "drop":
            del text[at : at + data.draw(st.integers(1, 40))]
        elif kind == "insert":
            text[at:at] = data.draw(st.binary(max_size=12) | st.sampled_from([b'"', b"\\", b"{", b"}]", b"[[", b"NaN"]))
        else:
            other = data.draw(st.integers(0, len(text) - 1))
            text[at], text[other] = text[other], text[at]
        if not text:
            break
    trace = _open_or_none(tmp_path, bytes(text))
    if trace is None:
        return
    for row in range(len(trace.slices)):
        trace.name(row)
        trace.event(row)
    assert (trace.slices.dur_ns >= 0).all()


@_SETTINGS
@given(st.binary(max_size=200) | st.text(alphabet='{}[]",:0123.eE-+\\ntracEvsph ', max_size=200).map(str.encode))
def test_noise_is_refused_in_words(tmp_path, noise):
    for data in (noise, b'{"traceEvents":[' + noise, gzip.compress(noise), b"\x1f\x8b" + noise, b"PK\x03\x04" + noise):
        _open_or_none(tmp_path, data)


_VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.integers(), max_size=3)
)
_PHASES = st.sampled_from(["X", "B", "E", "b", "e", "i", "M", "s", "f", "C", "kernel", "cpu_op"])
_ARGS = st.sampled_from(["correlation", "External id", "bytes", "device", "stream", "Addr", "name"])
_EVENTS = st.dictionaries(
    st.sampled_from(["ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args", "bp"]),
    _VALUES | _PHASES | st.dictionaries(_ARGS, _VALUES),
)


@_SETTINGS
@given(st.lists(_EVENTS, max_size=8))
def test_any_json_in_the_event_list_is_survived(tmp_path, events):
    try:
        data = orjson.dumps({"traceEvents": events})
    except (orjson.JSONEncodeError, TypeError):
        return
    trace = _open(tmp_path, data)
    assert trace.report.events_read == len(events)
    for row in range(len(trace.slices)):
        assert isinstance(trace.args(row), dict)


@_SETTINGS
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["cpu_op", "kernel", "python_function", "user_annotation"]),
            st.text(min_size=1, max_size=12).filter(lambda text: text.isprintable()),
            st.integers(0, 10**6),
            st.integers(0, 10**5),
            st.integers(1, 3),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_valid_traces_round_trip(tmp_path, events):
    builder = TraceBuilder(origin_us=0)
    for cat, name, ts, dur, tid in events:
        builder.slice(cat, name, ts / 1000, dur / 1000, tid=tid, pid=0 if cat == "kernel" else 100)
    trace = _open(tmp_path, builder.to_json())
    origin = min(ts for _, _, ts, _, _ in events)
    got = sorted(
        (trace.name(i), int(start), int(dur))
        for i, (start, dur) in enumerate(zip(trace.slices.start_ns, trace.slices.dur_ns, strict=True))
    )
    assert got == sorted((name, ts - origin, dur) for _, name, ts, dur, _ in events)


@pytest.mark.parametrize("unescaped", [False, True])
def test_both_roads_give_the_same_columns(unescaped):
    body = SAMPLE[SAMPLE.index(b"[", SAMPLE.index(b"traceEvents")) + 1 : SAMPLE.rindex(b"]")]
    if unescaped:
        body = body.replace(b"train.py", rb"C:\\new\users\train.py").replace(b"Record", rb"D:\Record \"x\" \\")
    fast, slow = decode_piece(body, 100, unescaped).columns, walk_piece(body, 100, unescaped).columns
    assert fast.events == slow.events
    assert fast.problems == slow.problems
    assert bool(fast.problems) == unescaped
    for group in ("slices", "flows", "memory", "instants", "counters"):
        for column, values in vars(getattr(fast, group)).items():
            other = getattr(getattr(slow, group), column)
            if column in ("category", "name", "pid", "tid"):
                assert [fast.strings[i] for i in values] == [slow.strings[i] for i in other], (group, column)
            else:
                assert values.tolist() == other.tolist(), (group, column)
            assert values.dtype == other.dtype


def _peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def test_a_bomb_is_refused(tmp_path):
    before = _peak_mb()
    packer = zstandard.ZstdCompressor().compressobj()
    data = packer.compress(b'{"traceEvents": [')
    for _ in range(300):
        data += packer.compress(b" " * (1 << 20))
    data += packer.flush()
    with pytest.raises(TraceError, match="times its size"):
        _open(tmp_path, data)
    assert _peak_mb() - before < 300


def test_a_value_without_end_is_refused(tmp_path):
    before = _peak_mb()
    path = tmp_path / "t.json"
    with path.open("wb") as file:
        file.write(b'{"traceEvents": [{"ph": "X", "ts": 1, "dur": 1, "name": "ok"}, {"name": "')
        for _ in range(60):
            file.write(b"a" * (1 << 20))
    with pytest.raises(TraceError, match="more than 32 MB") as caught:
        open_trace(path)
    assert caught.value.offset_bytes == 63
    assert _peak_mb() - before < 500


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'[{"args":'])
def test_depth_is_survived(tmp_path, opening):
    for data in (opening * 100_000, b'{"traceEvents": [' + opening * 100_000):
        trace = _open_or_none(tmp_path, data)
        assert trace is None or len(trace.slices) == 0


def test_zip_files(tmp_path):
    for names, words in ((["a.json"], None), (["a.json", "b.json"], "exactly one"), (["a.txt"], "exactly one")):
        path = tmp_path / "t.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in names:
                archive.writestr(name, SAMPLE)
        if words is None:
            trace = open_trace(path)
            assert trace.args(0) is not None
            assert len(trace.slices) == 7
        else:
            with pytest.raises(TraceError, match=words):
                open_trace(path)


def test_borders_inside_arguments_do_not_confuse(tmp_path):
    builder = TraceBuilder()
    for i in range(40):
        builder.op(f"aten::op{i}", i * 10, 5, blob=[{"name": "x" * 4000, "ph": "X", "ts": 1}] * 60)
    data = builder.to_json()
    assert len(data) > 2 * PIECE_BYTES
    trace = _open(tmp_path, data)
    assert [trace.name(i) for i in range(40)] == [f"aten::op{i}" for i in range(40)]
    assert trace.report.notes == ()
    assert trace.event(39)["args"]["blob"][59]["ph"] == "X"


@pytest.mark.parametrize("odd", ["", " ", None, True, -(2**63), 2**63, 2**64, 10**40, "0x" + "f" * 40, 1e300, [], {}])
def test_any_id_of_a_flow_is_survived(tmp_path, odd):
    builder = TraceBuilder().op("aten::mm", 0, 10).op("aten::add", 20, 10)
    for phase, ts in (("s", 5), ("f", 25)):
        builder.event(ph=phase, cat="fwdbwd", name="fwdbwd", id=odd, pid=100, tid=100, ts=ts, bp="e")
    trace = _open(tmp_path, json.dumps({"traceEvents": builder.events}).encode())
    assert len(trace.slices) == 2
    assert len(trace.links.forward) <= 1


@pytest.mark.parametrize("digits", ["9" * 6000, "0" * 6000 + "7", str(2**63)])
def test_a_step_may_have_any_number(tmp_path, digits):
    builder = TraceBuilder().slice("user_annotation", f"ProfilerStep#{digits}", 0, 10)
    trace = _open(tmp_path, json.dumps({"traceEvents": builder.events}).encode())
    assert trace.steps.number.tolist() == [7 if digits.endswith("7") and digits[0] == "0" else 1 << 62]


def test_pipes_and_devices_are_refused_at_once(tmp_path):
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(TraceError, match="is no file"):
            open_trace(path)


def test_a_file_that_cannot_be_read_to_its_start_is_no_fault_of_ours(tmp_path, monkeypatch):
    """As from a damaged disk, or a network folder that is gone."""
    path = tmp_path / "a.json"
    TraceBuilder().op("aten::mm", 0, 10).write(path)

    def fail(*details):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(streams, "_unwrap", fail)
    with pytest.raises(TraceError, match="a.json cannot be read: Input/output error"):
        open_trace(path)
