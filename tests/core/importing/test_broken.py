"""Files broken in ways that nobody foresaw: what is sound in them is shown, and what it costs is counted."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import TraceError
from core.importing import decode, decoders, open_trace, pieces, repair, scan
from core.importing.pieces import decode_piece, walk_piece
from core.importing.repair import Unreadable, parse_event

ONE = b'{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":1}'
HEAD = b'{"traceEvents": ['


def _open(tmp_path, data):
    path = tmp_path / "t.json"
    path.write_bytes(data)
    return open_trace(path)


@pytest.fixture
def entries(monkeypatch):
    """Offsets of all entries looked at one by one."""
    seen = []
    for name in ("_scalar", "_container"):
        real = getattr(scan.Walk, name)
        monkeypatch.setattr(scan.Walk, name, lambda self, at, real=real: (seen.append(at), real(self, at))[1])
    return seen


# ------------------------------------------------------------------------------------------ numbers


@pytest.mark.parametrize("number", [b"9" * 200_000, b"-" + b"9" * 400, b"1e999", b"9" * 400 + b".5", b"1" * 320])
def test_a_time_that_no_float_holds_is_no_usable_time(tmp_path, number):
    """The digits are gone over once: from each of them anew, the longest would take minutes."""
    event = ONE.replace(b'"ts":1', b'"ts":' + number)
    trace = _open(tmp_path, HEAD + event + b"," + ONE + b"]}")
    assert len(trace.slices) == 1
    assert trace.report.dropped == {"no-time": 1}
    assert trace.report.repaired == {"huge-numbers-repaired": 1}


def test_digits_in_names_and_large_floats_stay(tmp_path):
    name = "9" * 500 + " 1e999"
    text = json.dumps({"name": name, "a": 1e300, "b": 0}).encode().replace(b'"b": 0', b'"b": 1e400')
    assert parse_event(text) == ({"name": name, "a": 1e300, "b": None}, ("huge-numbers-repaired",))


def test_words_for_numbers_are_still_known():
    value, _ = parse_event(b'{"a": -1.#IND, "b": 12.#INF, "c": nan}')
    assert value == {"a": "-1.#IND", "b": "12.#INF", "c": "nan"}


def test_a_string_without_end_is_looked_along_once():
    text = b'{"a": "' + b'\\"' * 200_000  # one that began at each mark would be looked along 200 000 times
    with pytest.raises(Unreadable):
        parse_event(text)


def test_no_repair_is_tried_on_what_is_nested_too_deep(monkeypatch):
    monkeypatch.setattr(repair, "_REPAIRS", (("never", None),))
    for text in (b'{"a":' * 5_000 + b"1" + b"}" * 5_000, b"[" * 5_000 + b"]" * 5_000):
        with pytest.raises(Unreadable):
            parse_event(text)


# ------------------------------------------------------------------------------------------ cost


def test_the_midst_of_a_huge_event_is_not_read_entry_by_entry(tmp_path, entries):
    keys = b",".join(b'"key%d":%d' % (i, i) for i in range(400_000))
    event = ONE.replace(b'"dur"', b'"args":{' + keys + b'},"dur"')
    assert len(event) > 5 * decoders.PIECE_BYTES
    trace = _open(tmp_path, HEAD + event + b"," + ONE + b"]}")
    assert len(trace.slices) == 2
    assert trace.report.notes == ()
    assert len(entries) < 5 * pieces._PATIENCE


@pytest.mark.parametrize("unit", [b"{}", b'"', b"{x},\n", b'"a" '])
def test_no_more_entries_are_looked_at_than_it_takes_to_refuse(tmp_path, monkeypatch, entries, unit):
    monkeypatch.setattr(decode, "WASTE_LIMIT", 5_000)
    with pytest.raises(TraceError, match="more than 5\u202f000 entries that are no events") as caught:
        _open(tmp_path, HEAD + unit * 100_000 + b"1]}")
    assert len(entries) < 5_000 + 2 * pieces._PATIENCE
    assert 5_000 < caught.value.offset_bytes < 60_000


def test_events_behind_much_that_is_none_are_found(tmp_path):
    junk = b'{"name":"x"} ' * 20_000
    trace = _open(tmp_path, HEAD + junk + b",".join([ONE] * 500) + b"]}")
    assert len(trace.slices) == 500
    assert trace.report.dropped == {"no-phase": 20_000}
    assert trace.report.events_read == 20_500


# ------------------------------------------------------------------------------------------ backslashes


def _event(path, ts=1):
    return b'{"ph":"X","cat":"cpu_op","name":"%s","pid":1,"tid":1,"ts":%d,"dur":1,"args":{"q":1}}' % (path, ts)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (rb"C:\dir\new", r"C:\dir\new"),
        (rb"C:\dir\\", "C:\\dir\\"),  # escaped at its end alone
        (rb"C:\\dir\\new", r"C:\dir\new"),  # escaped as it should be
        (rb"C:\\dir\\", "C:\\dir\\"),
        (rb"\\server\share", r"\\server\share"),
        (rb"torch\nn\functional.py", r"torch\nn\functional.py"),
        (rb"say \"hi\"", 'say "hi"'),
        (rb"D:\say \"hi\" \\ x", 'D:\\say "hi" \\\\ x'),
        (b"C:\\dir\\", "C:\\dir\\"),  # its end not escaped either
    ],
)
def test_each_string_of_a_writer_that_escapes_here_and_not_there_is_taken_as_it_is_meant(tmp_path, written, meant):
    text = b",\n".join([_event(rb"C:\data", 1), _event(written, 5), _event(rb"C:\data", 9)])
    trace = _open(tmp_path, HEAD + text + b"]}")
    assert [trace.name(i) for i in range(3)] == [r"C:\data", meant, r"C:\data"]
    assert trace.report.dropped == {}
    assert trace.report.repaired == {"backslashes-repaired": 3}
    assert trace.event(1)["name"] == meant
    assert trace.event(2)["args"] == {"q": 1}


def test_they_take_the_fast_road(monkeypatch):
    paths = [rb"C:\dir\\", rb"C:\\dir\\x", rb"C:\dir", rb"\\server\a\\", b"none"]
    text = b",\n".join(_event(paths[i % 5], i) for i in range(200))
    slow = walk_piece(text, 70, True).columns
    monkeypatch.setattr(pieces, "walk_piece", None)
    fast = decode_piece(text, 70, True).columns
    assert fast.problems == slow.problems == {"backslashes-repaired": 160}
    assert fast.slices.start.tolist() == slow.slices.start.tolist()
    assert fast.slices.length.tolist() == slow.slices.length.tolist()
    assert [fast.strings[i] for i in fast.slices.name] == [slow.strings[i] for i in slow.slices.name]


def test_paths_whose_last_backslash_hides_the_end_of_their_string_take_it_too(monkeypatch):
    paths = [rb"C:\dir\new", b"C:\\dir\\", rb"C:\\dir\\x", b"none"]
    text = b",\n".join(_event(paths[i % 4], i) for i in range(200))
    slow = walk_piece(text, 70, True).columns
    monkeypatch.setattr(pieces, "walk_piece", None)
    fast = decode_piece(text, 70, True).columns
    assert fast.events == slow.events == 200
    assert fast.slices.start.tolist() == slow.slices.start.tolist()
    assert fast.slices.length.tolist() == slow.slices.length.tolist()
    assert [fast.strings[i] for i in fast.slices.name] == [slow.strings[i] for i in slow.slices.name]


@pytest.mark.parametrize("tail", [b"]}", b'\n  ], "traceName": "C:\\x.json"\n}', b"]\n"])
def test_such_a_path_in_the_last_event_hides_no_event(tmp_path, tail):
    last = ONE[:-1] + b',"args":{"list":[{"a":[{}]}],"path":"C:\\dir\\"}}'
    trace = _open(tmp_path, (HEAD if tail[-1:] == b"}" else b"[") + _event(rb"C:\data") + b",\n" + last + tail)
    assert len(trace.slices) == 2
    assert trace.report.dropped == {}
    assert trace.event(1 if trace.name(0) == r"C:\data" else 0)["args"]["path"] == "C:\\dir\\"


@given(
    st.lists(st.sampled_from([b"\\", b"\\\\", b'"', b'\\"', b"a", b",", b"}", b" ", b":"]), max_size=30).map(b"".join)
)
def test_many_backslashes_at_once_are_judged_as_each_by_itself(text):
    places, ends = repair.unescaped_backslashes(text)
    doubled = repair.double_backslashes(text)
    assert repair.with_doubled(text, places) == doubled
    closed = repair._CLOSING_BACKSLASH.sub(rb"\1\\\\", doubled)
    assert repair.with_doubled(text, np.union1d(places, ends)) == closed


# ------------------------------------------------------------------------------------------ nothing left


DEEP = b'{"a":' * 30_000


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 300_000,
        HEAD + b"[" * 300_000,
        HEAD + DEEP,
        HEAD + DEEP + b"}" * 30_000 + b"]}",
        HEAD + b'{"ph": "X", "na',
    ],
)
def test_a_file_of_which_nothing_can_be_read_is_refused(tmp_path, data):
    with pytest.raises(TraceError, match="none of its events can be read") as caught:
        _open(tmp_path, data)
    assert caught.value.offset_bytes in (1, len(HEAD))
    assert caught.value.hint


def test_what_is_whole_in_it_is_shown(tmp_path):
    assert len(_open(tmp_path, HEAD + ONE + b"," + DEEP).slices) == 1
    assert len(_open(tmp_path, HEAD + b"]}").slices) == 0
