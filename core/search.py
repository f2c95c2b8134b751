"""Searching slices by name: over the distinct names first, over the columns only for those that match."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from weakref import WeakKeyDictionary

import numpy as np

from core.errors import TraceError
from core.kinds import SliceKind
from core.tables import I32, Bool
from core.trace import Trace

# Places of the names in which a regular expression with these flags is found.
Fitting = Callable[[str, int, Sequence[str]], list[int]]
_folded: WeakKeyDictionary[Trace, list[str]] = WeakKeyDictionary()
# What people call it, and how the names of slices spell the same (Kineto's, NCCL's and torch's).
SPELLINGS = {
    "copy": ("memcpy",),
    "copies": ("copy", "memcpy"),
    "h2d": ("htod",),
    "d2h": ("dtoh",),
    "d2d": ("dtod",),
    "all_reduce": ("allreduce",),
    "allreduce": ("all_reduce",),
    "all_gather": ("allgather",),
    "allgather": ("all_gather",),
    "all_to_all": ("alltoall",),
    "alltoall": ("all_to_all",),
    "reduce_scatter": ("reducescatter",),
    "reducescatter": ("reduce_scatter",),
}


def spellings(word: str) -> tuple[str, ...]:
    """A folded word of a search, and what else it stands for in the names of slices."""
    return (word, *SPELLINGS.get(word, ()))


def search(
    trace: Trace,
    query: str,
    *,
    regex: bool = False,
    case_sensitive: bool = False,
    kinds: Iterable[int] | None = None,
    tracks: Iterable[int] | None = None,
    min_dur_ns: int | None = None,
    max_dur_ns: int | None = None,
    start_ns: int | None = None,
    end_ns: int | None = None,
    fitting: Fitting | None = None,
) -> I32:
    """Slices whose name matches.

    Parameters
    ----------
    query
        Words that all have to be found in a name, in any order and anywhere. ``*`` stands for any characters and
        ``?`` for one; then the whole query is one pattern, found anywhere unless it begins with ``^`` (where a name
        begins) or ends with ``$`` (where it ends). With ``regex`` it is a regular expression, found anywhere.
        Empty finds nothing. Without case, a word is found as names spell it, too (`SPELLINGS`): ``copy`` as ``Memcpy``.
    case_sensitive
        Off, letters are compared without case, in any script.
    kinds, tracks, min_dur_ns, max_dur_ns, start_ns, end_ns
        What to keep: `SliceKind` values, track ids, durations (ends included), a stretch of time touched.
    fitting
        Looks for a regular expression in this thread's place.

    Returns
    -------
    int32[k]
        Slice ids by time (then by track). Cost: one pass over the distinct names, one over the name column.

    Raises
    ------
    TraceError
        When the regular expression is not one; the text says where.
    """
    if not query:
        return np.zeros(0, np.int32)
    wanted = matching_names(trace, query, regex=regex, case_sensitive=case_sensitive, fitting=fitting)
    slices = trace.slices
    ids = np.flatnonzero(wanted[slices.name_id])
    if kinds is not None:
        ids = ids[np.isin(slices.kind[ids], list(kinds))]
    if tracks is not None:
        ids = ids[np.isin(slices.track_id[ids], list(tracks))]
    if min_dur_ns is not None:
        ids = ids[slices.dur_ns[ids] >= min_dur_ns]
    if max_dur_ns is not None:
        ids = ids[slices.dur_ns[ids] <= max_dur_ns]
    if start_ns is not None:
        ids = ids[slices.start_ns[ids] + slices.dur_ns[ids] > start_ns]
    if end_ns is not None:
        ids = ids[slices.start_ns[ids] < end_ns]
    # Tracks are sorted runs, which a merge sort joins in a few passes.
    return ids[np.argsort(slices.start_ns[ids], kind="stable")].astype(np.int32)


def first_call(trace: Trace, hits: I32, at: int) -> int:
    """Place of the first of ``hits`` (by time) that is no Python frame, inside the frame at ``at``; else ``at``.

    A function of Python's and the operator that it is there for often share a name: the operator is what is meant.
    """
    frame, slices = int(hits[at]), trace.slices
    if slices.kind[frame] != SliceKind.PYTHON:
        return at
    inside = hits[at:][slices.start_ns[hits[at:]] < trace.end_ns[frame]]
    calls = np.flatnonzero(slices.kind[inside] != SliceKind.PYTHON)
    return at + int(calls[0]) if len(calls) else at


def matching_names(
    trace: Trace,
    query: str,
    *,
    regex: bool = False,
    case_sensitive: bool = False,
    fitting: Fitting | None = None,
) -> Bool:
    """bool[n_strings + 1]: which distinct names match; the last entry (name id -1) never does.

    Raises
    ------
    TraceError
        When the regular expression is not one.
    """
    if case_sensitive:
        names: list[str] = list(trace.strings.values)
    else:
        if trace not in _folded:
            _folded[trace] = [name.casefold() for name in trace.strings.values]
        names = _folded[trace]
    test = _test(query, regex, case_sensitive)
    found = np.zeros(len(names) + 1, np.bool_)
    if regex and fitting is not None:
        found[fitting(query, 0 if case_sensitive else re.IGNORECASE, names)] = True
        return found
    found[:-1] = np.fromiter(map(test, names), np.bool_, len(names))
    return found


@lru_cache(maxsize=64)
def _test(query: str, regex: bool, case_sensitive: bool) -> Callable[[str], bool]:
    if regex:
        try:
            pattern = re.compile(query, 0 if case_sensitive else re.IGNORECASE)
        except (re.error, OverflowError, RecursionError) as error:
            raise TraceError(
                f"“{query}” is not a regular expression.", str(error), "Search without .* instead."
            ) from error
        return lambda name: pattern.search(name) is not None
    text = query if case_sensitive else query.casefold()
    if "*" not in text and "?" not in text:
        words = text.split() or [text]
        meant = [(word,) if case_sensitive else spellings(word) for word in words]
        if all(len(each) == 1 for each in meant):
            return (lambda name: words[0] in name) if len(words) == 1 else (lambda name: all(w in name for w in words))
        return lambda name: all(any(w in name for w in each) for each in meant)
    wild = re.compile(_wildcards(text), re.DOTALL)
    return lambda name: wild.match(name) is not None


def _wildcards(text: str) -> str:
    """Pattern of a text with wildcards, matched from a name's start.

    Each part is taken where it first comes, and never looked for again: whatever the name, that costs one look at it.
    Only the last one may have to come later, where the name ends.
    """
    first, ends = text.startswith("^"), text.endswith("$")
    text = text[first : len(text) - ends]
    parts = ["".join("." if c == "?" else re.escape(c) for c in part) for part in text.split("*")]
    head = parts.pop(0) if first and len(parts) > 1 else ""
    last = parts.pop()
    gap = "" if first and "*" not in text else ".*?"
    return head + "".join(f"(?>.*?{part})" for part in parts if part) + gap + last + (r"\Z" if ends else "")
