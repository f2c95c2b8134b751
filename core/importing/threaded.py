"""Decoding pieces in threads: the compiled reader (`core.importing.native`) lets other threads work meanwhile.

Beside worker processes (`core.importing.pool`) nothing has to be started, sent, or held twice. Only what the compiled
reader takes is quicker so: other pieces are decoded by Python, a thread at a time.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future as Running
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from core.errors import Cancelled
from core.importing import native
from core.importing.decoders import Future, Read, read_range
from core.importing.pieces import PieceResult, decode_piece
from core.importing.regular import Irregular
from core.importing.scan import find_events, last_border
from core.importing.scanned import decode_scanned
from core.importing.streams import Text

MIN_BYTES = 4 << 20  # text below this is decoded within milliseconds
_MOST = 6  # threads: what each does in Python between two pieces leaves no room for more
_PER_THREAD = 3  # pieces on their way
_PROBE_BYTES = 1 << 18
_POLL_S = 0.02


def worthwhile(text_bytes: int) -> bool:
    """Whether decoding a text of about this size takes longer than starting threads, and there are cores for them."""
    return text_bytes >= MIN_BYTES and (os.cpu_count() or 1) > 1 and native.available()


def suits(text: Text) -> bool:
    """Whether a text is best decoded in threads, by the first of its events; the text is closed then."""
    with text:
        head = b""
        while len(head) < _PROBE_BYTES and (block := text.read(_PROBE_BYTES)):
            head += block
    layout = find_events(head, final=False)
    if layout is None:
        return False
    events = head[layout.start :]
    try:
        decode_scanned(events[: max(last_border(events), 0)], 0)
    except Irregular:
        return False
    return True


class _Piece:
    """A piece being decoded by a thread."""

    def __init__(self, running: Running[PieceResult], again: Read, base: int, raw_backslashes: bool) -> None:
        self._running, self._again, self._base, self._raw = running, again, base, raw_backslashes
        self._answer: PieceResult | None = None

    def done(self) -> bool:
        try:
            self._running.exception(_POLL_S)
        except TimeoutError:
            return False
        return True

    def result(self) -> PieceResult:
        if self._answer is None:
            try:
                self._answer = self._running.result()
            except Cancelled:
                raise
            except Exception:  # noqa: BLE001 - the file was cut, or memory ran out: once more here, where it can be told
                self._answer = decode_piece(self._again(), self._base, self._raw)
        return self._answer

    def release(self) -> None:
        pass


class Threads:
    """Decoder over threads; a context manager that ends them."""

    piece_bytes = 1 << 21
    reads_files = True

    def __init__(self, count: int | None = None) -> None:
        count = min(os.cpu_count() or 1, _MOST) if count is None else count
        self.depth = _PER_THREAD * count
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="decoder")
        self._called_off = threading.Event()

    def __enter__(self) -> Threads:
        """Return the decoder itself."""
        return self

    def __exit__(self, kind: object, *details: object) -> None:
        """End the threads: soon when something went wrong or was called off."""
        if kind is not None:
            self._called_off.set()
        self.close()

    def _tick(self) -> None:
        if self._called_off.is_set():
            raise Cancelled

    def close(self) -> None:
        """End the threads once they have decoded what they have."""
        self._threads.shutdown(wait=not self._called_off.is_set(), cancel_futures=self._called_off.is_set())

    def submit(self, text: bytes, base: int, raw_backslashes: bool) -> Future:
        """Queue a piece."""
        return self._queued(lambda: text, lambda: text, base, raw_backslashes)

    def submit_range(self, path: Path, base: int, size: int, raw_backslashes: bool, read: Read) -> Future:
        """Queue a piece of a plain file, which a thread reads."""
        return self._queued(lambda: read_range(path, base, size), read, base, raw_backslashes)

    def _queued(self, read: Read, again: Read, base: int, raw_backslashes: bool) -> Future:
        def run() -> PieceResult:
            self._tick()
            return decode_piece(read(), base, raw_backslashes, self._tick)

        try:
            return _Piece(self._threads.submit(run), again, base, raw_backslashes)
        except RuntimeError:  # no thread to be had
            failed: Running[PieceResult] = Running()
            failed.set_exception(RuntimeError())
            return _Piece(failed, again, base, raw_backslashes)
