"""Opening traces: the one way in."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from stat import S_ISREG
from typing import Any

from core import cache, memory
from core.errors import TraceError
from core.importing import threaded
from core.importing.aside import aside
from core.importing.assemble import assemble
from core.importing.decode import decode_text
from core.importing.decoders import Decoder, InlineDecoder
from core.importing.notes import add_file_notes, make_note
from core.importing.pool import Pool, worker_count
from core.importing.ranks import find_traces, merge, without_copies, without_twins
from core.importing.reader import FileReader
from core.importing.streams import Text
from core.importing.threaded import Threads
from core.trace import Trace, TraceSource

Progress = Callable[[float, str], None]
_TICK_S = 0.04
_CACHED_FROM_BYTES = 4 << 20  # smaller texts are read faster than a cache is worth


def open_trace(
    paths: Path | Sequence[Path],
    *,
    progress: Progress | None = None,
    cache_dir: Path | None = None,
    workers: int | None = None,
) -> Trace:
    """Open a trace: a file, a folder, or several files as the ranks of one trace.

    Parameters
    ----------
    paths
        A file, a folder, or several of either. More than one trace opens as one timeline, aligned by their clocks.
    progress
        Called with (fraction 0..1, what is being done), at most 25 times a second; raises `Cancelled` to stop.
    cache_dir
        Folder of the binary cache; None uses none.
    workers
        Processes that help with decoding; None chooses by the size of the file and the number of cores, 0 uses none.

    Raises
    ------
    TraceError
        When nothing can be opened.
    Cancelled
        When ``progress`` raised it.
    """
    given = [Path(paths)] if isinstance(paths, (str, Path)) else [Path(path) for path in paths]
    files = find_traces(given)
    of_folder = any(path.is_dir() for path in given)
    traces: list[Trace] = []
    left_out: list[TraceError] = []
    copies: list[tuple[Path, Path]] = []
    if of_folder:
        files, twins = without_twins(files)
        left_out += [TraceError(f"{path.name} was opened unpacked: {twin.name}.") for path, twin in twins]
        files, copies = without_copies(files)
    for position, path in enumerate(files):
        meter = _Meter(progress, position / len(files), 1 / len(files))
        try:
            traces.append(_open_file(path, meter, workers, cache_dir))
        except TraceError as error:
            if not of_folder or len(files) == 1:
                raise
            left_out.append(error)
    if not traces:
        raise left_out[0]
    if len(traces) == 1:
        return _with_left_out(traces[0], left_out, copies)
    trace = aside(lambda _: merge(traces), lambda: _Meter(progress)(0.99, "Putting the ranks together"))
    return _with_left_out(trace, left_out, copies)


def _with_left_out(trace: Trace, left_out: list[TraceError], copies: list[tuple[Path, Path]]) -> Trace:
    notes = []
    if left_out:
        notes.append(make_note("file-left-out", len(left_out), left_out[0].title))
    if copies:
        path, first = copies[0]
        notes.append(make_note("copy-left-out", len(copies), f"{path.name} holds the same as {first.name}"))
    report = trace.report
    every = (*report.notes, *notes)
    return replace(trace, report=replace(report, notes=every)) if notes else trace


class _Meter:
    """Reports progress, not more often than a person can see."""

    def __init__(self, progress: Progress | None, start: float = 0.0, span: float = 1.0) -> None:
        self._progress, self._start, self._span = progress, start, span
        self._last = 0.0

    def __call__(self, fraction: float, what: str) -> None:
        now = time.monotonic()
        if self._progress is not None and now - self._last >= _TICK_S:
            self._last = now
            self._progress(self._start + self._span * min(fraction, 1.0), what)


def _open_file(path: Path, meter: _Meter, workers: int | None, cache_dir: Path | None) -> Trace:
    """Open one file, from the cache where it holds it."""
    stat = _stat(path)
    if cache_dir is None or _text_size(path, stat.st_size) < _CACHED_FROM_BYTES:
        return read_file(path, meter, workers)[0]
    trace = aside(lambda _: cache.load(cache_dir, path, stat, _reader), lambda: meter(0.0, "Reading events"))
    if trace is None:
        trace, facts = read_file(path, meter, workers)
        cache.store_later(cache_dir, trace, facts)
    return trace


def _reader(source: TraceSource, facts: dict[str, Any]) -> FileReader:
    return FileReader((source,), (bool(facts["raw_backslashes"]),))


def read_file(path: Path, meter: _Meter, workers: int | None = None) -> tuple[Trace, dict[str, Any]]:
    """Read one file, without any cache; returns the trace and what its reader has to know."""
    notes: list[tuple[str, str, int]] = []
    texts: list[Text] = []
    stat = _stat(path)

    def note(code: str, example: str, count: int) -> None:
        notes.append((code, example, count))

    def open_text() -> Text:
        notes.clear()
        texts.append(Text(path, note))
        return texts[-1]

    def reading() -> None:
        meter(0.8 * texts[-1].consumed_bytes / max(stat.st_size, 1), "Reading events")

    text_bytes = _text_size(path, stat.st_size)
    with _decoder_for(open_text, text_bytes, workers, reading) as decoder:
        decoded = decode_text(open_text, decoder, reading, note)
    if decoder.depth > 1:
        memory.give_back()
    source = TraceSource(path.absolute(), stat.st_size, decoded.text_bytes, stat.st_mtime_ns)
    add_file_notes(decoded.columns, notes)
    facts = {"raw_backslashes": decoded.raw_backslashes}
    reader = FileReader((source,), (decoded.raw_backslashes,), (texts[-1].first,))
    columns, head = decoded.columns, decoded.header
    del decoded  # its columns are let go one by one
    built = aside(
        lambda tick: assemble(columns, head, source, reader, tick), lambda: meter(0.9, "Building the timeline")
    )
    return built, facts


def _decoder_for(
    open_text: Callable[[], Text], text_bytes: int, workers: int | None, tick: Callable[[], None]
) -> AbstractContextManager[Decoder]:
    """Where a text of about this size is decoded: in threads, in ``workers`` processes, or here."""
    if workers is None and threaded.worthwhile(text_bytes) and threaded.suits(open_text()):
        return Threads()
    count = worker_count(text_bytes, workers)
    return Pool(count, text_bytes) if count else nullcontext(InlineDecoder(tick))


def _text_size(path: Path, size: int) -> int:
    """Guess at the size of the text, good enough to choose the number of workers: traces shrink by about 15."""
    try:
        with path.open("rb") as file:
            head = file.read(4)
    except OSError:
        return 0
    packed = head[:2] == b"\x1f\x8b" or head[:4] in (b"\x28\xb5\x2f\xfd", b"PK\x03\x04")
    return 15 * size if packed else size


def _stat(path: Path) -> os.stat_result:
    try:
        found = path.stat()
    except OSError:
        Text(path).close()  # says what is wrong in words
        raise
    if not S_ISREG(found.st_mode):  # opening a pipe would wait for its writer, and a device may never end
        raise TraceError(
            f"{path.name} is no file: a pipe or a device cannot be read twice, as the details of an event need it.",
            f"Found at {path}.",
            "Write what comes out of it to a file, and open that.",
        )
    return found
