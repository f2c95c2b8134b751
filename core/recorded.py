"""What a trace was recorded with: its header says so, or, where that is silent, its events do."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from core.call_stacks import first_operators
from core.errors import TraceError
from core.kinds import SliceKind
from core.trace import Trace

LOOKED_AT = 24  # operators
_known: WeakKeyDictionary[Trace, bool] = WeakKeyDictionary()


def has_python_stacks(trace: Trace) -> bool:
    """Python's calls were recorded as slices."""
    return bool((trace.slices.kind == SliceKind.PYTHON).any())


def has_shapes(trace: Trace) -> bool:
    """Shapes were recorded: the header says so, or, where it is silent, one of the first operators carries them.

    False where the file cannot be read any more: then shapes cannot be read either. Looked up once per trace.
    """
    if trace.meta.record_shapes is not None:
        return trace.meta.record_shapes
    found = _known.get(trace)
    if found is None:
        found = _known[trace] = _look(trace)
    return found


def _look(trace: Trace) -> bool:
    near = first_operators(trace)
    near = near[np.argsort(trace.slices.event_start[near], kind="stable")]
    try:
        for op in near[:: max(len(near) // LOOKED_AT, 1)][:LOOKED_AT].tolist():
            args = trace.args(op)
            if args.get("Input Dims") or args.get("Input dims"):
                return True
    except (TraceError, OSError):
        return False
    return False
