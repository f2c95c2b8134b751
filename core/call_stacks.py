"""Whether a trace names lines without recording Python: torch 1.8 to 1.11 wrote a ``Call stack`` on operators."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from core.errors import TraceError
from core.kinds import SliceKind
from core.sets import distinct
from core.tables import I64
from core.trace import Trace

# Operators called from the user's own code more often than others: some carry a stack where any do.
_LIKELY = ("aten::to", "aten::zero_", "aten::add_", "aten::conv2d", "aten::linear")
_NEAR_BYTES = 1 << 20
_known: WeakKeyDictionary[Trace, bool] = WeakKeyDictionary()


def has_call_stacks(trace: Trace) -> bool:
    """Look at a few operators, once per trace; False where the file cannot be read any more."""
    found = _known.get(trace)
    if found is None:
        found = _known[trace] = _look(trace)
    return found


def first_operators(trace: Trace) -> I64:
    """int64[n]: operators written near the file's beginning: compressed files are read from there on, so these fast."""
    ops = (trace.slices.kind == int(SliceKind.CPU_OP)).nonzero()[0]
    place = trace.slices.event_start[ops]
    near: I64 = ops[place <= int(place.min()) + _NEAR_BYTES] if len(ops) else ops
    return near


def _look(trace: Trace) -> bool:
    near = first_operators(trace)
    if not len(near):
        return False
    # Those versions of torch wrote operators in order of time: a step's beginning, in the user's own code, comes first.
    samples = [near[:: max(len(near) // 12, 1)][:12]]
    for name in _LIKELY:
        name_id = trace.strings.id_of(name)
        if name_id >= 0:
            named = near[trace.slices.name_id[near] == name_id]
            samples.append(named[:: max(len(named) // 4, 1)][:4])
    wanted = distinct(np.concatenate(samples))
    wanted = wanted[trace.slices.event_start[wanted].argsort(kind="stable")]  # compressed files are read onwards
    try:
        return may_hold(trace, wanted, b"Call stack") and any(
            trace.args(op).get("Call stack") for op in wanted.tolist()
        )
    except (TraceError, OSError):
        return False


def may_hold(trace: Trace, ids: I64, words: bytes) -> bool:
    """Whether the text of any of these events holds some words: an argument whose name nothing holds is in none.

    Raises
    ------
    TraceError
        When the file changed or vanished since it was opened, or cannot be read.
    """
    from core.importing.reader import FileReader  # late: a window that is started needs no importer

    if not isinstance(trace.reader, FileReader):
        return True
    slices = trace.slices
    source = trace.processes.source_id[trace.tracks.process_id[slices.track_id[ids]]]
    for one in set(source.tolist()):
        mine = ids[(source == one) & (slices.event_start[ids] >= 0)]
        places = zip(slices.event_start[mine].tolist(), slices.event_bytes[mine].tolist(), strict=True)
        if trace.reader.holds(one, places, words):
            return True
    return False
