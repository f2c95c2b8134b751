"""Decoding a piece of regular events, column by column."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import compress, count
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import orjson
from numpy.typing import NDArray

from core.importing.columns import (
    NO_DURATION,
    EventColumns,
    FlowColumns,
    InstantColumns,
    MemoryColumns,
    SliceColumns,
)
from core.importing.dicts import decode_events, flow_key
from core.importing.kineto import MEMORY_EVENT
from core.importing.numbers import needs_text, times_ns
from core.importing.records import PHASES, TextTimes, events_of, phases_of, told_by
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
from core.importing.spans import spans_of, times_of_text
from core.kinds import SliceKind
from core.tables import I32, I64, U8, Bool

_X, _S, _T, _F, _I, _M, _C, _B, _E, _ASYNC_B, _ASYNC_E = map(ord, "XstfiMCBEbe")


_EMPTY = re.compile(rb"\{\s*+\}")
_CLOSES = np.isin(np.arange(256), list(b"} \t\r\n"))


def decode_regular(text: bytes, base: int) -> EventColumns:
    """Columns of a stretch of whole events.

    Parameters
    ----------
    text
        Events separated by commas, without the brackets of the list.
    base
        Byte offset of ``text`` in the whole text.

    Raises
    ------
    Irregular
        When anything in the piece is not as Kineto writes it.
    """
    body = b"".join((b"[", memoryview(text)[: events_end(text)], b"]"))
    try:
        events, body = events_of(body)
        phases = phases_of(events)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Irregular from error
    try:
        return _columns(events, phases, body, base - 1)
    except (OverflowError, ValueError, TypeError) as error:
        raise Irregular from error


def _columns(events: list[Any], phases: Any, body: bytes, base: int) -> EventColumns:
    starts, lengths = spans_of(body, len(events))
    in_slices = IS_SLICE[phases]
    slices = list(compress(events, in_slices.tobytes()))
    time_col, good, dur_col = _times(events, slices, in_slices, body)
    out = EventColumns(strings=[], events=len(events))
    strings = _Strings()
    counts = np.bincount(phases, minlength=256)
    timed = good if good.all() else good | (phases == _M) | (phases == 0)
    if counts[0]:
        _note_no_phase(out, events, np.flatnonzero(phases == 0), body, starts)
    if not timed.all():
        lost = np.flatnonzero(~timed)
        if phases[lost[0]] in (_S, _T, _F):
            raise Irregular  # its name, which was not read, is told
        out.note("no-time", events[int(lost[0])].name, len(lost))
        dur_col, in_slices = dur_col[timed[in_slices]], in_slices & timed
        slices = list(compress(events, in_slices.tobytes()))
    rows = _Rows(phases, in_slices, timed, time_col, dur_col, starts + base, lengths)
    _slices(out, slices, strings, rows)
    if counts[ARROWS].any():
        _flows(out, events, strings, rows)
    if counts[_I]:
        _instants(out, events, strings, rows)
    if counts[_M]:
        out.metadata.update(told_by(list(compress(events, (phases == _M).tobytes()))))
    out.strings = strings.values()
    if counts[_C]:
        _counters(out, body, starts, lengths, np.flatnonzero((phases == _C) & timed))
    return out


def _times(events: list[Any], slices: list[Any], in_slices: Bool, body: bytes) -> tuple[I64, Bool, I64]:
    """Times, which of them are usable, and durations of the slices alone."""
    n = len(events)
    time = None if n and isinstance(events[0], TextTimes) else np.fromiter(map(attrgetter("ts"), events), np.float64, n)
    if time is None or needs_text(time[np.isfinite(time)]):
        time_ns, good, every = times_of_text(body)
        return time_ns, good, every[in_slices]
    time_ns, good = times_ns(time)
    dur_ns, dur_good = times_ns(np.fromiter(map(attrgetter("dur"), slices), np.float64, len(slices)))
    dur_ns[~dur_good | (dur_ns < 0)] = NO_DURATION
    return time_ns, good, dur_ns


def _note_no_phase(out: EventColumns, events: list[Any], odd: NDArray[np.intp], body: bytes, starts: I64) -> None:
    """Count the events without a phase that is known."""
    held = [events[i] for i in odd.tolist()]
    unnamed = np.fromiter((event.ph is None for event in held), np.bool_, len(held))
    if any(map(_is_timed, compress(held, unnamed.tobytes()))):
        raise Irregular  # a slice whose phase is taken for granted
    for event in compress(held, (~unnamed).tobytes()):
        if event.ph and event.ph[0] in PHASES:
            raise Irregular
        if event.ph:
            out.note("unknown-phase", event.ph)
    empty = np.zeros(len(held), np.bool_)
    maybe = np.flatnonzero(unnamed & _CLOSES[np.frombuffer(body, np.uint8)[starts[odd] + 1]])
    empty[maybe] = [_EMPTY.match(body, at) is not None for at in starts[odd[maybe]].tolist()]
    out.note("not-an-event", "{}", int(empty.sum()))
    rest = np.fromiter((not event.ph for event in held), np.bool_, len(held)) & ~empty
    if rest.any():
        out.note("no-phase", held[int(np.argmax(rest))].name, int(rest.sum()))


def _is_timed(event: Any) -> bool:
    """Whether an event states when it began and how long it took."""
    if isinstance(event, TextTimes):
        return bool(event.ts == event.ts and event.dur == event.dur)  # neither is NaN
    return math.isfinite(event.ts) and math.isfinite(event.dur)


@dataclass(frozen=True)
class _Rows:
    """Columns over all events of the piece."""

    phase: U8
    in_slices: Bool  # those with a time that is usable
    timed: Bool
    time: I64
    dur: I64  # of the slices alone
    start: I64
    length: I32


class _Strings:
    """Ids by order of first sight; numbers and their text are one."""

    def __init__(self) -> None:
        self._ids: defaultdict[Any, int] = defaultdict(count().__next__)

    def of(self, events: list[Any], *names: str) -> list[I32]:
        """int32[n] for each of these fields (two or more): whole rows of texts are looked up at once, as few differ."""
        rows: defaultdict[Any, int] = defaultdict(count().__next__)
        at = np.fromiter(map(rows.__getitem__, map(attrgetter(*names), events)), np.int32, len(events))
        ids = self._ids
        table = np.array([[ids[text] for text in row] for row in rows], np.int32).reshape(-1, len(names))
        return [column[at] for column in table.T.copy()]

    def values(self) -> list[str]:
        """Texts in id order; a number and the same text both occur, `join` makes them one."""
        return [value if isinstance(value, str) else str(value) for value in self._ids]


def _slices(out: EventColumns, chosen: list[Any], strings: _Strings, rows: _Rows) -> None:
    at, durations = np.flatnonzero(rows.in_slices), rows.dur
    category, name, pid, tid = strings.of(chosen, "cat", "name", "pid", "tid")
    used, phase = strings.values(), rows.phase[at]
    shown = without_spans(out, used, category, name, phase)
    if shown is not None:
        chosen = list(compress(chosen, shown.tobytes()))
        at, durations, phase = at[shown], durations[shown], phase[shown]
        category, name, pid, tid = (column[shown] for column in (category, name, pid, tid))
    note_durations(out, used, name, phase, durations)
    out.slices = SliceColumns(
        phase=phase,
        category=category,
        name=name,
        pid=pid,
        tid=tid,
        time_ns=rows.time[at],
        dur_ns=durations,
        **_numbers(list(map(attrgetter("args"), chosen)), kinds_of(used, category)),
        async_id=_async_ids(chosen, phase),
        start=rows.start[at],
        length=rows.length[at],
    )


def _numbers(args: list[Any], kinds: U8) -> dict[str, Any]:
    """Columns of the arguments of slices of these kinds: -1 where a kind has none."""
    on_device = ON_DEVICE[kinds]
    calls = IS_CALL[kinds] | on_device
    device_args = list(compress(args, on_device.tobytes()))
    external = _ints("external", args, kinds != SliceKind.PYTHON)
    if bool((external[calls] < 0).any()):
        external = np.where(external < 0, _ints("external_2021", args, calls & (external < 0)), external)
    copies = _spread("bytes", device_args, on_device)
    sized = on_device & (kinds != SliceKind.KERNEL)
    if bool((copies[sized] < 0).any()):
        copies = np.where(copies < 0, _ints("size", args, sized), copies)
    return {
        "correlation": _ints("correlation", args, calls),
        "external": external,
        "copy_bytes": copies,
        "device": _spread("device", device_args, on_device).astype(np.int32),
        "stream": _spread("stream", device_args, on_device),
        "order": _ints("python_id", args, kinds == SliceKind.PYTHON),
    }


def _async_ids(events: list[Any], phase: U8) -> I64:
    """int64[n]: number of the id of each async half, -1 for all others."""
    ids = np.full(len(events), -1, np.int64)
    for i in np.flatnonzero((phase == _ASYNC_B) | (phase == _ASYNC_E)).tolist():
        ids[i] = flow_key(events[i].id2 if events[i].id is None else events[i].id)
    return ids


def _flow_ids(events: list[Any]) -> I64:
    """int64[n]: number of the id of each arrow's end."""
    try:
        return np.fromiter(map(attrgetter("id"), events), np.int64, len(events))
    except (TypeError, ValueError):  # no id, or a text
        return np.fromiter((flow_key(event.id) for event in events), np.int64, len(events))


def _ints(name: str, args: list[Any], where: Bool) -> I64:
    """int64[n] of an argument, -1 outside ``where``."""
    return _spread(name, args if where.all() else list(compress(args, where.tobytes())), where)


def _spread(name: str, args: list[Any], where: Bool) -> I64:
    """int64[n] of an argument of those that ``where`` chooses, -1 elsewhere."""
    found = np.fromiter(map(attrgetter(name), args), np.int64, len(args))
    if len(args) == len(where):
        return found
    values = np.full(len(where), -1, np.int64)
    if len(args):
        values[where] = found
    return values


def _flows(out: EventColumns, events: list[Any], strings: _Strings, rows: _Rows) -> None:
    mask = IS_ARROW[rows.phase] & rows.timed
    chosen = list(compress(events, mask.tobytes()))
    n = len(chosen)
    if not n:
        return
    category, pid, tid = strings.of(chosen, "cat", "pid", "tid")
    out.flows = FlowColumns(
        phase=rows.phase[mask],
        category=category,
        pid=pid,
        tid=tid,
        time_ns=rows.time[mask],
        flow_id=_flow_ids(chosen),
    )


def _instants(out: EventColumns, events: list[Any], strings: _Strings, rows: _Rows) -> None:
    mask = (rows.phase == _I) & rows.timed
    chosen = list(compress(events, mask.tobytes()))
    if not chosen:
        return
    at = np.flatnonzero(mask)
    memory = np.array([event.name == MEMORY_EVENT for event in chosen], np.bool_)
    held = list(compress(chosen, memory.tobytes()))
    args = [event.args for event in held]
    n = len(held)

    def column(name: str, dtype: type = np.int64) -> Any:
        return np.fromiter(map(attrgetter(name), args), dtype, n)

    pid, tid = strings.of(held, "pid", "tid")
    out.memory = MemoryColumns(
        pid=pid,
        tid=tid,
        time_ns=rows.time[at[memory]],
        device_type=column("device_type", np.int32),
        device=column("device_id", np.int32),
        address=column("address"),
        bytes=column("allocation"),
        allocated=column("allocated"),
        reserved=column("reserved"),
    )
    others = list(compress(chosen, (~memory).tobytes()))
    name, pid, tid = strings.of(others, "name", "pid", "tid")
    out.instants = InstantColumns(
        name=name,
        pid=pid,
        tid=tid,
        time_ns=rows.time[at[~memory]],
        start=rows.start[at[~memory]],
        length=rows.length[at[~memory]],
    )


def _counters(out: EventColumns, body: bytes, starts: I64, lengths: I32, rows: Any) -> None:
    if not len(rows):
        return
    spans = [(int(starts[i]), int(lengths[i])) for i in rows]
    decoded = decode_events(orjson.loads(body[a : a + n]) for a, n in spans)
    base = len(out.strings)
    out.strings = out.strings + decoded.strings
    counters = decoded.counters
    counters.name += np.int32(base)
    counters.pid += np.int32(base)
    out.counters = counters
