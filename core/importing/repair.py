"""Reading one event whose JSON is damaged, and saying what was done to it.

Each repair is tried only after plain parsing failed, from the least to the most daring; nothing is changed outside
the fault itself (a kernel may well be called ``inf, nan, N/A``).
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
import orjson
from numpy.typing import NDArray

# Possessive, and never begun at a quotation mark that is escaped: one without end is looked along once, not once for
# each mark in it. Numbers are taken whole for the same reason.
_STRING = rb'(?<!\\)"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_TOKENS = re.compile(
    _STRING + rb"|[-+]?(?<!\d)\d++\.#[A-Z]+"
    rb"|[-+]?\b(?:nan|inf(?:inity)?|n/?a|none|undefined)\b(?:\([a-z0-9]*\))?",
    re.I | re.S,
)
_NUMBERS = re.compile(_STRING + rb"|-?\d++(?:\.\d++)?+(?:[eE][-+]?+\d++)?+", re.S)
_COMMAS = re.compile(_STRING + rb"|,(?=\s*[}\]])|(?<=[\[{,])\s*,", re.S)
_STRINGS = re.compile(_STRING, re.S)
_CONTROL = re.compile(rb"[\x00-\x1f]")
_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\\\"
)
_BAD_ESCAPE = re.compile(rb'\\(?:\\|["/bfnrt]|u[0-9a-fA-F]{4})|(\\)')
_BACKSLASH, _QUOTE = b'\\"'
_SINGLE_BACKSLASH = re.compile(rb'\\(?!")')
# A string whose backslashes all stand in pairs is escaped as it should be; so is the end of one that ends in a pair.
_PAIRED = rb'(?<!\\)"[^"\\]*+(?:(?:\\\\)++(?!\\)[^"\\]*+)++"|(?<!\\)(?:\\\\)++(?=")'
_UNPAIRED_BACKSLASH = re.compile(rb"(" + _PAIRED + rb')|(\\)(?!")', re.S)
_CLOSING_QUOTE = re.compile(rb'"\s*+(?:[}\]]|,\s*+["{\[]|\Z)')
_CLOSING_BACKSLASH = re.compile(rb'(?<!\\)((?:\\\\)*+)\\(?="\s*+(?:[}\]]|,\s*+["{\[]|\Z))')
_CLOSES = re.compile(rb'\s*(?:[}\]:]|,\s*(?:["{\[\-\d]|true|false|null)|\Z)')
_REPLACEMENT = "\ufffd".encode()
_ESCAPED_BYTES = re.compile("[\udc80-\udcff]+")
_TOO_DEEP = re.compile("recursion|depth limit", re.I)  # as orjson says it: no repair helps there
MAX_REPAIRED_BYTES = 16 << 20
MAX_VALUE_BYTES = 2 << 20
_RAW_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Unreadable(Exception):
    """No repair made an event of this text."""


def has_bad_escape(text: bytes) -> bool:
    r"""Tell whether a backslash stands before what JSON does not allow there, as in ``C:\cuda``."""
    return any(found.group(1) for found in _BAD_ESCAPE.finditer(text))


def double_backslashes(text: bytes) -> bytes:
    r"""Escape the backslashes of a writer that escapes none; one before a quotation mark is taken for an escape.

    Some writers escape here and not there: ``"C:\\dir"`` and the end of ``"C:\dir\\"`` stay as they are.
    """
    if b"\\\\" not in text:
        return _SINGLE_BACKSLASH.sub(rb"\\\\", text)
    return _UNPAIRED_BACKSLASH.sub(rb"\1\2\2", text)


def unescaped_backslashes(text: bytes) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Offsets of the backslashes that `double_backslashes` doubles, and of those that end a path.

    The latter, int[m] beside int[n], seem to escape the quotation mark that closes the path's string: doubled too,
    they make it whole. For long texts: runs of backslashes are looked at together.
    """
    codes = np.frombuffer(text, np.uint8)
    slashes, quotes = np.flatnonzero(codes == _BACKSLASH), np.flatnonzero(codes == _QUOTE)
    if not len(slashes):
        return slashes, slashes
    first = np.flatnonzero(np.diff(slashes, prepend=-2) != 1)  # of each run
    length = np.diff(first, append=len(slashes))
    start = slashes[first]
    end = start + length
    at_quote = np.append(codes, 0)[end] == _QUOTE
    odd = length % 2 == 1
    part = np.searchsorted(quotes, start)  # number of the stretch between quotation marks
    paired = np.bincount(part, minlength=len(quotes) + 1) > 0
    paired[part[odd]] = False
    paired[0] = paired[-1] = False
    begins = quotes[:-1]
    paired[1:-1] &= (begins == 0) | (codes[np.maximum(begins - 1, 0)] != _BACKSLASH)
    kept = _every_other(paired)[part] | (at_quote & ~odd)
    doubled = np.repeat(~kept, length)
    doubled[(first + length - 1)[odd & at_quote]] = False
    ends = end[odd & at_quote] - 1
    closes = np.fromiter((_CLOSING_QUOTE.match(text, at + 1) is not None for at in ends.tolist()), np.bool_, len(ends))
    return slashes[doubled], ends[closes]


def _every_other(marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of each row of neighbours the first, third and so on: a mark that closes a string opens no other one."""
    at = np.arange(len(marked))
    before = np.maximum.accumulate(np.where(marked, -1, at))  # the last one that is not marked
    return np.asarray(marked & ((at - before) % 2 == 1))


def with_doubled(text: bytes, places: NDArray[np.intp]) -> bytes:
    """Double the bytes at some offsets."""
    codes = np.frombuffer(text, np.uint8)
    return np.insert(codes, places, codes[places]).tobytes()


def parse_event(text: bytes, raw_backslashes: bool = False) -> tuple[Any, tuple[str, ...]]:
    """Parse one event.

    Parameters
    ----------
    text
        The event's bytes.
    raw_backslashes
        The writer of this file escaped no backslash: each one stands for itself.

    Returns
    -------
    tuple
        The value, and the note codes of the repairs it took.

    Raises
    ------
    Unreadable
        When no repair helps.
    """
    repairs: list[str] = []
    if raw_backslashes and b"\\" in text:
        text = double_backslashes(text)
        repairs.append("backslashes-repaired")
    try:
        return orjson.loads(text), tuple(repairs)
    except orjson.JSONDecodeError as error:
        if len(text) > MAX_REPAIRED_BYTES or _TOO_DEEP.search(str(error)):
            raise Unreadable from error
    given, taken = text, tuple(repairs)
    for code, repair in _REPAIRS:
        fixed = repair(text)
        if fixed == text:
            continue
        repairs.extend([code] * _places(code, text))
        text = fixed
        try:
            return orjson.loads(text), tuple(repairs)
        except orjson.JSONDecodeError:
            continue
    try:  # a path that ends in a backslash, which then seems to escape the quotation mark
        return orjson.loads(_CLOSING_BACKSLASH.sub(rb"\1\\\\", _escapes(given))), taken or ("backslashes-repaired",)
    except orjson.JSONDecodeError as error:
        raise Unreadable from error


def parse_object(text: bytes) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Parse what stands beside the events: an object, whose values of more than `MAX_VALUE_BYTES` are left out.

    Text becomes objects forty times its size, and no value that is of use is large.

    Raises
    ------
    Unreadable
        When it is no object, or damaged beyond repair.
    """
    if len(text) > MAX_VALUE_BYTES:
        try:
            raws = _RAW_OBJECT.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Unreadable from error
        held: dict[str, Any] = {}
        for key, raw in raws.items():
            if memoryview(raw).nbytes <= MAX_VALUE_BYTES:
                with suppress(orjson.JSONDecodeError):
                    held[key] = orjson.loads(memoryview(raw))
        return held, ()
    value, repairs = parse_event(text)
    if not isinstance(value, dict):
        raise Unreadable
    return value, repairs


def _places(code: str, text: bytes) -> int:
    """In how many places a repair was made, where that says more than "once"."""
    return len(_undecodable(text)) if code == "invalid-utf8-repaired" else 1


def _undecodable(text: bytes) -> list[str]:
    """Runs of bytes that are not UTF-8."""
    return _ESCAPED_BYTES.findall(text.decode("utf-8", "surrogateescape"))


def _utf8(text: bytes) -> bytes:
    return text.decode("utf-8", "replace").encode("utf-8")


def _control(text: bytes) -> bytes:
    if not _CONTROL.search(text):
        return text
    return _STRINGS.sub(lambda m: _CONTROL.sub(_REPLACEMENT, m.group()), text)


def _control_outside(text: bytes) -> bytes:
    return re.sub(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]", _REPLACEMENT, text)


def _surrogates(text: bytes) -> bytes:
    return _SURROGATE.sub(lambda m: b"\\ufffd" if len(m.group()) == 6 else m.group(), text)


def _escapes(text: bytes) -> bytes:
    return _BAD_ESCAPE.sub(lambda m: rb"\\" if m.group(1) else m.group(), text)


def _huge_numbers(text: bytes) -> bytes:
    """Put null for the numbers that no float holds; what is of use is never that large."""
    return _NUMBERS.sub(lambda m: b"null" if _is_huge(m.group()) else m.group(), text)


def _is_huge(token: bytes) -> bool:
    if token[:1] == b'"' or not (len(token) > 300 or b"e" in token or b"E" in token):
        return False
    try:
        return math.isinf(float(token))  # in time that grows with its length, unlike int()
    except ValueError:
        return False


def _words(text: bytes) -> bytes:
    return _TOKENS.sub(lambda m: m.group() if m.group()[:1] == b'"' else b'"' + m.group() + b'"', text)


def _commas(text: bytes) -> bytes:
    return _COMMAS.sub(lambda m: m.group() if m.group()[:1] == b'"' else b"", text)


def _quotes(text: bytes) -> bytes:
    """Escape the quotation marks that cannot end a string, judged by what follows them."""
    out = bytearray()
    at = 0
    while True:
        opening = text.find(b'"', at)
        if opening < 0:
            out += text[at:]
            return bytes(out)
        out += text[at : opening + 1]
        at = opening + 1
        while True:
            closing = text.find(b'"', at)
            if closing < 0:
                out += text[at:]
                return bytes(out)
            slashes = len(text[at:closing]) - len(text[at:closing].rstrip(b"\\"))
            out += text[at:closing]
            at = closing + 1
            if slashes % 2 == 0 and _CLOSES.match(text, at):
                out += b'"'
                break
            out += b'"' if slashes % 2 else b'\\"'


_REPAIRS = (
    ("invalid-utf8-repaired", _utf8),
    ("control-characters-repaired", _control),
    ("surrogates-repaired", _surrogates),
    ("huge-numbers-repaired", _huge_numbers),
    ("bare-words-repaired", _words),
    ("commas-repaired", _commas),
    ("backslashes-repaired", _escapes),
    ("quotes-repaired", _quotes),
    ("control-characters-repaired", _control_outside),
)
