"""Where the events of a regular piece lie, and their times where only the digits themselves are exact."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from core.importing.columns import NO_DURATION
from core.importing.numbers import time_ns
from core.importing.scan import value_end
from core.tables import I32, I64, Bool


class _TimedText(msgspec.Struct, gc=False):
    ts: msgspec.Raw = msgspec.Raw(b"nan")
    dur: msgspec.Raw = msgspec.Raw(b"nan")


_TEXT_DECODER = msgspec.json.Decoder(list[_TimedText])
_RAW_DECODER = msgspec.json.Decoder(list[msgspec.Raw])


def spans_of(body: bytes, n: int) -> tuple[I64, I32]:
    """Offset and length in ``body`` of each event."""
    text = np.frombuffer(body, np.uint8)
    starts = _regular_starts(body, text, n)
    if starts is None:
        return _exact_spans(body)
    ends = np.empty(n, np.int64)
    if n:
        ends[-1] = len(body) - 1
        ends[:-1] = starts[1:]
        for _ in range(64):  # step back over the comma and blanks to the closing brace
            off = text[ends - 1] != 125
            if not off.any():
                break
            ends[off] -= 1
        else:
            return _exact_spans(body)
    return starts, (ends - starts).astype(np.int32)


def _regular_starts(body: bytes, text: Any, n: int) -> I64 | None:
    """Starts by the writer's own separator, None when the count does not come out right."""
    if n < 2:
        return np.full(n, body.find(b"{"), np.int64) if n else np.empty(0, np.int64)
    first = body.find(b"{")
    opens = np.flatnonzero(text == 123)
    gap = body[1:first]
    if not gap:
        second = body.find(b"{", value_end(body, first))
        gap = body[body.rfind(b"}", 0, second) + 1 : second].lstrip(b",")
    for k, byte in enumerate(reversed(gap[-8:]), 1):
        back = opens - k
        keep = (back >= 0) & (text[back] == byte)
        keep[0] |= opens[0] == first
        opens = opens[keep]
    if not gap:
        before = text[opens - 1]
        opens = opens[(before == 44) | (before == 91)]
    return opens.astype(np.int64) if len(opens) == n else None


def _exact_spans(body: bytes) -> tuple[I64, I32]:
    """Spans by walking over the raw events."""
    raws = _RAW_DECODER.decode(body)
    lengths = np.fromiter((memoryview(raw).nbytes for raw in raws), np.int64, len(raws))
    starts = np.empty(len(raws), np.int64)
    at = 1
    find = body.find
    for i, length in enumerate(lengths.tolist()):
        at = find(b"{", at)
        starts[i] = at
        at += length
    return starts, lengths.astype(np.int32)


def times_of_text(body: bytes) -> tuple[I64, Bool, I64]:
    """Times from the digits themselves: float64 cannot hold epoch microseconds with their nanoseconds."""
    rows = _TEXT_DECODER.decode(body)
    times = np.zeros(len(rows), np.int64)
    durs = np.full(len(rows), NO_DURATION, np.int64)
    good = np.ones(len(rows), np.bool_)
    for i, row in enumerate(rows):
        value = _text_ns(bytes(row.ts))
        if value is None:
            good[i] = False
        else:
            times[i] = value
        dur = _text_ns(bytes(row.dur))
        if dur is not None and dur >= 0:
            durs[i] = dur
    return times, good, durs


def _text_ns(text: bytes) -> int | None:
    text = text.strip(b'"')
    if text[-4:-3] == b"." and text[:1] != b"-":
        digits = text[:-4] + text[-3:]
        if digits.isdigit() and len(digits) < 19:
            return int(digits)
    return time_ns(text.decode("ascii", "replace"))
