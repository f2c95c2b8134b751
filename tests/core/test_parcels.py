from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core import parcels
from tests.trace_builder import TraceBuilder


def carried(content: Any) -> tuple[Any, Any]:
    """Send something through a pipe; return the sender's twin and what was received."""
    ours, theirs = multiprocessing.Pipe()
    kept: list[Any] = []
    thread = threading.Thread(target=lambda: kept.append(parcels.send(ours, content)))
    thread.start()
    got = parcels.receive(theirs)
    thread.join()
    ours.close()
    theirs.close()
    return kept[0], got


@pytest.mark.parametrize("shared", [True, False])
def test_columns_arrive_equal_and_read_only(shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not shared:
        monkeypatch.setattr(parcels, "_nameless_memory", lambda size_bytes: None)
    content = {"a": np.arange(3_000_000), "b": np.zeros(0, np.int32), "c": np.arange(5, dtype=np.uint8), "d": "text"}
    twin, got = carried(content)
    for held in (twin, got):
        assert held["d"] == "text"
        for name in "abc":
            assert held[name].dtype == content[name].dtype
            np.testing.assert_array_equal(held[name], content[name])
    assert not got["a"].flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        got["a"][0] = 1


@pytest.mark.parametrize(("module", "name"), [(parcels.os, "pwrite"), (parcels.mmap, "mmap")])
def test_memory_that_cannot_be_had_is_done_without(module: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other side must not be told of shared memory that then never comes."""
    asked = []

    def refused(*args: Any, **options: Any) -> Any:
        asked.append(args)
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(module, name, refused)
    twin, got = carried({"a": np.arange(3_000_000)})
    assert len(asked) == 1
    for held in (twin, got):
        np.testing.assert_array_equal(held["a"], np.arange(3_000_000))


def test_nothing_but_small_things(monkeypatch: pytest.MonkeyPatch) -> None:
    assert carried(("just", 1))[1] == ("just", 1)


def test_a_trace_arrives_whole_and_reads_its_file(tmp_path: Path) -> None:
    trace = TraceBuilder().step(0, 0, 100).op("aten::mm", 10, 20, Input_Dims=[[1, 2]]).build(tmp_path / "a.json")
    _, got = carried(trace)
    assert got.strings.values == trace.strings.values
    assert got.meta == trace.meta
    assert got.report == trace.report
    np.testing.assert_array_equal(got.slices.start_ns, trace.slices.start_ns)
    assert [got.event(i) for i in range(len(got.slices))] == [trace.event(i) for i in range(len(trace.slices))]


@pytest.mark.parametrize("threads", [True, False])
def test_many_columns_are_written_by_two_threads_where_there_are_any(
    threads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    writers, original = set(), parcels.os.pwrite

    def pwrite(*details: Any) -> int:
        writers.add(threading.current_thread().name == "parcel")
        return original(*details)

    def start(self: threading.Thread) -> None:
        if self.name == "parcel" and not threads:
            raise RuntimeError("can't start new thread")
        started(self)

    started = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr(parcels.os, "pwrite", pwrite)
    content = [np.arange(200_000) + number for number in range(8)]
    _, got = carried(content)
    assert all(np.array_equal(one, other) for one, other in zip(content, got, strict=True))
    assert writers == ({True, False} if threads else {False})
