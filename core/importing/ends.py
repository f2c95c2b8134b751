"""What stands behind the end of a trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from core.importing.repair import Unreadable, parse_object, unescaped_backslashes, with_doubled
from core.importing.scan import value_end

_EVENTS = re.compile(rb'"(?:ph|traceEvents)"\s*:')


def note_rest(note: Callable[[str, str, int], None], rest: bytes, footer: Mapping[str, Any]) -> bool:
    """Say what follows a trace in its file, and tell whether events are among it; ``footer`` was read as its end."""
    again = isinstance(footer.get("traceEvents"), list)
    if not rest and not again:
        return False
    events = again or bool(_EVENTS.search(rest))
    note(
        "second-trace" if events else "trailing-text", rest[:80].decode("utf-8", "replace"), 1 if events else len(rest)
    )
    return events


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
    if end < 0 and b'\\"' in whole:  # a path that ends in a backslash seems to escape its quotation mark
        doubled = with_doubled(whole, np.union1d(*unescaped_backslashes(whole)))
        end = value_end(doubled, 0)
        whole = doubled if end >= 0 else whole
    if end < 0:
        try:
            value, _ = parse_object(whole.rstrip(b" \t\r\n,\x00") + b"}")
        except Unreadable:
            value = {}
        return value, False, b""
    try:
        value, _ = parse_object(whole[:end])
    except Unreadable:
        value = {}
    return value, True, whole[end:]
