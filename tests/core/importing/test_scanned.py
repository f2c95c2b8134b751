"""The compiled reader tells what the others tell, and leaves to them whatever it does not know."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.importing import fast, native
from core.importing.native import Scanned
from core.importing.pieces import decode_piece, decode_regular, walk_piece
from core.importing.regular import Irregular
from core.importing.scanned import decode_scanned
from tests.core.importing.roads import same_columns

pytestmark = pytest.mark.skipif(not native.available(), reason="the compiled reader was not built here (no C compiler)")

OP = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 4242, "tid": 4242, "ts": 5183.25, "dur": 12.125,
      "args": {"External id": 31, "Record function id": 0, "Input Dims": [[64, 128], [], [[3], {"a": "]}"}]],
               "Concrete Inputs": ["", "-1", "é\u2028\"\\"], "Call stack": "a(1);b(2)"}}  # fmt: skip
CALL = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4242, "tid": "4242", "ts": 5190, "dur": 3,
        "args": {"external id": 7, "cbid": 211, "correlation": 77}}  # fmt: skip
KERNEL = {"ph": "X", "cat": "kernel", "name": "void gemm<128, \"a\">(float*)", "pid": 0, "tid": 7, "ts": 5200.001,
          "dur": 100.999, "args": {"queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": 77,
                                   "grid": [1, 1, 1], "est. achieved occupancy %": 12.5e-1, "bytes": 4}}  # fmt: skip
COPY = {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7, "ts": 5400,
        "dur": 8, "args": {"External id": 5, "device": 0, "stream": 7, "size": 4096, "bytes": 1024}}  # fmt: skip
FRAME = {"ph": "X", "cat": "python_function", "name": "train.py(12): step", "pid": 4242, "tid": 4242, "ts": 1, "dur": 9,
         "args": {"Python id": 5, "Python parent id": None, "Python module id": 0}}  # fmt: skip
EVENTS = [
    OP,
    CALL,
    KERNEL,
    COPY,
    {**COPY, "args": {"size": 64}},
    FRAME,
    {"ph": "s", "id": 77, "pid": 4242, "tid": 4242, "ts": 5190, "cat": "ac2g", "name": "ac2g"},
    {"ph": "f", "bp": "e", "id": 77, "pid": 0, "tid": 7, "ts": 5200.001, "cat": "ac2g", "name": "ac2g"},
    {"ph": "i", "s": "t", "name": "[memory]", "pid": 4242, "tid": 4242, "ts": 5210.5,
     "args": {"Total Reserved": 0, "Total Allocated": 512, "Bytes": -512, "Addr": 140234, "Device Id": 0,
              "Device Type": 1}},
    {"ph": "i", "s": "p", "name": "[memory]", "pid": 4242, "tid": 4242, "ts": 5210.5, "args": {}},
    {"ph": "i", "s": "p", "name": "[memory]", "pid": 4242, "tid": 4242, "ts": 5210.5},
    {"ph": "I", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces", "tid": "Trace", "ts": -1.5, "s": "g"},
    {"ph": "M", "name": "process_name", "pid": 4242, "tid": 0, "ts": 0, "args": {"name": "python"}},
    {"ph": "M", "name": "process_labels", "pid": 4242, "tid": 0, "args": {"labels": "CPU"}},
    {"ph": "M", "name": "thread_sort_index", "pid": 4242, "tid": 7, "args": {"sort_index": 3}},
    {"ph": "C", "name": "power", "pid": 0, "ts": 5, "args": {"W": 31.5, "state": 2}},
    {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "P", "ts": 1, "dur": 2},
    {"ph": "X", "cat": "Operator", "name": "no duration", "pid": 1, "tid": 1, "ts": 3},
    {"ph": "X", "cat": "Operator", "name": "less than none", "pid": 1, "tid": 1, "ts": 3, "dur": -4},
    {"ph": "B", "cat": "user_annotation", "name": "begin", "pid": 1, "tid": 1, "ts": 4, "dur": 1},
    {"ph": "E", "pid": 1, "tid": 1, "ts": 5},
    {"name": "last", "ts": "1778630400123456.789", "dur": "1.5", "tid": 1, "pid": 1, "cat": "cpu_op", "ph": "X"},
    {"ph": "X", "cat": "cpu_op", "name": "aten::m\u006d", "pid": 1, "tid": 1, "ts": 6, "dur": 0, "more": [{}, []]},
]  # fmt: skip


def _text(events, **options) -> bytes:
    return ",\n".join(json.dumps(event, **options) for event in events).encode()


@pytest.mark.parametrize("options", [{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}])
def test_what_kineto_writes_is_taken_and_comes_out_the_same(options):
    events = EVENTS if "indent" not in options else EVENTS[:-2]
    text = _text(events, **options)
    text = text.replace(b"aten::mm", b"aten::m\\u006d", 1) + b",\n \n"
    exact = walk_piece(text, 50, final=True).columns
    same_columns(decode_scanned(text, 50), exact)
    for n in range(len(events)):
        one = _text(events[n : n + 1], **options)
        try:
            same_columns(decode_scanned(one, 7), fast.decode_regular(one, 7))
        except Irregular:
            pytest.fail(f"left to another road: {one!r}")


def test_equal_texts_written_in_different_ways_are_one():
    names = [b"aten::mm", b"aten::m\\u006d", b"a\\/b", b"a/b", b"\\u00e9", "é".encode()]
    text = b",".join(b'{"ph":"X","name":"%b","pid":1,"tid":"1","ts":1,"dur":1}' % name for name in names)
    read = decode_scanned(text, 0)
    assert [read.strings[i] for i in read.slices.name] == ["aten::mm"] * 2 + ["a/b"] * 2 + ["é"] * 2
    assert len(set(read.slices.name.tolist())) == 3
    assert read.slices.pid.tolist() == read.slices.tid.tolist()  # a number and the same text
    assert len(set(read.strings)) == len(read.strings)


NOT_TAKEN = {
    "an escape that is none": b'{"ph":"X","name":"C:\\new\\dir","ts":1,"dur":1}',
    "an unfinished escape": b'{"ph":"X","name":"\\u00g0","ts":1,"dur":1}',
    "a lone surrogate": b'{"ph":"X","name":"\\ud800","ts":1,"dur":1}',
    "a control character": b'{"ph":"X","name":"a\nb","ts":1,"dur":1}',
    "no text": b'{"ph":"X","name":"\xff","ts":1,"dur":1}',
    "no text in what is stepped over": b'{"ph":"X","name":"a","ts":1,"dur":1,"args":{"x":"\xff"}}',
    "NaN": b'{"ph":"X","name":"a","ts":1,"dur":NaN}',
    "Infinity": b'{"ph":"X","name":"a","ts":1,"dur":1,"args":{"x":-Infinity}}',
    "an exponent": b'{"ph":"X","name":"a","ts":1e3,"dur":1}',
    "four decimals": b'{"ph":"X","name":"a","ts":1.0001,"dur":1}',
    "a leading zero": b'{"ph":"X","name":"a","ts":01,"dur":1}',
    "no digits": b'{"ph":"X","name":"a","ts":1.,"dur":1}',
    "years too many": b'{"ph":"X","name":"a","ts":4611686018427388,"dur":1}',
    "a plus": b'{"ph":"X","name":"a","ts":+1,"dur":1}',
    "a comma too many": b'{"ph":"X","name":"a","ts":1,"dur":1,}',
    "a comma too few": b'{"ph":"X","name":"a","ts":1 "dur":1}',
    "a comma for nothing": b'{"ph":"X","name":"a","ts":1,"args":{"x":[1,]}}',
    "the wrong bracket": b'{"ph":"X","name":"a","ts":1,"args":{"x":[1}}}',
    "a word that is none": b'{"ph":"X","name":"a","ts":1,"args":{"x":nul}}',
    "nested too deep": b'{"ph":"X","name":"a","ts":1,"args":{"x":' + b"[" * 99 + b"]" * 99 + b"}}",
    "no time": b'{"ph":"X","name":"a","dur":1}',
    "no phase": b'{"name":"a","ts":1,"dur":1}',
    "a phase of two letters": b'{"ph":"XX","name":"a","ts":1}',
    "an unknown phase": b'{"ph":"Q","name":"a","ts":1}',
    "a half of something asynchronous": b'{"ph":"b","name":"a","ts":1,"id":4}',
    "an arrow without a number": b'{"ph":"s","cat":"a","ts":1,"id":"0x1f"}',
    "a name that is a number": b'{"ph":"X","name":3,"ts":1,"dur":1}',
    "a thread that is no integer": b'{"ph":"X","name":"a","tid":1.5,"ts":1,"dur":1}',
    "an id that is no integer": b'{"ph":"X","name":"a","ts":1,"dur":1,"args":{"External id":"seven"}}',
    "a huge id": b'{"ph":"X","name":"a","ts":1,"dur":1,"args":{"correlation":18446744073709551615}}',
    "a stream that is text": b'{"ph":"X","cat":"kernel","name":"a","ts":1,"dur":1,"args":{"stream":"7"}}',
    "sizes of memory that are text": b'{"ph":"i","name":"[memory]","ts":1,"args":{"Bytes":"7"}}',
    "a field twice": b'{"ph":"X","name":"a","name":"b","ts":1,"dur":1}',
    "arguments that are a list": b'{"ph":"X","name":"a","ts":1,"dur":1,"args":[1]}',
    "nothing": b"{}",
    "no event": b"[1]",
    "the end of the list": b'{"ph":"X","name":"a","ts":1,"dur":1}]',
    "an unfinished event": b'{"ph":"X","name":"a","ts":1,"dur":1',
}


@pytest.mark.parametrize("kind", NOT_TAKEN)
def test_what_is_not_known_is_left_to_the_others(kind):
    good = b'{"ph":"X","name":"good","ts":1,"dur":1}'
    for text in (NOT_TAKEN[kind], good + b"," + NOT_TAKEN[kind], NOT_TAKEN[kind] + b"," + good):
        with pytest.raises(Irregular):
            decode_scanned(text, 0)
        same_columns(decode_piece(text, 0).columns, _by_the_others(text))


def _by_the_others(text: bytes):
    try:
        return fast.decode_regular(text, 0)
    except Irregular:
        return walk_piece(text, 0).columns


@pytest.mark.parametrize("events", [EVENTS, EVENTS[:3] * 40])
def test_a_piece_cut_anywhere_is_read_to_the_cut_or_left(events):
    text = _text(events, separators=(",", ":"))
    for cut in range(0, len(text), 3 if len(text) > 3000 else 1):
        part = text[:cut]
        read = Scanned(part, len(part))
        complete = part.rstrip(b",\n ")
        assert (read.events >= 0) == (complete == part and (not part or _is_whole(part))), part[-60:]


def _is_whole(part: bytes) -> bool:
    try:
        json.loads(b"[" + part + b"]")
    except ValueError:
        return False
    return True


_numbers = st.integers(-(10**9), 10**15) | st.integers(0, 10**9).map(lambda n: n / 1000)
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
_argument = st.sampled_from(
    ["correlation", "External id", "external id", "bytes", "size", "device", "stream", "Python id", "Device Type",
     "Device Id", "Addr", "Bytes", "Total Allocated", "Total Reserved", "name", "labels", "sort_index", "Input Dims"]
)  # fmt: skip
_name = st.sampled_from(["a", "[memory]", 'é"\\']) | st.text()
_event = st.fixed_dictionaries(
    {"ph": st.sampled_from("XXXXXBEsfitMC"), "ts": _numbers, "name": _name},
    optional={
        "dur": _numbers,
        "cat": st.sampled_from(["cpu_op", "kernel", "gpu_memcpy", "cuda_runtime", "python_function", "Trace", "ac2g"]),
        "pid": st.integers(0, 9) | st.sampled_from(["1", "Spans"]),
        "tid": st.integers(-3, 9) | st.sampled_from(["1", "stream 7"]),
        "id": st.integers(0, 99) | st.sampled_from(["1", "0x1f"]),
        "args": st.dictionaries(_argument, st.integers(-1, 9) | _values, max_size=6),
        "s": st.just("t"),
    },
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(_event, max_size=6), st.sampled_from([None, 1]), st.booleans())
def test_whatever_is_taken_is_what_the_other_road_reads(events, indent, ascii_only):
    text = ",\n".join(json.dumps(event, indent=indent, ensure_ascii=ascii_only) for event in events).encode(
        "utf-8", "surrogatepass"
    )
    try:
        read = decode_scanned(text, 3)
    except Irregular:
        return
    try:
        other = fast.decode_regular(text, 3)
    except Irregular:  # it minds what nobody asks for, such as the device of an operator
        other = walk_piece(text, 3, final=True).columns
        for column in ("correlation", "external", "copy_bytes", "device", "stream", "order"):
            mine, others = getattr(read.slices, column), getattr(other.slices, column)
            assert ((mine == others) | (mine == -1)).all()
            setattr(other.slices, column, mine)
    same_columns(read, other)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_text_is_taken_only_where_it_still_is_json(data):
    text = bytearray(_text(data.draw(st.lists(st.sampled_from(EVENTS), min_size=1, max_size=3))))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        put = data.draw(
            st.sampled_from([b"", b'"', b"\\", b"{", b"}", b"]", b",", b":", b"\x00", b"\xff", b"0", b"e5", b" "])
        )
        text[at : at + data.draw(st.integers(0, 2))] = put
    damaged = bytes(text)
    try:
        read = decode_scanned(damaged, 0)
    except Irregular:
        return
    kept = damaged.rstrip(b", \t\r\n")
    values = json.loads(b"[" + kept + b"]")
    assert read.events == len(values)
    same_columns(decode_piece(damaged, 0).columns, read)
    exact = walk_piece(damaged, 0, final=True).columns
    for column in ("name", "category", "pid", "tid"):
        mine = [read.strings[i] for i in getattr(read.slices, column)]
        assert mine == [exact.strings[i] for i in getattr(exact.slices, column)]
    assert read.slices.time_ns.tolist() == exact.slices.time_ns.tolist()
    assert read.slices.dur_ns.tolist() == exact.slices.dur_ns.tolist()
    assert read.slices.start.tolist() == exact.slices.start.tolist()


def test_ids_stay_what_they_are_however_many_texts_there_are():
    events = [
        {"ph": "X", "name": f"n{i % 1500}", "cat": "cpu_op", "pid": i % 7, "tid": i, "ts": i} for i in range(3000)
    ]
    read = decode_scanned(_text(events), 0)
    assert [read.strings[i] for i in read.slices.name] == [event["name"] for event in events]
    assert [read.strings[i] for i in read.slices.tid] == [str(event["tid"]) for event in events]


def test_it_writes_no_more_rows_than_there_is_room_for():
    text = _text(EVENTS[:3])
    assert Scanned(text, len(text), 3).events == 3
    assert Scanned(text, len(text), 2).events == native.FULL
    assert Scanned(text, 0, 0).events == 0
    assert Scanned(b"", 5, 0).events == 0  # never beyond the text


def test_a_piece_in_which_every_text_differs_is_read_as_well():
    events = [{"ph": "X", "name": f"n{i}", "tid": f"t{i}", "pid": f"p{i}", "ts": i, "dur": 1} for i in range(12_000)]
    text = _text(events, separators=(",", ":"))
    with pytest.raises(Irregular):
        decode_scanned(text, 0)
    same_columns(decode_piece(text, 0).columns, fast.decode_regular(text, 0))


def test_the_shortest_events_find_room():
    text = b",".join([b'{"ph":"M"}'] * 5000)
    assert Scanned(text, len(text)).events == 5000


def test_a_library_that_is_none_is_done_without(tmp_path):
    broken = tmp_path / "_native.so"
    broken.write_bytes(b"\x7fELF of another machine")
    assert native._opened(broken) is None


def test_it_can_be_switched_off():
    told = "import sys; from core.importing import native; print(native.available())"
    root = Path(native.__file__).parents[2]
    for value, wanted in (("off", "False"), ("", "True")):
        done = subprocess.run(
            [sys.executable, "-c", told],
            cwd=root,
            env={native.SWITCH: value, "PATH": ""},
            capture_output=True,
            text=True,
        )
        assert done.stdout.strip() == wanted, done.stderr


def test_the_other_road_is_taken_where_it_was_not_built(monkeypatch):
    monkeypatch.setattr("core.importing.pieces.native.available", lambda: False)
    monkeypatch.setattr("core.importing.pieces.decode_scanned", None)
    same_columns(decode_regular(_text([OP, KERNEL]), 0), fast.decode_regular(_text([OP, KERNEL]), 0))


def test_columns_own_their_memory():
    read = decode_scanned(_text(EVENTS), 0)
    assert all(column.flags.c_contiguous for column in vars(read.slices).values())
    assert read.slices.time_ns.dtype == np.int64
