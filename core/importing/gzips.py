"""The header of gzip data, and what can be saved of it where it is damaged."""

from __future__ import annotations

import zlib

_STEP_BYTES = 4096  # of text: as much as is lost before the place of the damage


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


def salvaged(deflated: bytes, skip: int) -> bytes:
    """Text of raw deflate data up to where it is damaged, without its first ``skip`` bytes."""
    inflater, parts = zlib.decompressobj(wbits=-15), []
    try:
        while deflated and not inflater.eof:
            parts.append(inflater.decompress(deflated, _STEP_BYTES))
            deflated = inflater.unconsumed_tail
    except zlib.error:
        pass
    return b"".join(parts)[skip:]
