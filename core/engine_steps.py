"""Steps of an inference engine, marked by ranges of its own: a server has no loop of the user's to mark."""

from __future__ import annotations

import re

import numpy as np

from core.kinds import SliceKind
from core.sets import distinct
from core.tables import I32
from core.trace import Trace

# vLLM's worker, by version: execute_model, execute_new_1_cached_3, execute_context_1(888)_generation_0(0)
ENGINE_STEP = r"execute_(?:model$|new_\d+_cached_\d+|(?:\d+_)?context_\d.*_generation_\d)"
_NAME = re.compile(ENGINE_STEP)


def engine_steps(trace: Trace) -> I32:
    """int32[k]: ranges that are each one step of an inference engine, ascending."""
    ranges = (trace.slices.kind == int(SliceKind.RANGE)).nonzero()[0].astype(np.int32)
    names = trace.slices.name_id[ranges]
    wanted = [name for name in distinct(names).tolist() if _NAME.match(trace.strings[name])]
    found: I32 = ranges[np.isin(names, wanted)] if wanted else ranges[:0]
    return found
