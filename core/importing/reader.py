"""Reading single events again from the file they came from, long after it was opened."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

from core.errors import TraceError
from core.importing.packed import BLOCK_BYTES
from core.importing.repair import Unreadable, parse_event
from core.importing.streams import Text
from core.trace import TraceSource

_BLOCKS = 48
_AHEAD_BYTES = 1 << 15  # of a plain file: events that are looked at together mostly lie together
_EVENT_LIMIT_BYTES = 64 << 20


class FileReader:
    """Re-reads events from the files of a trace; safe to use from several threads.

    Plain files are read at the place itself and a little on. Wrapped ones (gzip, zip, zstd, other encodings) are
    unwrapped up to the place; the last blocks read are kept, and reading goes on from where it stood when the next
    place lies further on. ``first`` is the beginning of each wrapped text where it is known already (`Text.first`).
    """

    def __init__(
        self, sources: Sequence[TraceSource], raw_backslashes: Sequence[bool] = (), first: Sequence[bytes] = ()
    ) -> None:
        self._sources = tuple(sources)
        self._raw = tuple(raw_backslashes) or (False,) * len(self._sources)
        self._files = tuple(map(_Blocks, self._sources, first or [b""] * len(self._sources)))
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process reads the same files anew."""
        return FileReader, (self._sources, self._raw)

    def read(self, source_id: int, event_start: int, event_bytes: int) -> dict[str, Any]:
        """Return the whole event.

        Raises
        ------
        TraceError
            When the file changed or vanished since it was opened, or cannot be read.
        """
        source = self._sources[source_id]
        _check_unchanged(source)
        if not 0 <= event_bytes <= _EVENT_LIMIT_BYTES:
            return {}
        with self._lock:
            text = self._files[source_id].read(event_start, event_bytes)
        try:
            event, _ = parse_event(text, self._raw[source_id])
        except Unreadable:
            event = None
        if not isinstance(event, dict):
            raise TraceError(
                f"{source.path.name} no longer holds this event at byte {event_start}.",
                "",
                "The file was changed since it was opened; open it again.",
                event_start,
            )
        return event

    def holds(self, source_id: int, places: Iterable[tuple[int, int]], words: bytes) -> bool:
        """Whether the text of any of these events (start, length in bytes) holds some words: no event is parsed.

        Raises
        ------
        TraceError
            When the file changed or vanished since it was opened, or cannot be read.
        """
        _check_unchanged(self._sources[source_id])
        file = self._files[source_id]
        with self._lock:
            return any(words in file.read(start, size) for start, size in places if 0 <= size <= _EVENT_LIMIT_BYTES)

    def start_anew(self) -> None:
        """Let go of open files, in a fork: it would move the place in them under the feet of who opened them."""
        self._lock = threading.Lock()
        for file in self._files:
            file.start_anew()

    @classmethod
    def of_all(cls, readers: Sequence[FileReader]) -> FileReader:
        """Return a reader for the sources of all, in order."""
        return cls([s for one in readers for s in one._sources], [raw for one in readers for raw in one._raw])


def _check_unchanged(source: TraceSource) -> None:
    try:
        stat = source.path.stat()
    except OSError as error:
        raise TraceError(
            f"{source.path.name} is gone.",
            f"It was at {source.path}.",
            "The timeline stays usable; details of events need the file. Put it back, or open it from its new place.",
        ) from error
    if stat.st_size != source.size_bytes or stat.st_mtime_ns != source.mtime_ns:
        raise TraceError(
            f"{source.path.name} was changed since it was opened.",
            "",
            "The timeline shows the file as it was; open it again to see the new one.",
        )


class _Blocks:
    """Blocks of the unwrapped text of one file."""

    def __init__(self, source: TraceSource, first: bytes = b"") -> None:
        self._source = source
        self._text: Text | None = None
        known = first != b"" and len(first) == min(source.text_bytes, BLOCK_BYTES)
        self._wrapped = True if known else None  # not known yet; it does not change, as the file does not
        self._at = 0
        self._kept: OrderedDict[int, bytes] = OrderedDict(((0, first),) if known else ())
        self._ahead, self._ahead_at = b"", 0  # what was read last of a plain file, and from where

    def __del__(self) -> None:
        if self._text is not None:
            self._text.close()

    def start_anew(self) -> None:
        if self._text is not None:
            self._text.close()
            self._text, self._at = None, 0

    def read(self, start: int, size: int) -> bytes:
        skip = start - self._ahead_at
        if skip >= 0 and skip + size <= len(self._ahead):
            return self._ahead[skip : skip + size]
        if self._wrapped is None:
            self._text = Text(self._source.path)
            self._wrapped = self._text.wrapped
            if not self._wrapped:
                self._text.close()
                self._text = None
        if not self._wrapped:
            found = self._plain(start, max(size, _AHEAD_BYTES))
            self._ahead, self._ahead_at = found[:_AHEAD_BYTES], start
            return found[:size]
        number, skip = divmod(start, BLOCK_BYTES)
        if skip + size <= BLOCK_BYTES:
            return self._block(number)[skip : skip + size]
        last = (start + size - 1) // BLOCK_BYTES
        return b"".join(self._block(at) for at in range(number, last + 1))[skip : skip + size]

    def _plain(self, start: int, size: int) -> bytes:
        try:  # a tenth of what looking at its beginning again takes
            with self._source.path.open("rb") as file:
                file.seek(start)
                return file.read(size)
        except OSError:
            with Text(self._source.path) as text:  # says in words what is wrong
                return text.at(start, size)

    def _block(self, number: int) -> bytes:
        if number in self._kept:
            self._kept.move_to_end(number)
            return self._kept[number]
        if self._text is None or self._at > number:
            if self._text is not None:
                self._text.close()
            self._text, self._at = Text(self._source.path), 0
        block = b""
        while self._at <= number:
            block = self._next(self._text)
            self._kept[self._at] = block
            self._at += 1
            while len(self._kept) > _BLOCKS:
                self._kept.popitem(last=False)
            if not block:
                break
        return block

    @staticmethod
    def _next(text: Text) -> bytes:
        parts, size = [], 0
        while size < BLOCK_BYTES:
            part = text.read(BLOCK_BYTES - size)
            if not part:
                break
            parts.append(part)
            size += len(part)
        return b"".join(parts)
