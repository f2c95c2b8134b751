"""Where the events of a text begin and end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from core.errors import TraceError
from core.importing.repair import Unreadable, parse_event

_EVENT_KEY = rb'"(?:ph|name|cat|pid|tid|ts|id|dur|args|s|bp)"\s*:'
BORDER = re.compile(rb"\}\s*,?\s*(?=\{\s*" + _EVENT_KEY + rb")")
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["{}\[\]]', re.S)  # possessive: a string without end costs one look
_SKIP = re.compile(rb"[\s,\x00]*")
_SCALAR = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[^\s,\]\[{}"]+', re.S)
_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*')
_FIRST_EVENT = re.compile(rb"\s*\{\s*" + _EVENT_KEY)
HEADER_LIMIT_BYTES = 64 << 20
_REACH_BYTES = 2 << 20  # how far behind the next border an event may end (lists of objects in its arguments)
EVENT_LIMIT_BYTES = 32 << 20


@dataclass(frozen=True)
class Layout:
    """Where the list of events starts, and what stood before it."""

    start: int
    header: dict[str, Any]
    form: str  # "object" | "array" | "lines" | "nested"
    repairs: tuple[str, ...] = ()


def find_events(text: bytes, final: bool) -> Layout | None:
    """Find the list of events in the beginning of a text.

    Returns
    -------
    Layout | None
        None when it cannot be told yet (more text is needed) or, at the end of the text, when there is none.
    """
    first = _SKIP.match(text)
    at = first.end() if first else 0
    head = text[at : at + 1]
    if head == b"[":
        return Layout(at + 1, {}, "array")
    if head != b"{":
        return None
    for key in _EVENTS_KEY.finditer(text, at):
        if text[key.end() : key.end() + 1] != b"[":
            continue
        for closing in range(4):
            try:
                value, repairs = parse_event(text[at : key.start()] + b'"traceEvents":[]' + b"}" * (closing + 1))
            except Unreadable:
                continue
            if isinstance(value, dict):
                form = "nested" if closing else "object"
                return Layout(key.end() + 1, value, form, repairs)
    if (final or len(text) >= HEADER_LIMIT_BYTES) and _FIRST_EVENT.match(text, at) and b'"ph"' in text[: 1 << 16]:
        return Layout(at, {}, "lines")
    return None


def last_border(text: bytes) -> int:
    """Offset behind the last place where one event ends and the next begins, -1 when there is none."""
    window = 1 << 16
    while True:
        found = -1
        for border in BORDER.finditer(text, max(len(text) - window, 0)):
            found = border.end()
        if found >= 0 or window >= len(text):
            return found
        window *= 16


def value_end(text: bytes, at: int, limit: int | None = None) -> int:
    """Offset behind the object or list that starts at ``at``, -1 when it does not end (before ``limit``)."""
    depth = 0
    for token in _TOKEN.finditer(text, at, len(text) if limit is None else min(limit, len(text))):
        kind = token.group()
        if kind in (b"{", b"["):
            depth += 1
        elif kind in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                return token.end()
        elif kind == b'"':
            return -1
    return -1


@dataclass(frozen=True)
class Found:
    """One entry of the event list. ``value`` is None and ``readable`` False where no repair helped."""

    start: int
    end: int
    value: Any
    repairs: tuple[str, ...] = ()
    readable: bool = True


class Walk:
    """Walks through a stretch of the event list, one entry at a time, whatever state it is in.

    ``final`` says that no more text follows. After iterating, ``consumed`` is the offset up to which all was
    understood, ``ended`` tells whether the list's end was met (``consumed`` then lies behind it), and ``closed``
    whether it was a proper ``]``.
    """

    def __init__(self, text: bytes, raw_backslashes: bool, final: bool = False) -> None:
        self._text, self._raw, self._final = text, raw_backslashes, final
        self.consumed = 0
        self.ended = self.closed = False
        self.extra_commas = 0
        self.trailing_comma = False

    def __iter__(self) -> Iterator[Found]:
        text = self._text
        at = 0
        while True:
            gap = _SKIP.match(text, at)
            skipped = gap.group() if gap else b""
            at += len(skipped)
            commas = skipped.count(b",")
            self.trailing_comma = commas > 0
            self.extra_commas += max(commas - 1, 0)
            self.consumed = at
            if at >= len(text):
                return
            mark = text[at : at + 1]
            if mark in (b"]", b"}"):
                self.ended, self.closed = True, mark == b"]"
                self.consumed = at + (mark == b"]")
                return
            found = self._container(at) if mark in (b"{", b"[") else self._scalar(at)
            if found is None:
                return
            yield found
            at = found.end

    def _scalar(self, at: int) -> Found | None:
        found = _SCALAR.match(self._text, at)
        if not found:
            return None if self._text[at : at + 1] == b'"' else Found(at, at + 1, None, readable=False)
        if found.end() == len(self._text):
            return None
        return Found(at, found.end(), found.group()[:80].decode("utf-8", "replace"))

    def _container(self, at: int) -> Found | None:
        text = self._text
        border = BORDER.search(text, at) if text[at : at + 1] == b"{" else None
        near = text.find(b"}", border.start()) + 1 if border else -1
        if border:
            try:
                return Found(at, near, *_strict(text[at:near], self._raw))
            except Unreadable:
                pass
        far = value_end(text, at, near + _REACH_BYTES if border else None)
        if far > 0 and far != near:
            try:
                return Found(at, far, *_strict(text[at:far], self._raw))
            except Unreadable:
                pass
        if far < 0 and not self._final and len(text) - at < _REACH_BYTES:
            return None  # it may go on in the next piece
        for end in (near, far):
            if end > 0:
                try:
                    return Found(at, end, *parse_event(text[at:end], self._raw))
                except Unreadable:
                    continue
        end = near if near > 0 else far
        return Found(at, end, None, readable=False) if end > 0 else None


def _strict(text: bytes, raw_backslashes: bool) -> tuple[Any, tuple[str, ...]]:
    if raw_backslashes and b"\\" in text:
        return parse_event(text, True)
    try:
        return orjson.loads(text), ()
    except orjson.JSONDecodeError as error:
        raise Unreadable from error


def read_footer(text: bytes) -> tuple[dict[str, Any], bool, bytes]:
    """Read what stands behind the list of events in the object form.

    Returns
    -------
    tuple
        Top-level keys, whether the object was closed properly, and what follows it.
    """
    body = text.lstrip(b" \t\r\n")
    if body[:1] == b",":
        body = body[1:]
    whole = b"{" + body
    end = value_end(whole, 0)
    if end < 0:
        try:
            value, _ = parse_event(whole.rstrip(b" \t\r\n,\x00") + b"}")
        except Unreadable:
            value = {}
        return value if isinstance(value, dict) else {}, False, b""
    try:
        value, _ = parse_event(whole[:end])
    except Unreadable:
        value = {}
    return value if isinstance(value, dict) else {}, True, whole[end:]


def foreign(name: str, text: bytes, read_bytes: int) -> TraceError:
    """Say what a file without events is."""
    body = text.lstrip(b" \t\r\n\x00")
    advice = (
        "Open the .json or .json.gz file that torch.profiler wrote (export_chrome_trace or tensorboard_trace_handler)."
    )
    if not body:
        what = "The file is empty" if read_bytes == 0 else "The file holds only blanks"
        return TraceError(f"{name} is empty.", f"{what}.", "Profile again, or copy the file again.", 0)
    found = _what_it_is(body)
    if found:
        return TraceError(f"{name} is not a PyTorch trace: {found[0]}.", found[1], found[2] or advice, 0)
    if body[:1] == b"{" and value_end(body, 0) < 0 and len(text) < HEADER_LIMIT_BYTES:
        return TraceError(
            f"{name} has no trace events in it (it ends after {read_bytes} bytes).",
            "The file breaks off before its list of events.",
            "The job probably ended while it was writing; profile again, or copy the file again.",
            read_bytes,
        )
    shown = body[:40].decode("utf-8", "replace")
    printable = "".join(c if c.isprintable() else "\ufffd" for c in shown)
    return TraceError(f"{name} is not a Chrome or PyTorch trace.", f"It starts with: {printable}", advice, 0)


def _what_it_is(body: bytes) -> tuple[str, str, str] | None:
    start = body[:4096].lower()
    if start.startswith(b"version https://git-lfs"):
        return (
            "it is a Git LFS pointer",
            "The real file is stored elsewhere and was not fetched.",
            "Run git lfs pull in its repository, then open it again.",
        )
    if start.startswith(b"<"):
        return "it is HTML or XML, not JSON", "A web page was saved in its place.", "Download the raw file."
    if b"speedscope" in start:
        return (
            "it is a speedscope profile",
            "",
            "Open it at speedscope.app, or export a Chrome trace from torch.profiler.",
        )
    if b"\x00" in body[:4096] or body[:1] not in b'{["ntf-0123456789':
        return "it is a binary or plain text file", "", ""
    if len(body) > HEADER_LIMIT_BYTES:
        return f"its first {HEADER_LIMIT_BYTES >> 20} MB hold no traceEvents", "", ""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if isinstance(value, dict):
        keys = ", ".join(str(key)[:30] for key in list(value)[:6])
        if "traceEvents" in value:
            kind = type(value["traceEvents"]).__name__
            names = {"dict": "an object", "NoneType": "null", "str": "text", "int": "a number"}
            return f"its traceEvents is {names.get(kind, kind)}, not a list", "", ""
        if "nodes" in value and "schema" in value:
            return "it is an execution trace", f"Its keys are {keys}.", ""
        return "it has no traceEvents", f"Its keys are {keys}." if keys else "It is an empty object.", ""
    return f"it holds {'null' if value is None else 'a single ' + type(value).__name__}", "", ""
