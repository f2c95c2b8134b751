"""Events as `msgspec` makes them of a piece: only the fields that become columns are ever made into objects."""

from __future__ import annotations

import re
from operator import attrgetter
from typing import Any, ClassVar, get_args

import msgspec
import numpy as np

from core.tables import U8

_NAN = float("nan")
_INSTANTS = "IRnO"  # what the phase "i" was, and is still called


class Phases(dict[str | None, int]):
    """Code of each phase, 0 of what is none."""

    def __missing__(self, phase: str | None) -> int:
        return 0


PHASES = Phases({phase: ord(phase) for phase in "XstfiMCBEbe"} | dict.fromkeys(_INSTANTS, ord("i")))


class _SliceArgs(msgspec.Struct, gc=False, frozen=True):
    correlation: int = -1
    external: int = msgspec.field(default=-1, name="External id")
    external_2021: int = msgspec.field(default=-1, name="external id")
    bytes: int | str = -1
    size: int | str = -1
    device: int | str = -1
    stream: int | str = -1
    python_id: int = msgspec.field(default=-1, name="Python id")


class Args(_SliceArgs, gc=False, frozen=True):
    """What stands in an event's ``args``, whatever it is."""

    device_type: int = msgspec.field(default=-1, name="Device Type")
    device_id: int = msgspec.field(default=-1, name="Device Id")
    address: int = msgspec.field(default=-1, name="Addr")
    allocation: int = msgspec.field(default=0, name="Bytes")
    allocated: int = msgspec.field(default=-1, name="Total Allocated")
    reserved: int = msgspec.field(default=-1, name="Total Reserved")
    name: Any = None
    labels: Any = None
    sort_index: Any = None


_OF_MEMORY = ("device_type", "device_id", "address", "allocation", "allocated", "reserved")
_InstantArgs: Any = msgspec.defstruct(
    "_InstantArgs",
    [
        (field.name, field.type, msgspec.field(default=field.default, name=field.encode_name))
        for field in msgspec.structs.fields(Args)
        if field.name in _OF_MEMORY
    ],
    gc=False,
    frozen=True,
)
_NO_SLICE_ARGS, _NO_ARGS, _NO_INSTANT_ARGS = _SliceArgs(), Args(), _InstantArgs()


class _Any(msgspec.Struct, gc=False):
    cat: str = ""
    name: str = ""
    pid: int | str = ""
    tid: int | str = ""
    ts: float = _NAN
    dur: float = _NAN
    id: int | str | None = None
    id2: int | str | None = None
    args: Args = _NO_ARGS


class Event(_Any, gc=False):
    """An event of whatever phase, or of none."""

    ph: str | None = None


class TextTimes(Event, gc=False):
    """The dialects that write times as text (torch_npu)."""

    ts: float | str = _NAN  # type: ignore[assignment]
    dur: float | str = _NAN  # type: ignore[assignment]


class _Slice(msgspec.Struct, gc=False, tag_field="ph", tag="X"):
    """Most events are slices: what they never have is not looked for."""

    cat: str = ""
    name: str = ""
    pid: int | str = ""
    tid: int | str = ""
    ts: float = _NAN
    dur: float = _NAN
    args: _SliceArgs = _NO_SLICE_ARGS


class _Instant(msgspec.Struct, gc=False):
    """The category of an instant is not shown, and of its arguments only what is said about memory."""

    name: str = ""
    pid: int | str = ""
    tid: int | str = ""
    ts: float = _NAN
    args: _InstantArgs = _NO_INSTANT_ARGS


class _Arrow(msgspec.Struct, gc=False):
    """The end of an arrow has no name that is shown."""

    cat: str = ""
    pid: int | str = ""
    tid: int | str = ""
    ts: float = _NAN
    id: int | str | None = None
    name: ClassVar[str] = ""
    dur: ClassVar[float] = _NAN


def _of_phase(phase: str, base: type[msgspec.Struct]) -> type[msgspec.Struct]:
    return msgspec.defstruct(f"{base.__name__}_{phase}", [], bases=(base,), tag_field="ph", tag=phase, gc=False)


_KINDS: Any = _Slice
for _phase in "stf":
    _KINDS = _KINDS | _of_phase(_phase, _Arrow)
for _phase in "i" + _INSTANTS:
    _KINDS = _KINDS | _of_phase(_phase, _Instant)
for _phase in "MCBEbe":
    _KINDS = _KINDS | _of_phase(_phase, _Any)
_PHASE_OF_TYPE = {kind: PHASES[kind.__struct_config__.tag] for kind in get_args(_KINDS)}

_BY_PHASE = msgspec.json.Decoder(list[_KINDS])
_DECODER = msgspec.json.Decoder(list[Event])
_TEXT_TIMES_DECODER = msgspec.json.Decoder(list[TextTimes])
_TEXT_TIME = re.compile(rb'"(?:ts|dur)"\s*+:\s*+"')


def events_of(body: bytes) -> tuple[list[Any], bytes]:
    """Events of a list, and the list as it was read: where lines stand for commas, commas take their place.

    Returns
    -------
    list[Any]
        `Event` or `TextTimes` all of them, or all of a type that tells their phase and has what that phase needs.

    Raises
    ------
    msgspec.DecodeError, UnicodeDecodeError, RecursionError
        When anything in it is not as Kineto writes it.
    """
    failures = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
    try:
        return _BY_PHASE.decode(body), body
    except failures:
        pass
    try:
        return list(_DECODER.decode(body)), body
    except failures:
        if b"}\n{" in body or b"}\r\n{" in body:
            body = body.replace(b"}\n{", b"},{").replace(b"}\r\n{", b"},\n{")
            return list(_DECODER.decode(body)), body
        if _TEXT_TIME.search(body):
            return list(_TEXT_TIMES_DECODER.decode(body)), body
        raise


def phases_of(events: list[Any]) -> U8:
    """uint8[n]: code of the phase of each event, 0 where it is none."""
    if events and isinstance(events[0], Event):
        return np.fromiter(map(PHASES.__getitem__, map(attrgetter("ph"), events)), np.uint8, len(events))
    return np.fromiter(map(_PHASE_OF_TYPE.__getitem__, map(type, events)), np.uint8, len(events))


def metadata_of(parts: list[bytes]) -> dict[tuple[str, str, str], Any]:
    """Values by process, thread and what they are, of the texts of ``M`` events; the last one wins.

    Raises
    ------
    msgspec.DecodeError, UnicodeDecodeError, RecursionError
        As `events_of`.
    """
    return told_by(_DECODER.decode(b"[%b]" % b",".join(parts)))


def told_by(events: list[Any]) -> dict[tuple[str, str, str], Any]:
    """Values by process, thread and what they are, of ``M`` events; the last one wins."""
    held = {}
    for event in events:
        what = event.name
        if what == "process_labels":
            value = event.args.labels
        else:
            value = event.args.sort_index if what.endswith("sort_index") else event.args.name
        if value is not None:
            held[str(event.pid), str(event.tid), what] = value
    return held
