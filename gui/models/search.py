"""Names -> slices: the distinct names are matched, then one lookup per slice."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable

import numpy as np

from core.tables import I32
from core.trace import Trace


def matcher(needle: str) -> Callable[[str], bool]:
    """Test for a name: ``/regex/``, a pattern with ``*`` or ``?``, else all words in any order; case is ignored.

    A regular expression that does not compile matches as plain text.
    """
    if len(needle) > 2 and needle.startswith("/") and needle.endswith("/"):
        try:
            regex = re.compile(needle[1:-1], re.IGNORECASE)
        except re.error:
            needle = needle[1:-1]
        else:
            return lambda name: regex.search(name) is not None
    if "*" in needle or "?" in needle:
        pattern = re.compile(fnmatch.translate(f"*{needle}*" if needle[:1] != "*" else needle + "*"), re.IGNORECASE)
        return lambda name: pattern.match(name) is not None
    words = needle.casefold().split()
    return lambda name: all(word in name.casefold() for word in words)


def find(trace: Trace, needle: str) -> I32:
    """Slices whose name fits, in time order.

    Parameters
    ----------
    needle
        See `matcher`; empty or blank finds nothing.

    Returns
    -------
    numpy.ndarray
        int32[k] slice ids, sorted by start.
    """
    if not needle.strip():
        return np.empty(0, np.int32)
    fits = matcher(needle.strip())
    wanted = np.fromiter((fits(name) for name in trace.strings.values), np.bool_, len(trace.strings))
    if not wanted.any():
        return np.empty(0, np.int32)
    named = trace.slices.name_id
    ids = np.flatnonzero(wanted[named] & (named >= 0)).astype(np.int32)
    return ids[np.argsort(trace.slices.start_ns[ids], kind="stable")]
