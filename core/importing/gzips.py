"""The header of gzip data, and what can be saved of it where it is damaged."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

_STEP_BYTES = 4096  # of text
_BLOCK_BYTES = 1 << 18


def header_end(data: bytes) -> int:
    """Length of a gzip header (RFC 1952), -1 when more bytes are needed."""
    if len(data) < 10:
        return -1
    flags, at = data[3], 10
    if flags & 4:
        if len(data) < at + 2:
            return -1
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    for bit in (8, 16):
        if flags & bit:
            zero = data.find(b"\x00", at)
            if zero < 0:
                return -1
            at = zero + 1
    at += 2 if flags & 2 else 0
    return at if at <= len(data) else -1


def salvaged(read: Callable[[int], bytes], skip: int) -> Iterator[bytes]:
    """Yield the text of raw deflate data up to where it is damaged, without its first ``skip`` bytes.

    Parameters
    ----------
    read
        Returns up to so many bytes more of the data, none at its end.
    skip
        What is known already: gone through at once.
    """
    inflater, left, done, step = zlib.decompressobj(wbits=-15), b"", 0, _STEP_BYTES
    fresh: list[bytes] = []
    while step and not inflater.eof and (left := left or read(_BLOCK_BYTES)):
        before = inflater.copy()
        try:
            data = inflater.decompress(left, min(skip - done, _BLOCK_BYTES) if done < skip else step)
        except zlib.error:  # what it made up to there is lost with it
            inflater, step = before, step // 2 if done >= skip else 0
            continue
        left = inflater.unconsumed_tail
        if done >= skip:
            fresh.append(data)
            if len(fresh) * _STEP_BYTES >= _BLOCK_BYTES:
                yield b"".join(fresh)
                fresh = []
        done += len(data)
    yield b"".join(fresh)
