"""From the text of a file to its columns: pieces are cut at event borders and decoded in order."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from core.importing import refusals
from core.importing.aside import aside
from core.importing.columns import EventColumns
from core.importing.decoders import Decoder, Future, Read
from core.importing.dicts import DROPPING
from core.importing.ends import note_rest, read_footer
from core.importing.gather import Gathering
from core.importing.packed import BLOCK_BYTES
from core.importing.pieces import PieceResult, walk_piece
from core.importing.scan import (
    EVENT_LIMIT_BYTES,
    HEADER_LIMIT_BYTES,
    Layout,
    find_events,
    foreign,
    last_border,
)
from core.importing.streams import Text

_BORDER_WINDOW_BYTES = 1 << 16  # an event's border is looked for in as much of a piece's end
WASTE_LIMIT = 100_000  # entries without use, each looked at by itself: as many as nearly all of a file is no trace
_JSON = re.compile(rb"[\[\s]*(?:[{\"\]\-0-9]|true|false|null)")  # the first value of a list, or its end
_GAP = b" \t\r\n,\x00"  # what may stand between events
Tick = Callable[[], None]


class _RawBackslashes(Exception):
    """The writer escaped nothing: read the file again in that light."""


@dataclass
class Decoded:
    """Everything read from one file."""

    columns: EventColumns
    header: dict[str, Any]
    text_bytes: int
    raw_backslashes: bool


def decode_text(
    open_text: Callable[[], Text], decoder: Decoder, tick: Tick, note: Callable[[str, str, int], None]
) -> Decoded:
    """Decode a whole file.

    Parameters
    ----------
    open_text
        Opens the text from its beginning (called again when the file has to be read in another light).
    decoder
        Where pieces are decoded.
    tick
        Called after every block and piece; may raise `core.errors.Cancelled`.
    note
        Called with (code, example, count) for losses and repairs of the whole file.

    Raises
    ------
    TraceError
        When the text holds no trace.
    """
    reading = _Reading(open_text(), decoder, tick, note, raw_backslashes=False)
    try:
        return reading.run()
    except _RawBackslashes:
        reading.drop()
        return _Reading(open_text(), decoder, tick, note, raw_backslashes=True).run()


class _Reading:
    def __init__(
        self, text: Text, decoder: Decoder, tick: Tick, note: Callable[[str, str, int], None], raw_backslashes: bool
    ) -> None:
        self._text, self._decoder, self._tick, self._note = text, decoder, tick, note
        self._raw = raw_backslashes
        self._pending: deque[tuple[Future, Read, int, int]] = deque()
        self._gathering = Gathering(lasting=not decoder.reads_files)
        self._carry = b""
        self._base = 0
        self._ended = self._closed = self._trailing_comma = False
        self._retry_bytes = 0
        self._wasted = self._events_read = 0
        self._rest: list[bytes] = []  # text behind the list of events

    def run(self) -> Decoded:
        with self._text:
            layout, buffer = self._head()
            start = b"" if _JSON.match(buffer) else b"[" + buffer[:HEADER_LIMIT_BYTES]
            self._base = layout.start
            if self._decoder.reads_files and not self._text.wrapped:
                self._ranges()
                buffer = b""
            if not self._ended:
                self._events(buffer)
            footer = self._finish(layout)
        self._decoder.close()  # before the columns are put together, which needs memory
        for code in layout.repairs:
            self._note(code, "header", 1)
        columns = aside(self._gathering.finish, self._tick)
        if columns.events and layout.form != "object" and not _any_event(columns):
            if start:  # such as a .toml file, whose sections begin like lists
                raise refusals.no_json(self._text.path.name, start)
            raise refusals.no_event(self._text.path.name, columns.events)
        if self._is_ruined(columns):
            raise refusals.nothing_readable(self._text.path.name, layout.start)
        if not any(map(len, (columns.slices, columns.memory, columns.instants, columns.counters))):
            self._note("no-usable-events" if any(map(columns.problems.get, DROPPING)) else "no-events", "", 1)
        return Decoded(columns, {**layout.header, **footer}, self._text.read_bytes, self._raw)

    def _is_ruined(self, columns: EventColumns) -> bool:
        """Whether something stands where the events should be, and none of it could be read."""
        unread = columns.problems.get("event-unreadable", 0)
        return unread == columns.events and not _any_event(columns) and bool(unread or self._carry.strip(_GAP))

    def _head(self) -> tuple[Layout, bytes]:
        """Read until the list of events begins."""
        parts: list[bytes] = []
        size, looked_at = 0, 64  # the first block may be what was peeked at
        while True:
            block = self._text.read(BLOCK_BYTES)
            self._tick()
            parts.append(block)
            size += len(block)
            if block and size < 2 * looked_at and size < HEADER_LIMIT_BYTES:
                continue
            text = b"".join(parts)
            parts, looked_at = [text], size
            layout = find_events(text, final=not block)
            if layout is not None:
                return layout, text[layout.start :]
            if not size and self._text.size_bytes:
                raise refusals.nothing_unpacked(self._text.path.name, self._text.size_bytes)
            if not block or size >= HEADER_LIMIT_BYTES:
                raise foreign(self._text.path.name, text, self._text.read_bytes)

    def _events(self, buffer: bytes) -> None:
        piece_bytes = self._decoder.piece_bytes
        buffer = self._submit_most(buffer)
        parts, size, wanted = [buffer], len(buffer), piece_bytes
        while not self._ended:
            while size < wanted:
                block = self._text.read(BLOCK_BYTES)
                self._tick()
                if not block:
                    self._last(b"".join(parts))
                    return
                parts.append(block)
                size += len(block)
            text = b"".join(parts)
            cut = last_border(text)
            wanted = piece_bytes
            if cut > 0:
                self._submit(text[:cut])
                text = text[cut:]
            elif size < 2 * piece_bytes:
                wanted = 2 * piece_bytes
            else:  # one huge event, or no list of events any more
                self._submit(text)
                text = b""
            parts, size = [text], len(text)
            if len(self._pending) >= self._decoder.depth:
                self._collect(len(self._pending) - self._decoder.depth + 1)
        self._collect(len(self._pending))
        self._rest.append(b"".join(parts))

    def _submit_most(self, text: bytes) -> bytes:
        """Submit a long text piece by piece, and return what is left: it was read to find where the events begin."""
        size, at = self._decoder.piece_bytes, 0
        while not self._ended and len(text) - at > 2 * size:
            piece = text[at : at + size]
            cut = last_border(piece)
            if cut <= 0:
                piece = text[at : at + 2 * size]
                cut = last_border(piece)
            self._submit(piece[:cut] if cut > 0 else piece)
            at += cut if cut > 0 else len(piece)
            self._tick()
            if len(self._pending) >= self._decoder.depth:
                self._collect(len(self._pending) - self._decoder.depth + 1)
        return text[at:]

    def _ranges(self) -> None:
        """Let the decoder read a plain file itself, so that its text need not pass through here.

        Where that is not possible (any more), and for the last pieces, reading goes on here at ``self._base``.
        """
        text, piece_bytes = self._text, self._decoder.piece_bytes
        while not self._ended and self._base + 2 * piece_bytes < text.size_bytes:
            end = self._base + piece_bytes
            cut = last_border(text.at(end - _BORDER_WINDOW_BYTES, _BORDER_WINDOW_BYTES))
            self._tick()
            if cut <= 0:
                break  # a huge event, or no list of events any more
            size = end - _BORDER_WINDOW_BYTES + cut - self._base
            read = partial(text.at, self._base, size)
            future = self._decoder.submit_range(text.path, self._base, size, self._raw, read)
            self._pending.append((future, read, self._base, size))
            self._base += size
            text.go_on_at(self._base)
            if len(self._pending) >= self._decoder.depth:
                self._collect(len(self._pending) - self._decoder.depth + 1)
        if self._ended:
            self._collect(len(self._pending))
        text.go_on_at(self._base)

    def _last(self, text: bytes) -> None:
        """Decode what is left at the end of the file."""
        cut = last_border(text)
        if cut > 0:
            self._submit(text[:cut])
            text = text[cut:]
        self._collect(len(self._pending))
        if self._ended:
            self._rest.append(text)
            return
        whole = self._carry + text
        self._carry = b""
        base = self._base - (len(whole) - len(text))
        self._take(self._walk(whole, base, final=True), whole, base)

    def _submit(self, piece: bytes) -> None:
        future = self._decoder.submit(piece, self._base, self._raw)
        self._pending.append((future, lambda: piece, self._base, len(piece)))
        self._base += len(piece)

    def _collect(self, count: int) -> None:
        """Take the results of the oldest pieces, in order."""
        for _ in range(count):
            future, piece_of, base, size = self._pending.popleft()
            if self._ended:
                self._rest.append(piece_of())
                continue
            while not future.done():
                self._tick()
            try:
                self._take_piece(future.result(), piece_of, base, size)
            finally:
                future.release()

    def drop(self) -> None:
        """Wait for the pieces on their way, and look at none of them."""
        for future, *_ in self._pending:
            while not future.done():
                self._tick()
            future.release()

    def _take_piece(self, result: PieceResult, piece_of: Read, base: int, size: int) -> None:
        self._tick()
        if not self._carry and not result.ended and not result.raw_backslashes and result.consumed == size:
            self._take(result, b"", base)
            return
        piece = piece_of()
        if self._carry and len(self._carry) + size < min(self._retry_bytes, EVENT_LIMIT_BYTES):
            self._carry += piece  # nothing could be told from half as much: looking again for each piece is dear
            return
        if self._carry or result.hopeless:
            piece = self._carry + piece
            base -= len(self._carry)
            self._carry = b""
            result = self._walk(piece, base)
        self._take(result, piece, base)

    def _walk(self, text: bytes, base: int, final: bool = False) -> PieceResult:
        """Read entry by entry: to the end, unless the file will be refused for what was found up to there."""
        result = walk_piece(text, base, self._raw, final, self._tick, WASTE_LIMIT)
        if result.hopeless and not self._mostly_waste(result):
            result = walk_piece(text, base, self._raw, final, self._tick, len(text))
        return result

    def _share(self, end: int) -> float:
        """How much of the file lies before a place of its text, about."""
        text = self._text
        return (text.consumed_bytes if text.wrapped else end) / max(text.size_bytes, 1)

    def _mostly_waste(self, result: PieceResult) -> bool:
        wasted, events = self._wasted + result.wasted, self._events_read + result.columns.events
        return wasted > WASTE_LIMIT and wasted > 0.99 * events

    def _take(self, result: PieceResult, piece: bytes, base: int) -> None:
        if result.raw_backslashes and not self._raw:
            raise _RawBackslashes
        columns = result.columns
        if self._mostly_waste(result):
            raise refusals.mostly_waste(self._text.path.name, WASTE_LIMIT, base + result.consumed)
        self._wasted += result.wasted
        self._events_read += columns.events
        self._gathering.add(columns, self._share(base + result.consumed))
        self._trailing_comma = result.trailing_comma
        if result.ended:
            self._ended, self._closed = True, result.closed
            self._rest.append(piece[result.consumed :])
            return
        self._carry = piece[result.consumed :]
        self._retry_bytes = 0 if result.consumed else 2 * len(self._carry)
        if len(self._carry) > EVENT_LIMIT_BYTES:
            raise refusals.huge_value(self._text.path.name, EVENT_LIMIT_BYTES, base + result.consumed)

    def _finish(self, layout: Layout) -> dict[str, Any]:
        """Read what stands behind the list, and say in what state the end of the file is."""
        if not self._ended:
            cut_off = bool(self._carry.strip(_GAP))
            if cut_off or (self._trailing_comma and layout.form in ("object", "nested")):
                self._note("truncated", "", 1)
            elif layout.form == "lines":
                self._note("lines-of-events", "", 1)
            else:
                self._note("brackets-missing", "", 1)
            return {}
        if layout.form == "nested":
            self._note("nested-events", "", 1)
        rest = self._footer_text()
        if layout.form != "object":
            note_rest(self._note, rest.strip(b" \t\r\n}\x00"), {})
            return {}
        footer, closed, after = read_footer(rest)
        more_events = note_rest(self._note, after.strip(b" \t\r\n\x00"), footer)
        if not more_events and not (closed and self._closed):
            self._note("brackets-missing", "", 1)
        return footer

    def _footer_text(self) -> bytes:
        size = sum(map(len, self._rest))
        while size < HEADER_LIMIT_BYTES:
            block = self._text.read(BLOCK_BYTES)
            self._tick()
            if not block:
                break
            self._rest.append(block)
            size += len(block)
        return b"".join(self._rest)


def _any_event(columns: EventColumns) -> bool:
    held = (columns.slices, columns.flows, columns.memory, columns.instants, columns.counters, columns.metadata)
    return any(len(group) for group in held) or bool(columns.problems.get("profiler-span"))
