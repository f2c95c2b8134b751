"""What stands behind the end of a trace, and what can be saved of compressed data that is damaged."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any

_EVENTS = re.compile(rb'"(?:ph|traceEvents)"\s*:')
_STEP_BYTES = 4096  # of text: as much as is lost before the place of the damage


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


def salvaged(deflated: bytes) -> bytes:
    """Text of raw deflate data up to where it is damaged."""
    inflater, parts = zlib.decompressobj(wbits=-15), []
    try:
        while deflated and not inflater.eof:
            parts.append(inflater.decompress(deflated, _STEP_BYTES))
            deflated = inflater.unconsumed_tail
    except zlib.error:
        pass
    return b"".join(parts)
