"""Reading single events again from the file they came from."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from core.errors import TraceError
from core.trace import TraceSource


class FileReader:
    """Re-reads events from the files of a trace."""

    def __init__(self, sources: Sequence[TraceSource]) -> None:
        self._sources = tuple(sources)

    def read(self, source_id: int, event_start: int, event_bytes: int) -> dict[str, Any]:
        """Return the whole event; raise `TraceError` when the file changed or vanished."""
        source = self._sources[source_id]
        try:
            data = Path(source.path).read_bytes()
        except OSError as error:
            raise TraceError(f"{source.path.name} cannot be read any more.", str(error)) from error
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        event = orjson.loads(data[event_start : event_start + event_bytes])
        return event if isinstance(event, dict) else {}
