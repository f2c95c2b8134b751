"""Exact lines that a run recorded beside its trace."""

from __future__ import annotations

from dataclasses import dataclass

from core.suggestions import SourceRef
from core.trace import Trace


@dataclass(frozen=True)
class LineRecord:
    """Exact lines by what caused them; a run of the app's own writes them beside the trace."""

    def of_slice(self, trace: Trace, slice_id: int) -> SourceRef | None:
        """Exact place of a slice, None where nothing was recorded for it."""
        return None
