"""What a trace was recorded with: its header says so, or, where that is silent, its events do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from core.call_stacks import first_operators, may_hold
from core.errors import TraceError
from core.kinds import SliceKind
from core.tables import I64
from core.trace import Trace

LOOKED_AT = 24  # operators
_known: WeakKeyDictionary[Trace, bool] = WeakKeyDictionary()


def has_python_stacks(trace: Trace) -> bool:
    """Python's calls were recorded as slices."""
    return bool((trace.slices.kind == int(SliceKind.PYTHON)).any())


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


def is_of_first_steps(trace: Trace) -> bool:
    """A script's first steps, kept by `profiling` since it ended before the steps that were to be recorded."""
    return _own(trace).get("first_steps") is True


def left_out(trace: Trace) -> tuple[str, ...]:
    """What was asked for and left out of a recording of the first steps: names of options, such as ``shapes``."""
    names = _own(trace).get("left_out")
    return tuple(str(name) for name in names) if is_of_first_steps(trace) and isinstance(names, list) else ()


def _own(trace: Trace) -> Mapping[str, Any]:
    found = trace.meta.header.get("steplens")
    return found if isinstance(found, Mapping) else {}


def _look(trace: Trace) -> bool:
    near = first_operators(trace)
    near = near[trace.slices.event_start[near].argsort(kind="stable")]
    near = near[:: max(len(near) // LOOKED_AT, 1)][:LOOKED_AT]
    try:
        # Where shapes were recorded, the first has them mostly; where none was, no text has the words.
        return _has_shapes(trace, near[:1]) or (may_hold(trace, near[1:], b'"Input ') and _has_shapes(trace, near[1:]))
    except (TraceError, OSError):
        return False


def _has_shapes(trace: Trace, ops: I64) -> bool:
    every = (trace.args(op) for op in ops.tolist())
    return any(args.get("Input Dims") or args.get("Input dims") for args in every)
