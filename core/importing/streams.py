"""The uncompressed text of a trace file, whatever it is wrapped in. The content decides, never the name."""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from core.errors import TraceError
from core.importing.packed import BLOCK_BYTES, ByteStream, Gunzip, Note, Unzip, Unzstd

_MAX_LAYERS = 4


class Text:
    """Uncompressed UTF-8 text of one file, read from front to back.

    Parameters
    ----------
    path
        The file.
    note
        Called with (code, example, count) for what was odd about the wrapping.

    Raises
    ------
    TraceError
        When the file cannot be read or is no text at all.
    """

    def __init__(self, path: Path, note: Note = lambda code, example, count: None) -> None:
        self.path = path
        self.read_bytes = 0
        self._file_size = self.size_bytes = 0
        self.first = b""  # of a wrapped text, up to a block: the trace's reader needs it soon
        try:
            self._file = path.open("rb")
            self.size_bytes = os.fstat(self._file.fileno()).st_size
        except OSError as error:
            raise _unreadable(path, error) from error
        try:
            self._stream, self.wrapped = _unwrap(self._file, path, note)
        except BaseException as error:
            self._file.close()
            if isinstance(error, OSError):  # a damaged disk, a network folder that is gone
                raise _unreadable(path, error) from error
            raise

    def __enter__(self) -> Text:
        """Return the text itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        if not self._file.closed:
            self._file_size = self._file.tell()
        self._file.close()

    def at(self, start: int, size: int) -> bytes:
        """Return bytes at a place of a plain file (one for which ``wrapped`` is False); `read` goes on where it was."""
        here = self._file.tell()
        try:
            self._file.seek(start)
            return self._file.read(size)
        except OSError as error:
            raise _unreadable(self.path, error) from error
        finally:
            self._file.seek(here)

    def go_on_at(self, start: int) -> None:
        """Let `read` of a plain file go on at a place, as if everything before had been read."""
        self._file.seek(start)
        self.read_bytes = start

    @property
    def consumed_bytes(self) -> int:
        """Bytes of the file on disk read so far."""
        return self._file_size if self._file.closed else self._file.tell()

    def read(self, size: int = BLOCK_BYTES) -> bytes:
        """Return the next bytes of the text, none at the end."""
        try:
            data = self._stream.read(size)
        except OSError as error:
            raise _unreadable(self.path, error) from error
        self.read_bytes += len(data)
        if self.wrapped and len(self.first) < BLOCK_BYTES:
            self.first += data[: BLOCK_BYTES - len(self.first)]
        return data


def _unreadable(path: Path, error: OSError) -> TraceError:
    reason = error.strerror or str(error)
    if isinstance(error, FileNotFoundError):
        return TraceError(f"{path.name} does not exist.", f"Looked for it at {path.absolute()}.", "Check the path.")
    if isinstance(error, IsADirectoryError):
        return TraceError(f"{path.name} is a folder.", "", "Open the folder itself or a trace in it.")
    return TraceError(f"{path.name} cannot be read: {reason}.", "", "Check the permissions of the file.")


def _unwrap(file: io.BufferedReader, path: Path, note: Note) -> tuple[ByteStream, bool]:
    """Peel layers until text comes out; returns the stream and whether anything was peeled."""
    stream: ByteStream = file
    kinds: list[type[Gunzip | Unzstd | Unzip]] = []
    for layer in range(_MAX_LAYERS):
        peeked = _Peeked(stream)
        head = peeked.head
        if head[:2] == b"\x1f\x8b":
            kind: type[Gunzip | Unzstd | Unzip] = Gunzip
        elif head[:4] == b"\x28\xb5\x2f\xfd":
            kind = Unzstd
        elif head[:4] == b"PK\x03\x04" and stream is file:
            kind = Unzip
        else:
            return _decoded(peeked, note, layer > 0)
        again = partial(_again, path, tuple(kinds))
        stream = kind(file if kind is Unzip else peeked, path, note, again)
        kinds.append(kind)
        if layer == 1:
            note("compressed-twice", "", 1)
    raise TraceError(
        f"{path.name} is compressed more than {_MAX_LAYERS - 1} times over.", "", "Unpack it until a .json comes out."
    )


@contextmanager
def _again(path: Path, kinds: Sequence[type[Gunzip | Unzstd | Unzip]]) -> Iterator[ByteStream]:
    """What comes out of the outer layers of a file, from its beginning once more; what is odd about them is known."""
    with path.open("rb") as file:
        stream: Any = file
        for number, kind in enumerate(kinds):
            stream = kind(stream, path, _silent, partial(_again, path, tuple(kinds[:number])))
        yield stream


def _silent(code: str, example: str, count: int) -> None:
    del code, example, count


def _decoded(peeked: _Peeked, note: Note, wrapped: bool) -> tuple[ByteStream, bool]:
    head = peeked.head
    if head[:3] == codecs.BOM_UTF8:
        peeked.skip(3)
        return peeked, True
    for bom, name in (
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if head.startswith(bom):
            peeked.skip(len(bom))
            note("utf16", name, 1)
            return _Recoded(peeked, name), True
    if len(head) >= 4 and head[0] in b"{[" and head[1] == 0 and head[2] != 0 and head[3] == 0:
        note("utf16", "utf-16-le", 1)
        return _Recoded(peeked, "utf-16-le"), True
    return peeked, wrapped


class _Peeked:
    """A stream whose first bytes can be looked at."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self.head = stream.read(64)
        self._left = self.head

    def skip(self, size: int) -> None:
        self._left = self._left[size:]

    def read(self, size: int, /) -> bytes:
        if self._left:
            data, self._left = self._left[:size], self._left[size:]
            return data
        return self._stream.read(size)


class _Recoded:
    """Another encoding, turned into UTF-8."""

    def __init__(self, source: ByteStream, encoding: str) -> None:
        self._source = source
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")

    def read(self, size: int, /) -> bytes:
        while True:
            data = self._source.read(size)
            text = self._decoder.decode(data, final=not data).encode("utf-8", "replace")
            if text or not data:
                return text
