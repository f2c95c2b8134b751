"""Decoding one piece of a text: the fast road where the piece is regular, event by event where it is not."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import orjson

from core.importing import fast, native
from core.importing.columns import EventColumns
from core.importing.dicts import DictDecoder
from core.importing.numbers import EXACT_BELOW_US
from core.importing.regular import Irregular
from core.importing.repair import has_bad_escape, unescaped_backslashes, with_doubled
from core.importing.scan import FILLER, Found, Walk
from core.importing.scanned import decode_scanned
from core.importing.spans import spans_of

_LOOK_BYTES = 4096  # of a piece: entries that hold nothing would cost 100 bytes each on the fast road
_TICK_EVERY = 256
_PATIENCE = 2_000  # entries without use, from the beginning of a piece that may lie in the midst of one huge event
_BACKSLASH = 92
Tick = Callable[[], None]
_EXACT = msgspec.json.Decoder(float_hook=Decimal)


@dataclass
class PieceResult:
    """What became of a piece.

    ``consumed``: bytes understood; what is left belongs to an event that goes on in the next piece. ``ended``: the
    list of events ended there (``closed``: by its bracket). ``raw_backslashes``: the file's writer escapes nothing,
    so the file must be read again in that light. ``trailing_comma``: a comma was the last thing seen. ``wasted``:
    entries looked at one by one that yielded nothing. ``hopeless``: there were so many of these, and hardly another,
    that the rest was not looked at.
    """

    columns: EventColumns
    consumed: int
    ended: bool = False
    closed: bool = False
    raw_backslashes: bool = False
    trailing_comma: bool = False
    wasted: int = 0
    hopeless: bool = False


def decode_piece(text: bytes, base: int, raw_backslashes: bool = False, tick: Tick = lambda: None) -> PieceResult:
    """Decode a stretch of the event list that starts at an event.

    Parameters
    ----------
    text
        The bytes.
    base
        Their offset in the whole text.
    raw_backslashes
        Take every backslash for itself.
    tick
        Called now and then where this takes long; may raise `core.errors.Cancelled`.
    """
    filler = FILLER.match(text, 0, _LOOK_BYTES)
    if filler is None or filler.end() < _LOOK_BYTES // 2:
        decode = _decode_unescaped if raw_backslashes and b"\\" in text else decode_regular
        try:
            return PieceResult(decode(text, base), len(text))
        except Irregular:
            pass
    return walk_piece(text, base, raw_backslashes, tick=tick, patience=_PATIENCE)


def decode_regular(text: bytes, base: int) -> EventColumns:
    """Columns of a stretch of whole events, by the quickest road that can read it.

    Raises
    ------
    Irregular
        When anything in the piece is not as Kineto writes it.
    """
    if native.available():
        with suppress(Irregular):
            return decode_scanned(text, base)
    return fast.decode_regular(text, base)


def _decode_unescaped(text: bytes, base: int) -> EventColumns:
    """`decode_regular` of a text whose writer escaped no backslash: each is doubled, and the offsets are set right.

    Where a path ends in one, which then seems to escape the quotation mark, that one is doubled too: no other way of
    reading such a text is valid.
    """
    places, ends = unescaped_backslashes(text)
    doubled = with_doubled(text, places)
    try:
        columns = decode_regular(doubled, 0)
    except Irregular:
        if not len(ends):
            raise
        places = np.union1d(places, ends)
        doubled = with_doubled(text, places)
        columns = decode_regular(doubled, 0)
    added = places + np.arange(len(places))  # where each stands in the doubled text
    for group in (columns.slices, columns.instants):
        end = group.start + group.length
        end -= np.searchsorted(added, end)
        start = group.start - np.searchsorted(added, group.start)
        group.start, group.length = start + base, (end - start).astype(np.int32)
    close = len(doubled.rstrip(b", \t\r\n"))
    starts, lengths = spans_of(b"".join((b"[", memoryview(doubled)[:close], b"]")), columns.events)
    where = np.flatnonzero(np.frombuffer(doubled, np.uint8) == _BACKSLASH) + 1
    held = np.searchsorted(where, starts) < np.searchsorted(where, starts + lengths)
    columns.note("backslashes-repaired", count=int(held.sum()))
    return columns


def walk_piece(
    text: bytes,
    base: int,
    raw_backslashes: bool = False,
    final: bool = False,
    tick: Tick = lambda: None,
    patience: int = 1 << 62,
) -> PieceResult:
    """Decode event by event, repairing what needs it.

    ``final`` says that no more text follows; ``patience`` how many entries may yield nothing where hardly any does.
    """
    decoder = DictDecoder()
    walk = Walk(text, raw_backslashes, final)
    for number, found in enumerate(walk):
        if not number % _TICK_EVERY:
            tick()
            wasted = decoder.wasted()
            if wasted > patience and wasted > 0.99 * decoder.events:
                return PieceResult(decoder.finish(), found.start, wasted=wasted, hopeless=True)
        damaged = not found.readable or "backslashes-repaired" in found.repairs
        if damaged and not raw_backslashes and _escapes_nothing(text[found.start : found.end]):
            return PieceResult(decoder.finish(), 0, raw_backslashes=True)
        _take(decoder, found, text, base)
    decoder.note("commas-repaired", walk.extra_commas)
    wasted = decoder.wasted()
    return PieceResult(decoder.finish(), walk.consumed, walk.ended, walk.closed, False, walk.trailing_comma, wasted)


def _escapes_nothing(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return "escape" in str(error) and "surrogate" not in str(error) and has_bad_escape(text)
    return False


def _take(decoder: DictDecoder, found: Found, text: bytes, base: int) -> None:
    for code in found.repairs:
        decoder.note(code, 1)
    if not found.readable:
        decoder.unreadable(text[found.start : found.start + 80].decode("utf-8", "replace"))
        return
    value = found.value
    if found.count > 1:
        decoder.add_many(value, found.count)
        return
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        decoder.note("nested-events", 1)
        for item in value:
            decoder.add(item)
        return
    if isinstance(value, dict) and not found.repairs and _lost_digits(value.get("ts")):
        value = _with_exact_times(value, text[found.start : found.end])
    decoder.add(value, base + found.start, found.end - found.start)


def _lost_digits(value: Any) -> bool:
    return isinstance(value, float) and abs(value) >= EXACT_BELOW_US and value != math.floor(value)


def _with_exact_times(event: dict[str, Any], text: bytes) -> dict[str, Any]:
    try:
        exact = _EXACT.decode(text)
    except (msgspec.DecodeError, ArithmeticError):
        return event
    return {**event, "ts": exact.get("ts"), "dur": exact["dur"]} if "dur" in exact else {**event, "ts": exact.get("ts")}
