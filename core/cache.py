"""The binary cache: the finished columns of a trace in one file, so that reopening takes a fraction of the time.

A cache file is named after what the trace holds (its size and samples of its bytes) and remembers the size, the time
of change and a checksum. Whatever does not fit (another version, another trace, a damaged or half-written file) is
ignored and written anew. Nothing here ever fails loudly: without a cache the trace is simply read again.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from core.strings import StringTable
from core.tables import (
    Counter,
    InstantTable,
    LinkTable,
    MemoryTable,
    ProcessTable,
    SliceTable,
    StepTable,
    ThreadTable,
    TrackTable,
)
from core.trace import Device, EventReader, ImportNote, ImportReport, Trace, TraceMeta, TraceSource

_crc32: Callable[..., int] = zlib.crc32
with suppress(ImportError):  # the same sum, five times as fast, where there is a wheel for it
    from isal import isal_zlib

    _crc32 = isal_zlib.crc32

VERSION = 5  # raise whenever a column, a kind or a rule of the importer changes
SUFFIX = ".steplens-cache"
MAX_BYTES = 4 << 30
MAX_FILES = 64
FOLDER_VARIABLE = "STEPLENS_CACHE"
_MAGIC = b"STEPLENS"
_ALIGN = 64
_SAMPLE_BYTES = 4096
_SAMPLES = 64
_STALE_S = 24 * 3600
_CHUNK_BYTES = 8 << 20
_TABLES: dict[str, type[Any]] = {
    "slices": SliceTable,
    "tracks": TrackTable,
    "threads": ThreadTable,
    "processes": ProcessTable,
    "steps": StepTable,
    "links": LinkTable,
    "memory": MemoryTable,
    "instants": InstantTable,
}
Tick = Callable[[], None]


def user_folder() -> Path | None:
    """Folder of the user's cache of traces; None where the environment turns the cache off.

    ``STEPLENS_CACHE`` names another folder, and turns the cache off when it is empty. Otherwise it is where the
    system keeps caches: ``XDG_CACHE_HOME`` or ``~/.cache`` (XDG base directory specification), ``~/Library/Caches``
    on macOS, ``%LOCALAPPDATA%`` on Windows.
    """
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen is not None:
        return Path(chosen).expanduser() if chosen.strip() else None
    try:
        if sys.platform == "win32":
            base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        else:
            base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # nobody's home
        return None
    return base / "steplens" / "traces" if base.is_absolute() else None


def fingerprint(path: Path, size_bytes: int) -> str:
    """Hash of a file's size and of samples spread over its bytes.

    Raises
    ------
    OSError
        When the file cannot be read.
    """
    digest = hashlib.blake2b(f"{VERSION}:{size_bytes}".encode(), digest_size=20)
    last = max(size_bytes - _SAMPLE_BYTES, 0)
    with path.open("rb") as file:
        for at in sorted({last * i // _SAMPLES for i in range(_SAMPLES + 1)}):
            file.seek(at)
            digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()


def load(
    folder: Path, path: Path, stat: os.stat_result, make_reader: Callable[[TraceSource, dict[str, Any]], EventReader]
) -> Trace | None:
    """Return the cached trace of a file, None when there is none that fits.

    Parameters
    ----------
    folder
        The cache's folder.
    path, stat
        The trace file and what it is now.
    make_reader
        Makes the reader of single events from the source and the facts that `store` was given.
    """
    try:
        held = folder / (fingerprint(path, stat.st_size) + SUFFIX)
        data = np.fromfile(held, np.uint8)
        trace = _parse(data, path, stat, make_reader)
        if trace is not None:
            os.utime(held)
        return trace
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):  # a damaged file is no file
        return None


def store(folder: Path, trace: Trace, facts: dict[str, Any], tick: Tick = lambda: None) -> bool:
    """Write the cache file of a trace of one source; True when it is there afterwards.

    The file appears all at once or not at all, whatever else is written at the same time.
    """
    source = trace.sources[0]
    partial: Path | None = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        name = fingerprint(source.path, source.size_bytes) + SUFFIX
        handle, text = tempfile.mkstemp(prefix=name, suffix=".partial", dir=folder)
        partial = Path(text)
        with os.fdopen(handle, "wb") as file:
            for block in _blocks(trace, facts):
                for at in range(0, len(block), _CHUNK_BYTES):
                    file.write(block[at : at + _CHUNK_BYTES])
                    tick()
        os.replace(partial, folder / name)
        partial = None
        _trim(folder)
        return True
    except (OSError, TypeError, ValueError):  # no space, no permission, a header that no JSON can hold
        return False
    finally:
        if partial is not None:
            with suppress(OSError):
                partial.unlink()


def store_later(folder: Path, trace: Trace, facts: dict[str, Any]) -> None:
    """Write the cache file of a trace in the background: nobody waits for it but the end of the program."""
    writer = threading.Thread(target=store, args=(folder, trace, facts), name="trace-cache", daemon=False)
    try:
        writer.start()
    except RuntimeError:  # no thread to be had, or the program is ending
        return
    _writers[:] = [other for other in _writers if other.is_alive()]
    _writers.append(writer)


def finish() -> None:
    """Wait for what `store_later` still writes."""
    while _writers:
        _writers.pop().join()


_writers: list[threading.Thread] = []


def _trim(folder: Path) -> None:
    """Keep the cache within its bounds: what was used longest ago goes first."""
    now = time.time()
    held = []
    for path in folder.iterdir():
        with suppress(OSError):
            stat = path.stat()
            if path.name.endswith(".partial") and SUFFIX in path.name and now - stat.st_mtime > _STALE_S:
                path.unlink()
            elif path.name.endswith(SUFFIX):
                held.append((stat.st_mtime, stat.st_size, path))
    held.sort(reverse=True)
    total = 0
    for position, (_, size, path) in enumerate(held):
        total += size
        if position and (total > MAX_BYTES or position >= MAX_FILES):
            with suppress(OSError):
                path.unlink()


def _blocks(trace: Trace, facts: dict[str, Any]) -> Iterator[memoryview]:
    """The bytes of a cache file: magic, lengths and checksum, the description, the aligned columns."""
    columns: list[np.ndarray[Any, Any]] = []
    layout: dict[str, Any] = {}
    at = 0

    def add(column: Any) -> dict[str, Any]:
        nonlocal at
        array = np.ascontiguousarray(column)
        entry = {"dtype": array.dtype.str, "at": at, "n": len(array)}
        columns.append(array)
        at += -(-array.nbytes // _ALIGN) * _ALIGN
        return entry

    for name in _TABLES:
        table = getattr(trace, name)
        layout[name] = {
            f.name: {"text": list(value)} if isinstance(value := getattr(table, f.name), tuple) else add(value)
            for f in fields(table)
        }
    texts = [text.encode("utf-8", "surrogatepass") for text in trace.strings.values]
    layout["strings"] = {
        "bytes": add(np.frombuffer(b"".join(texts), np.uint8)),
        "ends": add(np.cumsum([len(text) for text in texts], dtype=np.int64)),
    }
    layout["counters"] = [
        {"name": c.name, "process_id": c.process_id, "time_ns": add(c.time_ns), "value": add(c.value)}
        for c in trace.counters
    ]
    source = trace.sources[0]
    layout["source"] = {
        "size_bytes": source.size_bytes, "text_bytes": source.text_bytes, "mtime_ns": source.mtime_ns,
    }  # fmt: skip
    layout["meta"] = asdict(trace.meta)
    layout["report"] = asdict(trace.report)
    layout["facts"] = facts
    described = orjson.dumps(layout)
    crc = _crc32(described)
    padded = []
    for array in columns:
        raw = array.view(np.uint8).data if array.nbytes else memoryview(b"")
        padded.append(raw)
        crc = _crc32(raw, crc)
        fill = memoryview(bytes(-array.nbytes % _ALIGN))
        padded.append(fill)
        crc = _crc32(fill, crc)
    head = _MAGIC + np.array([VERSION, len(described), crc], "<u8").tobytes()
    space = -(len(head) + len(described)) % _ALIGN
    yield memoryview(head + described + bytes(space))
    yield from padded


def _parse(
    data: np.ndarray[Any, Any],
    path: Path,
    stat: os.stat_result,
    make_reader: Callable[[TraceSource, dict[str, Any]], EventReader],
) -> Trace | None:
    head_bytes = len(_MAGIC) + 24
    if data[: len(_MAGIC)].tobytes() != _MAGIC:
        return None
    version, described_bytes, crc = data[len(_MAGIC) : head_bytes].view("<u8").tolist()
    if version != VERSION or described_bytes > len(data):
        return None
    body = -(-(head_bytes + described_bytes) // _ALIGN) * _ALIGN
    described = data[head_bytes : head_bytes + described_bytes].tobytes()
    if _crc32(data[body:].data, _crc32(described)) != crc:
        return None
    layout = orjson.loads(described)
    kept = layout["source"]
    if kept["size_bytes"] != stat.st_size or kept["mtime_ns"] != stat.st_mtime_ns:
        return None

    def column(entry: dict[str, Any]) -> Any:
        if "text" in entry:
            return tuple(entry["text"])
        dtype = np.dtype(entry["dtype"])
        start = body + entry["at"]
        values = data[start : start + entry["n"] * dtype.itemsize].view(dtype)
        values.setflags(write=False)
        return values

    tables = {
        name: table(**{f.name: column(layout[name][f.name]) for f in fields(table)}) for name, table in _TABLES.items()
    }
    source = TraceSource(path.absolute(), kept["size_bytes"], kept["text_bytes"], kept["mtime_ns"])
    return Trace(
        sources=(source,),
        strings=StringTable(_strings(column(layout["strings"]["bytes"]), column(layout["strings"]["ends"]))),
        counters=tuple(
            Counter(c["name"], c["process_id"], column(c["time_ns"]), column(c["value"])) for c in layout["counters"]
        ),
        meta=_meta(layout["meta"]),
        report=_report(layout["report"]),
        reader=make_reader(source, layout["facts"]),
        **tables,
    )


def _strings(held: Any, ends: Any) -> Sequence[str]:
    text = held.tobytes()
    bounds = [0, *ends.tolist()]
    return [text[a:b].decode("utf-8", "surrogatepass") for a, b in zip(bounds, bounds[1:], strict=False)]


def _meta(held: dict[str, Any]) -> TraceMeta:
    devices = tuple(Device(**device) for device in held.pop("devices"))
    return TraceMeta(devices=devices, **held)


def _report(held: dict[str, Any]) -> ImportReport:
    notes = tuple(ImportNote(**note) for note in held.pop("notes"))
    return ImportReport(notes=notes, **held)
