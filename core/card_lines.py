"""Exact lines that suggestions have found, for whatever else tells where their slices come from.

A slice on its own often has but the line at which its function begins, or several that could be meant; a rule knows
what it looked for, and so its suggestion may have the one line. Lists and details that tell the place of the same slice
go by that line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from core.kinds import SliceKind
from core.suggestions import SourceRef, Suggestion
from core.trace import Trace

__all__ = ["CardLines"]


class CardLines:
    """Exact places by slice.

    Parameters
    ----------
    trace
        The trace of the suggestions.
    suggestions
        Those whose evidence counts; the first one that has a slice tells its place.
    """

    def __init__(self, trace: Trace, suggestions: Iterable[Suggestion]) -> None:
        self._trace = trace
        self._known: dict[int, list[SourceRef]] = {}
        for suggestion in suggestions:
            source = suggestion.source
            if source is None or not source.exact:
                continue
            for slice_id in {one for evidence in suggestion.evidence for one in evidence.slices}:
                self._known.setdefault(slice_id, []).append(source)

    def better(self, slice_id: int, found: SourceRef | None) -> SourceRef | None:
        """Return the exact place of a slice or of an operator around it, where it is in the function that was found.

        What was found is returned where it is exact already, and where no suggestion knows better.
        """
        if found is None or found.exact:
            return found
        function = found.file, found.function
        return next((one for one in self._around(slice_id) if (one.file, one.function) == function), found)

    def knows(self, slice_id: int) -> bool:
        """Whether a suggestion has an exact place for a slice or an operator around it."""
        return next(self._around(slice_id), None) is not None

    def _around(self, slice_id: int) -> Iterator[SourceRef]:
        at, python = slice_id, int(SliceKind.PYTHON)
        while at >= 0 and int(self._trace.slices.kind[at]) != python:
            yield from self._known.get(at, ())
            at = int(self._trace.slices.parent_id[at])
