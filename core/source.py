"""From slices to places in the user's code."""

from __future__ import annotations

from core.suggestions import SourceRef
from core.trace import Trace


class SourceFinder:
    """Finds the file, line and function behind a slice, and never opens a path without consent.

    Parameters
    ----------
    trace
        The trace whose Python frames are used.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def of_slice(self, slice_id: int) -> SourceRef | None:
        """Place in the user's code of a CPU slice (of its launch, for device work); None without stacks."""
        raise NotImplementedError
