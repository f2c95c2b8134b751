"""The text of many events at once: front to back through the files they came from, each read once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import orjson

from core.errors import TraceError
from core.importing.reader import FileReader
from core.importing.streams import Text
from core.tables import I32, Whole
from core.trace import Trace

BLOCK_BYTES = 1 << 22
_LIMIT_BYTES = 64 << 20  # no event is larger
_EVERY = 4096

Progress = Callable[[float, str], None]


def event_texts(
    trace: Trace, ids: I32, progress: Progress = lambda fraction, text: None
) -> Iterator[tuple[int, bytes]]:
    """Yield the position in ``ids`` and the JSON text of each event, in the order of the files.

    Events that a file does not have (``event_start`` -1) are left out. The text is as it stands in the file, with
    whatever is wrong with it.

    Raises
    ------
    TraceError
        When a file changed or vanished since it was opened, or cannot be read.
    core.errors.Cancelled
        When ``progress`` calls it off.
    """
    slices = trace.slices
    source = trace.processes.source_id[trace.tracks.process_id[slices.track_id[ids]]]
    known = (slices.event_start[ids] >= 0) & (slices.event_bytes[ids] <= _LIMIT_BYTES)
    done = 0
    for one in np.unique(source[known]).tolist():
        mine = np.flatnonzero(known & (source == one))
        mine = mine[np.argsort(slices.event_start[ids[mine]], kind="stable")]
        if isinstance(trace.reader, FileReader):
            starts, sizes = slices.event_start[ids[mine]], slices.event_bytes[ids[mine]]
            texts = _of_file(trace, one, starts, sizes)
        else:
            texts = (orjson.dumps(trace.event(int(i))) for i in ids[mine])
        for place, text in zip(mine.tolist(), texts, strict=True):
            if done % _EVERY == 0:
                progress(done / len(ids), "")
            done += 1
            yield place, text


def _of_file(trace: Trace, source: int, starts: Whole, sizes: Whole) -> Iterator[bytes]:
    where = trace.sources[source]
    # One event read the ordinary way says in words when the file is not what it was.
    trace.reader.read(source, int(starts[0]), int(sizes[0]))
    with Text(where.path) as text:
        base, held = 0 if text.wrapped else int(starts[0]), b""
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
            while base + len(held) < start + size:
                block = text.read(BLOCK_BYTES) if text.wrapped else text.at(base + len(held), BLOCK_BYTES)
                if not block:
                    raise TraceError(
                        f"{where.path.name} ends before the event at byte {start}.",
                        "",
                        "The file was changed since it was opened; open it again.",
                        start,
                    )
                skip = min(max(start - base, 0), len(held))
                base, held = base + skip, held[skip:] + block
            yield held[start - base : start - base + size]
