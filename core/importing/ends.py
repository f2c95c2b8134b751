"""What stands behind the end of a trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

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
