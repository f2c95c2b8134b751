"""Opening traces: the one way in."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson

from core.errors import TraceError
from core.importing.assemble import assemble
from core.importing.dicts import decode_events
from core.importing.reader import FileReader
from core.trace import Trace, TraceSource

Progress = Callable[[float, str], None]


def open_trace(
    paths: Path | Sequence[Path],
    *,
    progress: Progress | None = None,
    cache_dir: Path | None = None,
    workers: int | None = None,
) -> Trace:
    """Open a trace: a file, a folder, or several files as the ranks of one trace.

    Raises
    ------
    TraceError
        When nothing can be opened.
    Cancelled
        When ``progress`` raised it.
    """
    path = Path(paths) if isinstance(paths, (str, Path)) else Path(list(paths)[0])
    try:
        stat = path.stat()
        data = path.read_bytes()
    except OSError as error:
        raise TraceError(f"{path.name} cannot be read.", str(error)) from error
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    try:
        whole: Any = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise TraceError(f"{path.name} is not valid JSON.", str(error), offset_bytes=error.pos) from error
    header = whole if isinstance(whole, dict) else {}
    events = whole if isinstance(whole, list) else header.get("traceEvents")
    if not isinstance(events, list):
        raise TraceError(f"{path.name} is not a PyTorch trace.", "It has no traceEvents.")
    columns = decode_events(events)
    source = TraceSource(path.resolve(), stat.st_size, len(data), stat.st_mtime_ns)
    return assemble(columns, header, source, FileReader((source,)))
