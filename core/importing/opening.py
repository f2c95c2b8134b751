"""Opening traces: the one way in."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from core.importing.assemble import assemble
from core.importing.decode import Decoder, InlineDecoder, decode_text
from core.importing.notes import add_file_notes
from core.importing.reader import FileReader
from core.importing.streams import Text
from core.trace import Trace, TraceSource

Progress = Callable[[float, str], None]
_TICK_S = 0.05


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
    return read_file(path, InlineDecoder(), _Meter(progress))


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


def read_file(path: Path, decoder: Decoder, meter: _Meter) -> Trace:
    """Read one file, without any cache."""
    notes: list[tuple[str, str, int]] = []
    texts: list[Text] = []
    size = 1

    def open_text() -> Text:
        nonlocal size
        notes.clear()
        texts.append(Text(path, lambda code, example, count: notes.append((code, example, count))))
        size = max(path.stat().st_size, 1)
        return texts[-1]

    def reading() -> None:
        meter(0.8 * texts[-1].consumed_bytes / size, "Reading events")

    def note(code: str, example: str, count: int) -> None:
        notes.append((code, example, count))

    decoded = decode_text(open_text, decoder, reading, note)
    stat = path.stat()
    source = TraceSource(path.absolute(), stat.st_size, decoded.text_bytes, stat.st_mtime_ns)
    add_file_notes(decoded.columns, notes)
    reader = FileReader((source,))
    return assemble(decoded.columns, decoded.header, source, reader, lambda: meter(0.9, "Building the timeline"))
