"""Which optimizer a trace shows, and how it is built in its fused form."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from core.kinds import SliceKind
from core.rule_tools.facts import Facts
from core.tables import I32

FUSED = frozenset({"Adam", "AdamW", "SGD", "Adagrad"})  # torch.optim's classes that take fused=True
FOREACH = frozenset({"Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"})  # ... foreach=True at most
_STEP = re.compile(r"^Optimizer\.step#([A-Za-z_]\w*)\.step$")


def class_of(name: str) -> str:
    """Class of an optimizer by the name of its range (``Optimizer.step#SGD.step``), empty where it tells none."""
    found = _STEP.match(name)
    return found[1] if found else ""


def seen_class(facts: Facts) -> str:
    """Class of the optimizer that stepped most often, empty where none is marked."""
    counts: Counter[str] = Counter()
    for slice_id in facts.matching(r"^Optimizer\.step#", SliceKind.RANGE):
        counts[class_of(facts.trace.name(int(slice_id)))] += 1
    del counts[""]
    return counts.most_common(1)[0][0] if counts else ""


def built(name: str, arguments: str) -> str:
    """Line that builds an optimizer of this class; one that torch does not have is the user's own."""
    module = "torch.optim." if not name or name in FUSED | FOREACH else ""
    return f"optimizer = {module}{name or 'AdamW'}({arguments})"


def grouped_keyword(name: str) -> str:
    """Keyword that makes this class work on all parameters at once: ``fused``, ``foreach``, or empty for none."""
    return "fused" if not name or name in FUSED else "foreach" if name in FOREACH else ""


def during(facts: Facts, ids: I32, range_id: int) -> I32:
    """int32[k]: those slices (ascending) that begin during a range, on any track of its thread."""
    trace = facts.trace
    slices, tracks = trace.slices, trace.tracks
    span_ns = (int(slices.start_ns[range_id]), int(trace.end_ns[range_id]))
    found = [ids[:0]]
    for track in (tracks.thread_id == facts.thread_of(range_id)).nonzero()[0].tolist():
        first, end = int(tracks.first_id[track]), int(tracks.end_id[track])
        rows = (first + slices.start_ns[first:end].searchsorted(span_ns)).astype(ids.dtype)
        low, high = ids.searchsorted(rows).tolist()
        found.append(ids[low:high])
    return np.concatenate(found)
