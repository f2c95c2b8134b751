"""Where pieces of a text are decoded: what such a place can do, and the one in the calling thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from core.importing.pieces import PieceResult, decode_piece

PIECE_BYTES = 1 << 20  # decoded in about 7 ms: a window in the same process is not held up for longer
Tick = Callable[[], None]
Read = Callable[[], bytes]


def read_range(path: Path, start: int, size: int) -> bytes:
    """Bytes of a plain file.

    Raises
    ------
    OSError
        When the file does not have them (any more).
    """
    with path.open("rb", 0) as file:
        file.seek(start)
        text = file.read(size)
    if len(text) != size:
        raise OSError(f"{path} was cut off while it was read")
    return text


class Future(Protocol):
    """A piece being decoded."""

    def result(self) -> PieceResult:
        """Wait for it."""
        ...

    def done(self) -> bool:
        """Tell whether `result` would return at once."""
        ...

    def release(self) -> None:
        """Let go of what `result` gave: it is no longer looked at."""
        ...


class Decoder(Protocol):
    """Something that decodes pieces, here or elsewhere."""

    depth: int  # pieces it can hold at once
    piece_bytes: int  # about how large it wants them
    reads_files: bool  # elsewhere, so that the text of a plain file need not be sent there

    def submit(self, text: bytes, base: int, raw_backslashes: bool) -> Future:
        """Start decoding a piece."""
        ...

    def submit_range(self, path: Path, base: int, size: int, raw_backslashes: bool, read: Read) -> Future:
        """Start decoding a piece of a plain file that the decoder reads itself (where ``reads_files``).

        ``read`` gives the piece where the decoder cannot read it (any more).
        """
        ...

    def close(self) -> None:
        """Let go of all that decoding needed: nothing more will be asked."""
        ...


class _Done:
    def __init__(self, value: PieceResult) -> None:
        self._value = value

    def result(self) -> PieceResult:
        return self._value

    def done(self) -> bool:
        return True

    def release(self) -> None:
        pass


class InlineDecoder:
    """Decodes in the calling thread."""

    depth = 1
    piece_bytes = PIECE_BYTES
    reads_files = False

    def __init__(self, tick: Tick = lambda: None) -> None:
        self._tick = tick

    def submit(self, text: bytes, base: int, raw_backslashes: bool) -> Future:
        """Decode the piece at once."""
        return _Done(decode_piece(text, base, raw_backslashes, self._tick))

    def submit_range(self, path: Path, base: int, size: int, raw_backslashes: bool, read: Read) -> Future:
        """Decode the piece at once."""
        return self.submit(read(), base, raw_backslashes)

    def close(self) -> None:
        """Nothing is held."""
