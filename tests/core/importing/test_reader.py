"""Arguments are read again on demand, from plain and packed files, and a changed file is noticed."""

import gzip

import pytest

from core.errors import Cancelled, TraceError
from core.importing import open_trace, reader
from tests.trace_builder import TraceBuilder


def _many(n=3000):
    builder = TraceBuilder()
    for i in range(n):
        builder.op(f"aten::op{i % 7}", i * 10, 5, number=i)
    return builder


@pytest.mark.parametrize("packed", [False, True])
def test_every_event_is_found_again(tmp_path, packed):
    data = _many().to_json()
    path = tmp_path / ("t.json.gz" if packed else "t.json")
    path.write_bytes(gzip.compress(data) if packed else data)
    trace = open_trace(path)
    for row in (2999, 0, 1500, 1501):
        assert trace.args(row)["number"] == row
        assert data[trace.slices.event_start[row] :][: trace.slices.event_bytes[row]].startswith(b'{"ph":"X"')


@pytest.mark.parametrize("packed", [False, True])
def test_words_are_found_in_events_without_parsing_them(tmp_path, packed):
    data = _many().to_json()
    path = tmp_path / ("t.json.gz" if packed else "t.json")
    path.write_bytes(gzip.compress(data) if packed else data)
    trace = open_trace(path)
    places = list(zip(trace.slices.event_start.tolist(), trace.slices.event_bytes.tolist(), strict=True))
    assert trace.reader.holds(0, [places[2999], places[7]], b'"number":2999')
    assert not trace.reader.holds(0, [places[2998], places[7]], b'"number":2999')


def test_events_longer_than_what_is_read_ahead_are_whole(tmp_path):
    builder = TraceBuilder()
    for i in range(3):
        builder.op("aten::op", i * 10, 5, number=i, words="x" * (1 << 16))
    trace = open_trace(builder.write(tmp_path / "t.json"))
    for row in (0, 2, 1, 2):
        args = trace.args(row)
        assert (args["number"], len(args["words"])) == (row, 1 << 16)


def test_a_file_that_changed_or_vanished(tmp_path):
    path = _many(5).write(tmp_path / "t.json")
    trace = open_trace(path)
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(TraceError, match="changed since it was opened"):
        trace.args(0)
    path.unlink()
    with pytest.raises(TraceError, match="is gone"):
        trace.args(0)
    assert len(trace.slices) == 5


def test_progress_rises_and_can_call_off(tmp_path):
    path = _many(200).write(tmp_path / "t.json")

    def stop(fraction, what):
        raise Cancelled

    with pytest.raises(Cancelled):
        open_trace(path, progress=stop)
    seen = []
    open_trace(path, progress=lambda fraction, what: seen.append(fraction))
    assert seen == sorted(seen)
    assert all(0 <= fraction <= 1 for fraction in seen)


@pytest.mark.parametrize("held", [True, 5, 0.5, "text", [1, 2], [["a", 1]], None])
def test_arguments_that_are_no_object_are_none(tmp_path, held):
    builder = TraceBuilder().event(ph="X", cat="cpu_op", name="odd", pid=1, tid=1, ts=0, dur=5, args=held)
    assert open_trace(builder.write(tmp_path / "t.json")).args(0) == {}


def test_what_cannot_be_opened_is_said_once_and_with_its_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TraceError) as missing:
        open_trace("nowhere.json")
    assert str(tmp_path / "nowhere.json") in missing.value.detail
    (tmp_path / "nothing.json").touch()
    with pytest.raises(TraceError) as empty:
        open_trace(tmp_path / "nothing.json")
    assert str(empty.value).count("empty") == 1


def test_the_beginning_of_a_packed_file_is_not_unpacked_again(tmp_path, monkeypatch):
    data = _many(30_000).to_json()  # several blocks
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(data))
    trace = open_trace(path)
    opened = []
    text = reader.Text
    monkeypatch.setattr(reader, "Text", lambda path: opened.append(path) or text(path))
    assert trace.args(3)["number"] == 3
    assert not opened
    assert trace.args(29_999)["number"] == 29_999
    assert trace.args(5)["number"] == 5
    assert opened == [path]
