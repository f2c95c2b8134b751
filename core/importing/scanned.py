"""Columns of a piece of regular events by way of the compiled reader (`core.importing.native`)."""

from __future__ import annotations

from itertools import starmap
from typing import Any

import msgspec
import numpy as np
import orjson

from core.importing.columns import EventColumns, FlowColumns, InstantColumns, MemoryColumns, SliceColumns
from core.importing.dicts import decode_events
from core.importing.kineto import MEMORY_EVENT
from core.importing.native import NO_INT, Scanned
from core.importing.records import metadata_of
from core.importing.regular import (
    ARROWS,
    IS_ARROW,
    IS_CALL,
    IS_SLICE,
    ON_DEVICE,
    Irregular,
    events_end,
    kinds_of,
    note_durations,
    without_spans,
)
from core.kinds import SliceKind
from core.tables import I64, U8

_I, _M, _C = map(ord, "iMC")
_CATEGORY, _NAME, _PROCESS, _THREAD = range(4)
_CORRELATION, _EXTERNAL, _EXTERNAL_2021, _BYTES, _SIZE, _DEVICE, _STREAM, _PYTHON_ID = range(8)
_text_of: Any = msgspec.json.Decoder(str).decode


def decode_scanned(text: bytes, base: int) -> EventColumns:
    """Columns of a stretch of whole events, as of `core.importing.fast.decode_regular`.

    Raises
    ------
    Irregular
        When anything in the piece is not as Kineto writes it.
    """
    read = Scanned(text, events_end(text))
    if read.events < 0:
        raise Irregular
    try:
        if not text.isascii():
            text.decode()  # what is stepped over has to be text too
        texts = _texts(text, read)
        return _columns(read, texts, text, base)
    except (UnicodeDecodeError, OverflowError, ValueError, msgspec.DecodeError) as error:
        raise Irregular from error


def _texts(text: bytes, read: Scanned) -> list[str]:
    """Distinct texts by id; where two are written differently, their ids become one."""
    written = [text[start : start + size] for start, size in read.places.tolist()]
    if not any(b"\\" in raw for raw in written):
        return [raw.decode() for raw in written]
    ids: dict[str, int] = {}
    known = [_text_of(b'"%b"' % raw) if b"\\" in raw else raw.decode() for raw in written]
    number = np.array([ids.setdefault(value, len(ids)) for value in known], np.int32)
    if len(ids) < len(known):
        for row, told in ((_CATEGORY, IS_SLICE | IS_ARROW), (_NAME, ~IS_ARROW), (_PROCESS, None), (_THREAD, None)):
            where = ~np.isin(read.phase, (_M, _C))
            if told is not None:
                where &= told[read.phase]
            read.texts[row, where] = number[read.texts[row, where]]
    return list(ids)


def _columns(read: Scanned, texts: list[str], text: bytes, base: int) -> EventColumns:
    out = EventColumns(strings=texts, events=read.events)
    counts = np.bincount(read.phase, minlength=256)
    _slices(out, read, base)
    if counts[ARROWS].any():
        _flows(out, read)
    if counts[_I]:
        _instants(out, read, base)
    if counts[_M]:
        out.metadata.update(metadata_of(list(starmap(_part_of(text), _places(read, _M)))))
    if counts[_C]:
        _counters(out, (orjson.loads(part) for part in starmap(_part_of(text), _places(read, _C))))
    return out


def _part_of(text: bytes) -> Any:
    return lambda start, size: text[start : start + size]


def _places(read: Scanned, phase: int) -> list[tuple[int, int]]:
    at = np.flatnonzero(read.phase == phase)
    return list(zip(read.start[at].tolist(), read.length[at].tolist(), strict=True))


def _slices(out: EventColumns, read: Scanned, base: int) -> None:
    at = np.flatnonzero(IS_SLICE[read.phase])
    texts = out.strings
    phase, category, name = read.phase[at], read.texts[_CATEGORY, at], read.texts[_NAME, at]
    shown = without_spans(out, texts, category, name, phase)
    if shown is not None:
        at, phase, category, name = at[shown], phase[shown], category[shown], name[shown]
    durations = read.duration[at]
    note_durations(out, texts, name, phase, durations)
    out.slices = SliceColumns(
        phase=phase,
        category=category,
        name=name,
        pid=read.texts[_PROCESS, at],
        tid=read.texts[_THREAD, at],
        time_ns=read.time[at],
        dur_ns=durations,
        **_numbers(read.arguments[:, at], kinds_of(texts, category), bool(read.odd)),
        async_id=np.full(len(at), -1, np.int64),
        start=read.start[at] + base,
        length=read.length[at],
    )


def _numbers(arguments: Any, kinds: U8, odd: bool) -> dict[str, Any]:
    """Columns of the arguments of slices of these kinds: -1 where a kind has none."""
    on_device = ON_DEVICE[kinds]
    calls = IS_CALL[kinds] | on_device
    if odd and (arguments[[_CORRELATION, _EXTERNAL, _EXTERNAL_2021, _PYTHON_ID]] == NO_INT).any():
        raise Irregular
    correlation, external, of_2021, copies, size, device, stream, order = arguments
    late = calls & (external < 0)
    external = np.where(kinds == SliceKind.PYTHON, -1, external)
    if late.any():
        external = np.where(late, of_2021, external)
    copies = np.where(on_device, copies, -1)
    sized = on_device & (kinds != SliceKind.KERNEL) & (copies == -1)
    if sized.any():
        copies = np.where(sized, size, copies)
    device, stream = np.where(on_device, device, -1), np.where(on_device, stream, -1)
    if odd and any((column == NO_INT).any() for column in (copies, device, stream)):
        raise Irregular
    return {
        "correlation": np.where(calls, correlation, -1),
        "external": external,
        "copy_bytes": copies,
        "device": device.astype(np.int32),
        "stream": stream,
        "order": np.where(kinds == SliceKind.PYTHON, order, -1),
    }


def _flows(out: EventColumns, read: Scanned) -> None:
    at = np.flatnonzero(IS_ARROW[read.phase])
    category, pid, tid = (read.texts[row, at] for row in (_CATEGORY, _PROCESS, _THREAD))
    out.flows = FlowColumns(read.phase[at], category, pid, tid, read.time[at], read.id[at])


def _instants(out: EventColumns, read: Scanned, base: int) -> None:
    instants = np.flatnonzero(read.phase == _I)
    of_memory = np.array([value == MEMORY_EVENT for value in out.strings], np.bool_)[read.texts[_NAME, instants]]
    at = instants[of_memory]
    pid, tid = read.texts[_PROCESS, at], read.texts[_THREAD, at]
    values = read.arguments[:6, at]
    if read.odd and (values == NO_INT).any():
        raise Irregular
    kind, device, address, size, allocated, reserved = values
    out.memory = MemoryColumns(
        pid, tid, read.time[at], _small(kind), _small(device), address, size, allocated, reserved
    )
    at = instants[~of_memory]
    name, pid, tid = (read.texts[row, at] for row in (_NAME, _PROCESS, _THREAD))
    out.instants = InstantColumns(name, pid, tid, read.time[at], read.start[at] + base, read.length[at])


def _small(values: I64) -> Any:
    return values.astype(np.int32)


def _counters(out: EventColumns, events: Any) -> None:
    decoded = decode_events(events)
    base = np.int32(len(out.strings))
    out.strings = out.strings + decoded.strings
    decoded.counters.name += base
    decoded.counters.pid += base
    out.counters = decoded.counters
