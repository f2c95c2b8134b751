"""Arguments of slices, read from the trace's file when a rule asks for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from core.errors import TraceError
from core.trace import Trace


class Arguments:
    """Arguments of the slices of a trace; what has been read is kept."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._args: dict[int, dict[str, Any]] = {}

    def read_args(self, ids: Iterable[int]) -> None:
        """Read the arguments of several slices ahead, in the order of the file: packed files are read forwards only."""
        for slice_id in sorted((int(i) for i in ids), key=lambda i: int(self.trace.slices.event_start[i])):
            self.args(slice_id)

    def args(self, slice_id: int) -> dict[str, Any]:
        """Arguments of a slice, remembered; empty when they cannot be read any more."""
        if slice_id not in self._args:
            try:
                self._args[slice_id] = self.trace.args(slice_id)
            except (TraceError, OSError):
                self._args[slice_id] = {}
        return self._args[slice_id]

    def dims(self, slice_id: int) -> list[list[int]]:
        """``Input Dims`` of an op as lists of ints; scalars and unknown ones are empty lists."""
        return _lists(self.args(slice_id).get("Input Dims") or self.args(slice_id).get("Input dims"))

    def strides(self, slice_id: int) -> list[list[int]]:
        """``Input Strides`` of an op, as `dims`; none in older traces."""
        return _lists(self.args(slice_id).get("Input Strides"))

    def types(self, slice_id: int) -> list[str]:
        """``Input type`` of an op."""
        raw = self.args(slice_id).get("Input type") or []
        return [str(v) for v in raw] if isinstance(raw, list) else []


def _lists(raw: object) -> list[list[int]]:
    return [[int(v) for v in d] if _is_ints(d) else [] for d in raw] if isinstance(raw, list) else []


def _is_ints(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(v, int) for v in value)
