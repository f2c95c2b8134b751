"""Compressed texts, read from front to back: of a damaged one all that lies before the damage."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Protocol

import zstandard

from core.errors import TraceError
from core.importing.gzips import header_end, salvaged

inflate: Any = zlib
try:  # several times faster than zlib where there is a wheel for it
    from isal import isal_zlib

    inflate = isal_zlib
except ImportError:  # pragma: no cover - depends on the machine
    pass

BLOCK_BYTES = 1 << 20
_STEP_BYTES = 4096  # of a damaged text
_BOMB_RATIO = 400  # real traces shrink by 10 to 60
_BOMB_FLOOR_BYTES = 256 << 20
_ZIP_HEADER = struct.Struct("<26xHH")  # of a member: lengths of its name and of what else there is
Note = Callable[[str, str, int], None]


class ByteStream(Protocol):
    """Anything with ``read(n)``; empty bytes at the end."""

    def read(self, size: int, /) -> bytes:
        """Return up to ``size`` bytes, none at the end."""
        ...


Again = Callable[[], AbstractContextManager[ByteStream]]  # what is unpacked, from its beginning once more


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


def _skip(stream: ByteStream, size: int) -> bool:
    """Read over so many bytes; False where there are fewer."""
    while size:
        part = stream.read(min(size, BLOCK_BYTES))
        if not part:
            return False
        size -= len(part)
    return True


class Gunzip:
    """gzip with several members, a wrong checksum, padding or a cut: whatever can be read is.

    Parameters
    ----------
    source
        The compressed bytes.
    again
        Gives them once more: what the inflater had made when it met damage is lost with it.
    """

    def __init__(self, source: ByteStream, path: Path, note: Note, again: Again) -> None:
        self._source, self._note, self._again = source, note, again
        self._guard = _Guard(path)
        self._buffer = b""
        self._member_at = 0  # where the member's compressed data begins
        self._saved: Iterator[bytes] = iter(())  # of a damaged member
        self._inflater: Any = None
        self._crc = 0
        self._size = 0
        self._done = False

    def read(self, size: int, /) -> bytes:
        """Return up to ``size`` bytes, none at the end."""
        while not self._done:
            if self._inflater is None and not self._next_member():
                break
            data = self._inflate(size)
            if data:
                self._crc = inflate.crc32(data, self._crc)
                self._size += len(data)
                self._guard.produced += len(data)
                self._guard.check()
                return data
        return next(filter(None, self._saved), b"")

    def _fill(self) -> bool:
        more = self._source.read(1 << 18)
        self._guard.consumed += len(more)
        self._buffer += more
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
        """What lies between the text that is known and the damage."""
        with self._again() as source:
            if _skip(source, self._member_at):
                yield from salvaged(source.read, self._size)

    def _pending_end(self, data: bytes) -> None:
        crc = inflate.crc32(data, self._crc)
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
        self._buffer = self._buffer[end:]
        self._member_at = self._guard.consumed - len(self._buffer)
        self._inflater = inflate.decompressobj(wbits=-15)
        return True

    def _header_end(self) -> int:
        while True:
            end = header_end(self._buffer)
            if end >= 0 or len(self._buffer) > 1 << 20 or not self._fill():
                return end


class Unzstd:
    """zstd of one frame or several; ``again`` as of `Gunzip`."""

    def __init__(self, source: ByteStream, path: Path, note: Note, again: Again) -> None:
        self._note, self._again = note, again
        self._guard = _Guard(path)
        self._reader = _zstd_reader(_Counted(source, self._guard))
        self._saved: Iterator[bytes] | None = None  # of a damaged text

    def read(self, size: int, /) -> bytes:
        """Return up to ``size`` bytes, none at the end."""
        if self._saved is None:
            try:
                data: bytes = self._reader.read(size)
            except zstandard.ZstdError as error:
                self._note("gzip-truncated", str(error), 1)
                self._saved = self._salvaged()
            else:
                self._guard.produced += len(data)
                self._guard.check()
                return data
        return next(filter(None, self._saved), b"")

    def _salvaged(self) -> Iterator[bytes]:
        """What lies between the text that is known and the damage: in large steps, then in the least there are."""
        done = self._guard.produced
        for step in (_STEP_BYTES, 1):
            with self._again() as source, suppress(zstandard.ZstdError):
                reader = _zstd_reader(_Counted(source, self._guard))
                if not _skip(reader, done):
                    return
                while data := reader.read1(step):
                    done += len(data)
                    yield data


def _zstd_reader(source: Any) -> Any:
    return zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(source, read_across_frames=True)


class _Counted:
    def __init__(self, source: ByteStream, guard: _Guard) -> None:
        self._source, self._guard = source, guard

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size if size > 0 else BLOCK_BYTES)
        self._guard.consumed += len(data)
        return data


class Unzip:
    """The one trace in a zip file.

    Raises
    ------
    TraceError
        When the file is no zip file that can be read, or does not hold exactly one trace.
    """

    def __init__(self, file: Any, path: Path, note: Note, again: Again) -> None:
        self._note, self._again = note, again
        try:
            archive = zipfile.ZipFile(file)
            self._member = _only_trace(archive, path)
            self._stream = archive.open(self._member)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            raise TraceError(
                f"{path.name} is a damaged or encrypted zip file.", str(error), "Copy it again, or unpack it yourself."
            ) from error
        self._size = 0
        self._saved: Iterator[bytes] | None = None  # of a damaged text

    def read(self, size: int, /) -> bytes:
        """Return up to ``size`` bytes, none at the end."""
        if self._saved is None:
            try:
                data = bytes(self._stream.read(size))
            except zipfile.BadZipFile:
                self._note("gzip-checksum", "", 1)
                self._saved = self._salvaged()
            except (EOFError, zlib.error) as error:
                self._note("gzip-truncated", str(error), 1)
                self._saved = self._salvaged()
            else:
                self._size += len(data)
                return data
        return next(filter(None, self._saved), b"")

    def _salvaged(self) -> Iterator[bytes]:
        """What lies between the text that is known and the damage, or the end where only the checksum is wrong."""
        member = self._member
        with self._again() as file:
            if not _skip(file, member.header_offset):
                return
            head = file.read(_ZIP_HEADER.size)
            if len(head) < _ZIP_HEADER.size or not _skip(file, sum(_ZIP_HEADER.unpack(head))):
                return
            data = _Limited(file, member.compress_size)
            if member.compress_type == zipfile.ZIP_DEFLATED:
                yield from salvaged(data.read, self._size)
            elif member.compress_type == zipfile.ZIP_STORED and _skip(data, self._size):
                while part := data.read(BLOCK_BYTES):
                    yield part


def _only_trace(archive: zipfile.ZipFile, path: Path) -> zipfile.ZipInfo:
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
    return inside[0]


def _looks_like_trace(name: str) -> bool:
    return name.lower().endswith((".json", ".json.gz", ".json.zst")) and "__MACOSX" not in name


class _Limited:
    """So many bytes of a stream."""

    def __init__(self, stream: ByteStream, size: int) -> None:
        self._stream, self._left = stream, size

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(min(size, self._left))
        self._left -= len(data)
        return data
