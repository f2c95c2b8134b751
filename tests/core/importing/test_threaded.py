"""Threads around the compiled reader give what decoding here gives, and their failures cost only time."""

import json
import threading

import pytest

from benchmarks.generate import write_trace
from core.errors import Cancelled
from core.importing import native, open_trace, opening, threaded
from core.importing.threaded import Threads
from tests.core.importing.test_pool import _same

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the compiled library was not built here (no C compiler)"
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("threads") / "t.json"
    with path.open("wb") as file:
        write_trace(file, 20_000, seed=6)
    return path


@pytest.fixture
def used(monkeypatch):
    """The decoders that were made; pieces are short and two cores are there."""
    made = []
    original = Threads.__init__

    def init(self, count=None):
        original(self, 2)
        made.append(self)

    monkeypatch.setattr(Threads, "__init__", init)
    monkeypatch.setattr(Threads, "piece_bytes", 1 << 17)
    monkeypatch.setattr(threaded, "MIN_BYTES", 1)
    monkeypatch.setattr(threaded.os, "cpu_count", lambda: 2)
    return made


def test_threads_give_the_same_tables(path, used):
    _same(open_trace(path, workers=0), open_trace(path))
    assert len(used) == 1
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("decoder")]


@pytest.mark.parametrize("state", ["whole", "cut", "footer", "early end", "odd", "windows", "vanishing", "no memory"])
def test_pieces_read_by_threads_give_the_same(path, tmp_path, monkeypatch, used, state):
    text = path.read_bytes()[:2_000_000]
    end = text.rindex(b",\n  {")
    middle = text.index(b",\n  {", 700_000)
    if state == "whole":
        text = text[:end] + b"\n  ]\n}\n"
    elif state == "footer":
        text = text[:end] + b'\n  ], "filler": "' + b"x" * 600_000 + b'", "traceName": "the end"}'
    elif state == "early end":
        text = text[:middle] + b'\n  ], "more": [' + text[middle + 1 : end] + b"]}"
    elif state == "odd":
        text = text[:middle] + b', {"ph": "X", "name": "a\\qb", "ts": NaN}, 5' + text[middle:end] + b"\n]}"
    elif state == "windows":
        text = text[:middle] + rb',{"ph":"X","name":"C:\q\x.py","ts":1,"dur":1}' + text[middle:]
    damaged = tmp_path / "t.json"
    damaged.write_bytes(text)
    here = open_trace(damaged, workers=0)
    original = threaded.read_range
    failed = []

    def read_range(path, start, size):
        if start > 500_000:
            failed.append(start)
            raise OSError("gone") if state == "vanishing" else MemoryError
        return original(path, start, size)

    if state in ("vanishing", "no memory"):
        monkeypatch.setattr(threaded, "read_range", read_range)
    there = open_trace(damaged)
    _same(here, there)
    assert (here.report, here.meta, here.sources) == (there.report, there.meta, there.sources)
    assert len(used) == 1
    assert bool(failed) == (state in ("vanishing", "no memory"))


def test_calling_off_ends_the_threads(path, used):
    def stop(fraction, what):
        raise Cancelled

    with pytest.raises(Cancelled):
        open_trace(path, progress=stop)
    assert len(used) == 1
    for thread in used[0]._threads._threads:
        thread.join(20)
        assert not thread.is_alive()
    with pytest.raises(Cancelled):
        used[0]._tick()  # what a long piece asks now and then


def test_no_thread_to_be_had_costs_only_time(path, used, monkeypatch):
    here = open_trace(path, workers=0)
    original = threading.Thread.start

    def start(self):
        if self.name.startswith("decoder"):
            raise RuntimeError("can't start new thread")
        original(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    _same(here, open_trace(path))
    assert len(used) == 1


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 1}, True),
        ({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5.12345, "dur": 1}, False),
    ],
)
def test_a_text_that_only_python_can_read_is_left_to_processes(tmp_path, used, event, expected):
    path = tmp_path / "t.json"
    events = [{**event, "ts": event["ts"] + i} for i in range(200)]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    assert len(open_trace(path).slices) == 200
    assert bool(used) == expected


def test_threads_are_for_texts_that_are_worth_it(monkeypatch):
    monkeypatch.setattr(threaded.os, "cpu_count", lambda: 2)
    assert threaded.worthwhile(threaded.MIN_BYTES)
    assert not threaded.worthwhile(threaded.MIN_BYTES - 1)
    monkeypatch.setattr(threaded.os, "cpu_count", lambda: 1)
    assert not threaded.worthwhile(threaded.MIN_BYTES)
    monkeypatch.setattr(threaded.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(threaded.native, "available", lambda: False)
    assert not threaded.worthwhile(threaded.MIN_BYTES)


def test_what_was_asked_for_is_used(path, used, monkeypatch):
    made = []
    original = opening.Pool.__init__
    monkeypatch.setattr(opening.Pool, "__init__", lambda self, *a: (made.append(a[0]), original(self, *a))[1])
    open_trace(path, workers=1)
    assert made == [1]
    assert not used
