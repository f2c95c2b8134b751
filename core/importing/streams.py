"""The uncompressed text of a trace file, whatever it is wrapped in. The content decides, never the name."""

from __future__ import annotations

import codecs
import io
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import zstandard

from core.errors import TraceError
from core.importing.gzips import header_end, salvaged

_inflate: Any = zlib
try:  # several times faster than zlib where there is a wheel for it
    from isal import isal_zlib

    _inflate = isal_zlib
except ImportError:  # pragma: no cover - depends on the machine
    pass

BLOCK_BYTES = 1 << 20
_BOMB_RATIO = 400  # real traces shrink by 10 to 60
_BOMB_FLOOR_BYTES = 256 << 20
_MAX_LAYERS = 4
_KEPT_BYTES = 1 << 20  # compressed, where it is no file that can be read again
Note = Callable[[str, str, int], None]


class ByteStream(Protocol):
    """Anything with ``read(n)``; empty bytes at the end."""

    def read(self, size: int, /) -> bytes:
        """Return up to ``size`` bytes, none at the end."""
        ...


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
    for layer in range(_MAX_LAYERS):
        peeked = _Peeked(stream)
        head = peeked.head
        if head[:2] == b"\x1f\x8b":
            stream = _Gunzip(peeked, path, note, is_file=stream is file)
        elif head[:4] == b"\x28\xb5\x2f\xfd":
            stream = _Unzstd(peeked, path, note)
        elif head[:4] == b"PK\x03\x04" and stream is file:
            stream = _unzip(file, path, note)
        else:
            return _decoded(peeked, note, layer > 0)
        if layer == 1:
            note("compressed-twice", "", 1)
    raise TraceError(
        f"{path.name} is compressed more than {_MAX_LAYERS - 1} times over.", "", "Unpack it until a .json comes out."
    )


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


class _Guard:
    """Refuses what grows out of all proportion (a bomb)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.consumed = self.produced = 0

    def check(self) -> None:
        if self.produced > _BOMB_FLOOR_BYTES and self.produced > _BOMB_RATIO * max(self.consumed, 1):
            raise TraceError(
                f"{self._path.name} unpacks to more than {_BOMB_RATIO} times its size; no trace does.",
                f"It was given up after {self.produced >> 20} MB of text.",
                "Unpack it yourself if you trust it, and open what comes out.",
            )


class _Gunzip:
    """gzip with several members, a wrong checksum, padding or a cut: whatever can be read is."""

    def __init__(self, source: ByteStream, path: Path, note: Note, is_file: bool) -> None:
        self._source, self._note = source, note
        self._guard = _Guard(path)
        self._buffer = b""
        self._file = path if is_file else None
        self._member_at = 0  # where the member's compressed data begins
        self._member = b""  # all of it so far, while that is little
        self._saved: Iterator[bytes] = iter(())  # of a damaged member
        self._inflater: Any = None
        self._crc = 0
        self._size = 0
        self._done = False

    def read(self, size: int, /) -> bytes:
        while not self._done:
            if self._inflater is None and not self._next_member():
                break
            data = self._inflate(size)
            if data:
                self._crc = _inflate.crc32(data, self._crc)
                self._size += len(data)
                self._guard.produced += len(data)
                self._guard.check()
                return data
        return next(filter(None, self._saved), b"")

    def _fill(self) -> bool:
        more = self._source.read(1 << 18)
        self._guard.consumed += len(more)
        self._buffer += more
        keeps = self._file is None and 0 < len(self._member) < _KEPT_BYTES
        self._member = self._member + more if keeps else b""
        return bool(more)

    def _inflate(self, size: int) -> bytes:
        """Return some more text of the current member; at its end, check it and make ready for the next."""
        if not self._buffer and not self._fill():
            self._note("gzip-truncated", "", 1)
            self._done = True
            return b""
        try:
            data: bytes = self._inflater.decompress(self._buffer, size)
        except Exception as error:  # noqa: BLE001 - isal and zlib raise errors of their own
            self._note("gzip-truncated", str(error), 1)
            self._done = True
            self._saved = self._salvaged()
            return b""
        if self._inflater.eof:
            self._buffer = self._inflater.unused_data
            self._pending_end(data)
        else:
            self._buffer = self._inflater.unconsumed_tail
        return data

    def _salvaged(self) -> Iterator[bytes]:
        """What lies between the text that is known and the damage: it was lost with the inflater."""
        if self._file is None:
            yield from salvaged(io.BytesIO(self._member).read, self._size)
            return
        with self._file.open("rb") as file:
            file.seek(self._member_at)
            yield from salvaged(file.read, self._size)

    def _pending_end(self, data: bytes) -> None:
        crc = _inflate.crc32(data, self._crc)
        size = self._size + len(data)
        while len(self._buffer) < 8 and self._fill():
            pass
        if len(self._buffer) < 8:
            self._note("gzip-truncated", "the checksum is missing", 1)
            self._done = True
            return
        want_crc, want_size = struct.unpack("<II", self._buffer[:8])
        if want_crc != crc or want_size != size & 0xFFFFFFFF:
            self._note("gzip-checksum", "", 1)
        self._buffer = self._buffer[8:]
        self._inflater = None

    def _next_member(self) -> bool:
        """Skip a member's header; False when there is no further member."""
        self._crc = self._size = 0
        while len(self._buffer) < 1024 and self._fill():
            pass
        if self._buffer[:2] != b"\x1f\x8b":
            rest = self._buffer.lstrip(b"\x00")
            if rest:
                self._note("gzip-trailing-bytes", "", len(rest))
            self._done = True
            return False
        end = self._header_end()
        if end < 0:
            self._note("gzip-truncated", "", 1)
            self._done = True
            return False
        self._member = self._buffer = self._buffer[end:]
        self._member_at = self._guard.consumed - len(self._buffer)
        self._inflater = _inflate.decompressobj(wbits=-15)
        return True

    def _header_end(self) -> int:
        while True:
            end = header_end(self._buffer)
            if end >= 0 or len(self._buffer) > 1 << 20 or not self._fill():
                return end


class _Unzstd:
    def __init__(self, source: ByteStream, path: Path, note: Note) -> None:
        self._note = note
        self._guard = _Guard(path)
        counted: Any = _Counted(source, self._guard)
        self._reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(
            counted, read_across_frames=True
        )

    def read(self, size: int, /) -> bytes:
        try:
            data = self._reader.read(size)
        except zstandard.ZstdError as error:
            self._note("gzip-truncated", str(error), 1)
            return b""
        self._guard.produced += len(data)
        self._guard.check()
        return data


class _Counted:
    def __init__(self, source: ByteStream, guard: _Guard) -> None:
        self._source, self._guard = source, guard

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size if size > 0 else BLOCK_BYTES)
        self._guard.consumed += len(data)
        return data


def _unzip(file: io.BufferedReader, path: Path, note: Note) -> ByteStream:
    """Text of the one trace in a zip file."""
    try:
        archive = zipfile.ZipFile(file)
        inside = [i for i in archive.infolist() if not i.is_dir() and _looks_like_trace(i.filename)]
        if len(inside) != 1:
            names = ", ".join(i.filename for i in inside[:5]) or "no .json file"
            raise TraceError(
                f"{path.name} is a zip file without exactly one trace in it.",
                f"It holds {names}.",
                "Unpack it and open the traces, or the folder that holds them.",
            )
        if inside[0].file_size > _BOMB_FLOOR_BYTES and inside[0].file_size > _BOMB_RATIO * inside[0].compress_size:
            raise TraceError(f"{path.name} unpacks to more than {_BOMB_RATIO} times its size; no trace does.")
        return _ZipMember(archive.open(inside[0]), note)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise TraceError(
            f"{path.name} is a damaged or encrypted zip file.", str(error), "Copy it again, or unpack it yourself."
        ) from error


def _looks_like_trace(name: str) -> bool:
    return name.lower().endswith((".json", ".json.gz", ".json.zst")) and "__MACOSX" not in name


class _ZipMember:
    def __init__(self, stream: Any, note: Note) -> None:
        self._stream, self._note = stream, note

    def read(self, size: int, /) -> bytes:
        try:
            return bytes(self._stream.read(size))
        except zipfile.BadZipFile:
            self._note("gzip-checksum", "", 1)
        except (EOFError, zlib.error) as error:
            self._note("gzip-truncated", str(error), 1)
        return b""


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
