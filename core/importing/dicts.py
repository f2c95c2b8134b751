"""Decoding event by event: exact, and at home with every irregularity. The fast path falls back to this."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from core.importing.columns import (
    NO_DURATION,
    CounterColumns,
    EventColumns,
    FlowColumns,
    InstantColumns,
    Interner,
    MemoryColumns,
    SliceColumns,
    group_of,
)
from core.importing.kineto import MEMORY_EVENT, PROFILER_SPAN
from core.importing.numbers import time_ns, whole

_SLICE = ("phase", "category", "name", "pid", "tid", "time_ns", "dur_ns", "correlation", "external", "copy_bytes",
          "device", "stream", "order", "async_id", "start", "length")  # fmt: skip
_FLOW = ("phase", "category", "pid", "tid", "time_ns", "flow_id")
_MEMORY = ("pid", "tid", "time_ns", "device_type", "device", "address", "bytes", "allocated", "reserved")
_INSTANT = ("name", "pid", "tid", "time_ns", "start", "length")
_COUNTER = ("name", "pid", "time_ns", "value")
_I32_MAX = (1 << 31) - 1
_STRING_ID_BASE = 1 << 61
DROPPING = ("not-an-event", "no-phase", "unknown-phase", "no-time", "event-unreadable")


class DictDecoder:
    """Turns event dicts into `EventColumns`."""

    def __init__(self) -> None:
        self.fillers = 0  # entries taken by `add_many`
        self._intern = Interner()
        self._slices: list[tuple[int, ...]] = []
        self._flows: list[tuple[int, ...]] = []
        self._memory: list[tuple[int, ...]] = []
        self._instants: list[tuple[int, ...]] = []
        self._counters: list[tuple[int, int, int, float]] = []
        self._out = EventColumns(strings=[])
        self._by_phase: dict[str, Callable[[dict[str, Any], str, int, int], None]] = {
            **dict.fromkeys("XBEbe", self._slice),
            **dict.fromkeys("stf", self._flow),
            **dict.fromkeys("iIRnO", self._instant),
            "M": self._metadata,
            "C": self._counter,
        }

    def add(self, event: Any, start: int = -1, length: int = -1) -> None:
        """Take one event; what cannot be used is counted."""
        self._out.events += 1
        if not isinstance(event, dict) or not event:
            self._out.note("not-an-event", repr(event)[:80])
            return
        phase = event.get("ph")
        if not isinstance(phase, str) or not phase:
            if phase is None and "dur" in event and "ts" in event:
                phase = "X"
            else:
                self._out.note("no-phase", _text(event.get("name")))
                return
        handler = self._by_phase.get(phase[0])
        if handler is None:
            self._out.note("unknown-phase", phase)
            return
        handler(event, phase[0], start, length)

    def add_many(self, entry: Any, count: int) -> None:
        """Count entries that hold nothing, all told by the first."""
        self._out.events += count
        self.fillers += count
        self._out.note("not-an-event", repr(entry)[:80], count)

    @property
    def events(self) -> int:
        """Entries taken so far."""
        return self._out.events

    def wasted(self) -> int:
        """Entries looked at one by one that yielded nothing."""
        return sum(self._out.problems.get(code, 0) for code in DROPPING) - self.fillers

    def note(self, code: str, count: int) -> None:
        """Count a repair."""
        self._out.note(code, "", count)

    def unreadable(self, example: str) -> None:
        """Count an event that could not be read."""
        self._out.events += 1
        self._out.note("event-unreadable", example)

    def finish(self) -> EventColumns:
        """Return the columns of all events taken."""
        out = self._out
        out.strings = list(self._intern.ids)
        out.slices = group_of(SliceColumns, _columns(_SLICE, self._slices))
        out.flows = group_of(FlowColumns, _columns(_FLOW, self._flows))
        out.memory = group_of(MemoryColumns, _columns(_MEMORY, self._memory))
        out.instants = group_of(InstantColumns, _columns(_INSTANT, self._instants))
        out.counters = group_of(CounterColumns, _columns(_COUNTER, self._counters))
        return out

    def _time(self, event: dict[str, Any]) -> int | None:
        time = time_ns(event.get("ts"))
        if time is None:
            self._out.note("no-time", _text(event.get("name")))
        return time

    def _slice(self, event: dict[str, Any], phase: str, start: int, length: int) -> None:
        category = _text(event.get("cat"))
        if category.lower() == PROFILER_SPAN and phase == "X":
            self._out.note("profiler-span", _text(event.get("name")))
            return
        time = self._time(event)
        if time is None:
            return
        dur = time_ns(event.get("dur")) if "dur" in event else None
        if phase == "X" and (dur is None or dur < 0):
            self._out.note("no-duration", _text(event.get("name")))
        args = event.get("args")
        get = args.get if isinstance(args, dict) else {}.get
        external = get("External id", get("external id"))
        copy_bytes = get("bytes", get("size"))
        async_id = event.get("id", event.get("id2")) if phase in "be" else None
        intern = self._intern
        self._slices.append((
            ord(phase), intern(category), intern(_name(event)), intern(_text(event.get("pid"))),
            intern(_text(event.get("tid"))), time, dur if dur is not None and dur >= 0 else NO_DURATION,
            whole(get("correlation")), whole(external), whole(copy_bytes),
            _small(get("device")), whole(get("stream")), whole(get("Python id")),
            flow_key(async_id), start, length,
        ))  # fmt: skip

    def _flow(self, event: dict[str, Any], phase: str, start: int, length: int) -> None:
        time = self._time(event)
        if time is not None:
            intern = self._intern
            self._flows.append((
                ord(phase), intern(_text(event.get("cat"))), intern(_text(event.get("pid"))),
                intern(_text(event.get("tid"))), time, flow_key(event.get("id")),
            ))  # fmt: skip

    def _instant(self, event: dict[str, Any], phase: str, start: int, length: int) -> None:
        time = self._time(event)
        if time is None:
            return
        intern = self._intern
        pid, tid = intern(_text(event.get("pid"))), intern(_text(event.get("tid")))
        name = _name(event)
        args = event.get("args", {})
        if name == MEMORY_EVENT and isinstance(args, dict):
            get = args.get
            self._memory.append((
                pid, tid, time, _small(get("Device Type")), _small(get("Device Id")), whole(get("Addr")),
                _signed(get("Bytes")), whole(get("Total Allocated")), whole(get("Total Reserved")),
            ))  # fmt: skip
        else:
            self._instants.append((intern(name), pid, tid, time, start, length))

    def _metadata(self, event: dict[str, Any], phase: str, start: int, length: int) -> None:
        args = event.get("args")
        if not isinstance(args, dict):
            return
        what = _text(event.get("name"))
        value = args.get(
            {"process_labels": "labels"}.get(what, "sort_index" if what.endswith("sort_index") else "name")
        )
        if value is not None:
            self._out.metadata[_text(event.get("pid")), _text(event.get("tid")), what] = value

    def _counter(self, event: dict[str, Any], phase: str, start: int, length: int) -> None:
        time = self._time(event)
        args = event.get("args")
        if time is None or not isinstance(args, dict):
            return
        name = _name(event)
        pid = self._intern(_text(event.get("pid")))
        for key, value in args.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                label = name if key in ("value", name) and len(args) == 1 else f"{name}: {key}"
                self._counters.append((self._intern(label), pid, time, float(value)))


def decode_events(events: Iterable[Any], spans: Iterable[tuple[int, int]] | None = None) -> EventColumns:
    """Columns of event dicts; ``spans`` gives (start, length) of each in the text."""
    decoder = DictDecoder()
    if spans is None:
        for event in events:
            decoder.add(event)
    else:
        for event, (start, length) in zip(events, spans, strict=True):
            decoder.add(event, start, length)
    return decoder.finish()


def hash_text(text: str) -> int:
    """Stable 60-bit number of a text, equal in every process."""
    value = 14695981039346656037 & 0xFFFFFFFFFFFFFFF  # masked from the start: the empty text has a number too
    for byte in text.encode("utf-8", "surrogatepass"):
        value = ((value ^ byte) * 1099511628211) & 0xFFFFFFFFFFFFFFF
    return value


def flow_key(value: Any) -> int:
    """Number of the id of a flow or an async event.

    Numbers stand for themselves; other ids get a number of their own, kept apart from real ones; -1 is none.
    """
    if value is None:
        return -1
    number = whole(value)
    if number != -1 or value in (-1, "-1"):
        return number
    return _STRING_ID_BASE + hash_text(_text(value))


def _columns(names: tuple[str, ...], rows: list[Any]) -> dict[str, Any]:
    return dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(names, ())


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return str(value)


def _name(event: dict[str, Any]) -> str:
    return _text(event.get("name"))


def _small(value: Any) -> int:
    number = whole(value)
    return number if -1 <= number <= _I32_MAX else -1


def _signed(value: Any) -> int:
    """Bytes of an allocation: negative when freed, so that -1 is a value here; 0 when it is no number."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62:
        return value
    return 0
