"""The cache gives back what was stored, and whatever is wrong with it only costs time."""

from __future__ import annotations

import os
import zlib
from dataclasses import fields

import numpy as np
import pytest

from core import cache
from core.importing import opening
from tests.trace_builder import TraceBuilder

_TABLES = ("slices", "tracks", "threads", "processes", "steps", "links", "memory", "instants")


@pytest.fixture(autouse=True)
def every_size_is_cached(monkeypatch):
    monkeypatch.setattr(opening, "_CACHED_FROM_BYTES", 0)


@pytest.fixture
def path(tmp_path):
    builder = TraceBuilder(distributedInfo={"rank": 3, "world_size": 8}, traceName="ünicode")
    for i in range(20):
        builder.step(i, i * 100, 90).op(f"aten::op{i % 3}", i * 100 + 5, 40, number=i)
        builder.launch("gemm 中", i * 100 + 10, 5, i * 100 + 30, 20).memory(i * 100 + 12, 64, 64 * i)
        builder.counter("speed", i * 100, value=i)
    builder.instant("Record Window End", 2100).slice("cpu_op", "open", 2050, None)
    return builder.write(tmp_path / "t.json")


def _open(path, **options):
    """Open a trace and wait until what there is to keep is kept."""
    trace = opening.open_trace(path, **options)
    cache.finish()
    return trace


def _files(folder):
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _assert_same(one, two):
    for name in _TABLES:
        for f in fields(getattr(one, name)):
            a, b = getattr(getattr(one, name), f.name), getattr(getattr(two, name), f.name)
            if isinstance(a, tuple):
                assert a == b
            else:
                assert a.dtype == b.dtype, (name, f.name)
                assert np.array_equal(a, b), (name, f.name)
                assert not b.flags.writeable
    assert list(one.strings.values) == list(two.strings.values)
    assert (one.meta, one.report, one.sources) == (two.meta, two.report, two.sources)
    for a, b in zip(one.counters, two.counters, strict=True):
        assert (a.name, a.process_id, a.value.tolist()) == (b.name, b.process_id, b.value.tolist())


def _count_reads(monkeypatch):
    reads = []
    original = opening.read_file
    monkeypatch.setattr(opening, "read_file", lambda *a, **k: reads.append(1) or original(*a, **k))
    return reads


def test_reopening_gives_the_same_trace_without_reading(path, tmp_path, monkeypatch):
    reads = _count_reads(monkeypatch)
    cold = _open(path, cache_dir=tmp_path / "cache")
    warm = _open(path, cache_dir=tmp_path / "cache")
    assert len(reads) == 1
    _assert_same(cold, warm)
    assert warm.args(0) == cold.args(0)
    assert len(_files(tmp_path / "cache")) == 1


def test_a_changed_trace_is_read_again(path, tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    _open(path, cache_dir=folder)
    reads = _count_reads(monkeypatch)
    text = path.read_bytes().replace(b"aten::op1", b"aten::opX")
    path.write_bytes(text)
    assert _open(path, cache_dir=folder).strings.id_of("aten::opX") >= 0
    os.utime(path, ns=(1, 1))  # the same bytes at another time: they might have changed between the samples
    _open(path, cache_dir=folder)
    assert len(reads) == 2


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "foreign", "version"])
def test_a_damaged_cache_is_ignored_and_rebuilt(path, tmp_path, monkeypatch, damage):
    folder = tmp_path / "cache"
    cold = _open(path, cache_dir=folder)
    (held,) = _files(folder)
    data = bytearray(held.read_bytes())
    if damage == "cut":
        data = data[: len(data) // 2]
    elif damage == "flip":
        data[len(data) - 100] ^= 1
    elif damage == "empty":
        data = bytearray()
    elif damage == "foreign":
        data = bytearray(b"not a cache" * 50)
    else:
        data[8] ^= 0xFF
    held.write_bytes(bytes(data))
    reads = _count_reads(monkeypatch)
    _assert_same(cold, _open(path, cache_dir=folder))
    _assert_same(cold, _open(path, cache_dir=folder))
    assert len(reads) == 1


def test_a_cache_that_cannot_be_written_is_no_loss(path, tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    assert len(_open(path, cache_dir=blocked).slices)

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.os, "replace", full)
    assert len(_open(path, cache_dir=tmp_path / "cache").slices)
    assert _files(tmp_path / "cache") == []


def test_the_cache_stays_within_bounds(path, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "MAX_FILES", 3)
    folder = tmp_path / "cache"
    for i in range(6):
        other = TraceBuilder().op(f"aten::op{i}", 0, 10).write(tmp_path / f"{i}.json")
        _open(other, cache_dir=folder)
        for age, held in enumerate(sorted(_files(folder), key=lambda p: p.stat().st_mtime_ns)):
            os.utime(held, (1000 + i * 100 + age, 1000 + i * 100 + age))
    assert len(_files(folder)) == 3


def test_two_windows_on_one_cache(path, tmp_path):
    folder = tmp_path / "cache"
    first, second = (opening.read_file(path, opening._Meter(None)) for _ in range(2))
    assert cache.store(folder, *first)
    assert cache.store(folder, *second)
    assert len(_files(folder)) == 1
    _assert_same(first[0], _open(path, cache_dir=folder))


def test_the_folder_is_the_users_and_can_be_turned_off(tmp_path, monkeypatch):
    monkeypatch.delenv(cache.FOLDER_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    places = {
        "linux": "x/steplens/traces",
        "win32": "local/steplens/traces",
        "darwin": "Library/Caches/steplens/traces",
    }
    for platform, place in places.items():
        monkeypatch.setattr(cache.sys, "platform", platform)
        home = cache.Path.home() if platform == "darwin" else tmp_path
        assert cache.user_folder() == home / place
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path / "mine"))
    assert cache.user_folder() == tmp_path / "mine"
    monkeypatch.setenv(cache.FOLDER_VARIABLE, "")
    assert cache.user_folder() is None


def test_the_checksum_is_the_same_whatever_works_it_out():
    data = bytes(range(256)) * 300
    assert cache._crc32(data[7:], cache._crc32(data[:7])) == zlib.crc32(data)
