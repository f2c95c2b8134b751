"""Where the events of a text begin and end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson

from core.errors import TraceError
from core.importing.refusals import advice_for, what_text_is
from core.importing.repair import MAX_VALUE_BYTES, Unreadable, parse_event, parse_object

_EVENT_KEY = rb'"(?:ph|name|cat|pid|tid|ts|id|dur|args|s|bp)"\s*+:'
BORDER = re.compile(rb"\}\s*+(?:,\s*+)?+(?=\{\s*+" + _EVENT_KEY + rb")")  # possessive: blanks are looked at once
# Brackets in a row, a quotation mark that ends nowhere, or the text's end, behind text and strings that are stepped
# over; possessive: a string or a list of numbers without end costs one look.
_BRACKETS = re.compile(rb'(?:[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+([{\[]++|[}\]]++|"|\Z)', re.S)
_SKIP = re.compile(rb"[\s,\x00]*+")
_FILLER_ITEM = rb"(?:\{\s*+\}|\[\s*+\]|\"\"|null|true|false|-?[0-9]++(?:\.[0-9]++)?+)"
_ITEM = re.compile(rb"\s*+(" + _FILLER_ITEM + rb")")
FILLER = re.compile(  # entries that hold nothing, as many as there are, behind commas or each on a line of its own
    rb"(?:(?:\s*+" + _FILLER_ITEM + rb"\s*+,)++|(?:\s*+" + _FILLER_ITEM + rb"[ \t\r]*+\n)++)"
)
_OTHER_BORDER = re.compile(
    rb"(?:[}\]]|(?<=,)\s*+" + _FILLER_ITEM + rb")\s*+(?:,|(?<=\n))\s*+(?=[\[{\"\dntf-])"
)  # where no event is in sight: behind any list or object, or an entry that holds nothing
_SCALAR = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^\s,\]\[{}"]++', re.S)
_LIST_END = re.compile(rb'\}\s*+\](?=\s*+(?:\}\s*+\Z|\Z|,\s*+"))')
_LIST_ENDS = 8  # that are looked at
_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*')
_FIRST_EVENT = re.compile(rb"\s*\{\s*" + _EVENT_KEY)
HEADER_LIMIT_BYTES = 64 << 20
_DEEPEST = 20_000  # far more than any parser reads
_VAIN_BYTES = 2 << 20  # of text before a key that only looks like that of the events
_NEAR_BYTES = 1 << 16
_NEAR_END_BYTES = 1 << 11
_LEAST_BYTES = 512
_REACHES = 4  # how often a text may be looked through for such ends
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
    left = _VAIN_BYTES
    for number, key in enumerate(_EVENTS_KEY.finditer(text, at)):
        if text[key.end() : key.end() + 1] != b"[":
            continue
        for closing in range(4):
            try:
                value, repairs = parse_object(text[at : key.start()] + b'"traceEvents":[]' + b"}" * (closing + 1))
            except Unreadable:
                left -= key.start() - at + 1024
                continue
            return Layout(key.end() + 1, value, "nested" if closing else "object", repairs)
        if left < 0 and number >= 3:
            break
    if (final or len(text) >= HEADER_LIMIT_BYTES) and _FIRST_EVENT.match(text, at) and b'"ph"' in text[: 1 << 16]:
        return Layout(at, {}, "lines")
    return None


def last_border(text: bytes) -> int:
    """Offset behind the last place where one event ends and the next begins, -1 when there is none.

    Where no event is in sight, the end of any list or object, or an entry that holds nothing, will do as one.
    """
    found = _last_border_within(text, _NEAR_END_BYTES)  # an event is mostly far shorter
    if found >= 0:
        return found
    window = 1 << 16
    while True:
        found = _last_border_within(text, window)
        if found >= 0:
            return found
        if window >= len(text) or _ends_in_filler(text):
            break
        window *= 16
    for border in _OTHER_BORDER.finditer(text, max(len(text) - 4096, 0)):
        found = border.end()
    return found


def _last_border_within(text: bytes, window: int) -> int:
    found = -1
    for border in BORDER.finditer(text, max(len(text) - window, 0)):
        found = border.end()
    return found


def _ends_in_filler(text: bytes) -> bool:
    """Whether a text ends in kilobytes of entries that hold nothing: no event is near."""
    first = _OTHER_BORDER.search(text, max(len(text) - 4096, 0))
    filler = FILLER.match(text, first.end()) if first else None
    return filler is not None and filler.end() - filler.start() > 2048


def value_end(text: bytes, at: int, limit: int | None = None) -> int:
    """Offset behind the object or list that starts at ``at``, -1 when it does not end (before ``limit``)."""
    depth = 0
    for found in _BRACKETS.finditer(text, at, len(text) if limit is None else min(limit, len(text))):
        start, end = found.span(1)
        if start == end:
            return -1
        mark = text[start]
        if mark in b"{[":
            depth += end - start
            if depth > _DEEPEST:
                return -1
        elif mark == 34:
            return -1
        elif depth > end - start:
            depth -= end - start
        else:
            return start + depth
    return -1


@dataclass(frozen=True)
class Found:
    """One entry of the event list. ``value`` is None and ``readable`` False where no repair helped."""

    start: int
    end: int
    value: Any
    repairs: tuple[str, ...] = ()
    readable: bool = True
    count: int = 1  # as many entries alike that hold nothing


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
        self._border: re.Match[bytes] | None = None  # the first border at or behind `_bordered`
        self._bordered = -1
        self._reach_bytes = _REACHES * len(text) + _REACH_BYTES  # what may still be spent on looking far ahead

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
            filler = FILLER.match(text, at)
            if filler:
                yield self._fillers(filler)
                at = filler.end() - 1  # its last comma may be one of several
                continue
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

    def _fillers(self, filler: re.Match[bytes]) -> Found:
        """Many entries that hold nothing, told by the first of them."""
        item = _ITEM.match(self._text, filler.start())
        first = item.group(1) if item else b""
        try:
            value = orjson.loads(first)
        except orjson.JSONDecodeError:  # a number with a zero in front
            value = first[:80].decode()
        count = self._text.count(b",", filler.start(), filler.end())
        count = count or len(_ITEM.findall(self._text, filler.start(), filler.end()))
        return Found(filler.start(), filler.end() - 1, value, count=count)

    def _next_border(self, at: int) -> re.Match[bytes] | None:
        """First border behind ``at``; the text is searched once, not once per entry."""
        if self._bordered < 0 or (self._border is not None and self._border.start() < at):
            self._border = BORDER.search(self._text, at)
            self._bordered = at
        return self._border

    def _far_end(self, at: int, limit: int | None) -> int:
        """`value_end` while there is means left for it: damage in every event must not be looked behind each time."""
        left = self._reach_bytes
        end = value_end(self._text, at, min(len(self._text) if limit is None else limit, at + left))
        spent = (end if end > 0 else min(len(self._text), limit or len(self._text))) - at
        self._reach_bytes = max(left - spent, _LEAST_BYTES)
        return end

    def _scalar(self, at: int) -> Found | None:
        found = _SCALAR.match(self._text, at)
        if not found:
            return None if self._text[at : at + 1] == b'"' else Found(at, at + 1, None, readable=False)
        if found.end() == len(self._text):
            return None
        return Found(at, found.end(), found.group()[:80].decode("utf-8", "replace"))

    def _container(self, at: int) -> Found | None:
        text = self._text
        border = self._next_border(at) if text[at : at + 1] == b"{" else None
        near = border.start() + 1 if border else -1
        if border and near - at <= _NEAR_BYTES:
            try:
                return Found(at, near, *_strict(text[at:near], self._raw))
            except Unreadable:
                pass
        far = self._far_end(at, near + _REACH_BYTES if border else None)
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
        if end < 0 and self._final and self._raw:
            return self._last(at)
        return Found(at, end, None, readable=False) if end > 0 else None

    def _last(self, at: int) -> Found | None:
        """The last event, where a path that ends in a backslash hides its end: up to what may be the list's."""
        for closing, _ in zip(_LIST_END.finditer(self._text, at), range(_LIST_ENDS), strict=False):
            end = closing.start() + 1
            with suppress(Unreadable):
                return Found(at, end, *parse_event(self._text[at:end], True))
        return None


def _strict(text: bytes, raw_backslashes: bool) -> tuple[Any, tuple[str, ...]]:
    if raw_backslashes and b"\\" in text:
        return parse_event(text, True)
    try:
        return orjson.loads(text), ()
    except orjson.JSONDecodeError as error:
        raise Unreadable from error


# First bytes of what lies beside traces and is no trace of this kind; what it is, and what to do.
_KINDS = (
    (
        b"SQLite format 3",
        "it is an SQLite database, such as Nsight Systems writes",
        "Nsight Systems opens its own recordings; for StepLens record with torch.profiler.",
    ),
    (
        b"\x80\x04",
        "it is a Python pickle, such as a snapshot of the memory",
        "pytorch.org/memory_viz shows snapshots; for StepLens record with torch.profiler.",
    ),
    (b"\x80\x05", "it is a Python pickle", "Open the .json or .json.gz file that torch.profiler wrote."),
    (b"BZh", "it is compressed with bzip2", "Unpack it with bunzip2, then open what comes out."),
    (b"\xfd7zXZ", "it is compressed with xz", "Unpack it with unxz, then open what comes out."),
)


def foreign(name: str, text: bytes, read_bytes: int) -> TraceError:
    """Say what a file without events is."""
    body = text.lstrip(b" \t\r\n\x00")
    advice = advice_for(name)
    if not body:
        what = "It has no bytes" if read_bytes == 0 else "It holds only blanks"
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
    return TraceError(f"{name} is not a Chrome or PyTorch trace.", f"It starts with “{printable}”.", advice, 0)


def _another_format(body: bytes, start: bytes) -> tuple[str, str, str] | None:
    if b"speedscope" in start:
        return (
            "it is a speedscope profile",
            "",
            "Open it at speedscope.app, or export a Chrome trace from torch.profiler.",
        )
    if b'"schema"' in start and b'"nodes"' in start and b'"traceevents"' not in start:
        return (
            "it is an execution trace, which tells what depends on what and not when it ran",
            "",
            "Open the trace that torch.profiler wrote beside it.",
        )
    for magic, what, hint in _KINDS:
        if body.startswith(magic):
            return what, "", hint
    if body[257:262] == b"ustar":
        return "it is a tar archive", "", "Unpack it, then open the .json or .json.gz file in it."
    return None


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
    if (found := _another_format(body, start)) is not None:
        return found
    if b"\x00" in body[:4096] or body[:1] not in b'{["ntf-0123456789':
        return what_text_is(body)
    if len(body) > HEADER_LIMIT_BYTES:
        return f"its first {HEADER_LIMIT_BYTES >> 20} MB hold no traceEvents", "", ""
    try:
        value: Any = parse_object(body)[0] if len(body) > MAX_VALUE_BYTES else orjson.loads(body)
    except (Unreadable, orjson.JSONDecodeError):
        return None
    if isinstance(value, dict) and isinstance(value.get("traceEvents"), list):
        return "its list of events stands behind too much else to be found", "", ""
    if isinstance(value, dict):
        keys = ", ".join(str(key)[:30] for key in list(value)[:6])
        if "traceEvents" in value:
            kind = type(value["traceEvents"]).__name__
            names = {"dict": "an object", "NoneType": "null", "str": "text", "int": "a number"}
            return f"its traceEvents is {names.get(kind, kind)}, not a list", "", ""
        if str(value.get("format", "")).startswith("steplens."):
            return "it is a report that StepLens wrote", "", "Open the trace that it is of."
        if "nbformat" in value:
            return "it is a notebook", "", "Profile it, then open the trace of the run."
        return "it has no traceEvents", f"Its keys are {keys}." if keys else "It is an empty object.", ""
    return f"it holds {'null' if value is None else 'a single ' + type(value).__name__}", "", ""
