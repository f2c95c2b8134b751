"""Where the CPU's time goes in the steps that count, for a trace in which no device worked."""

from __future__ import annotations

import numpy as np

from core.figures.lookup import View
from core.figures.model import CpuTime, StatTable, StepFigures
from core.figures.stats import table
from core.kinds import SliceKind
from core.tables import I32, I64, Bool


def cpu_time(view: View, self_ns: I64, step_of: I32, steps: StepFigures) -> CpuTime | None:
    """Totals by name of the counted steps; of the whole recording where none counts, None where a device worked.

    Parameters
    ----------
    view
        The trace.
    self_ns
        int64[n_slices]: each slice's time without its direct children's, ns.
    step_of
        int32[n_slices]: each slice's step by its start, -1 outside.
    steps
        The steps' figures; warm-up and outliers do not count, as in all means.
    """
    trace, counted = view.trace, steps.counted.nonzero()[0]
    if trace.has_device_work:
        return None
    name = trace.slices.name_id
    is_module = view.names.module[name] & (name >= 0) if len(view.names.module) else np.zeros(len(name), dtype=bool)

    def totals(kind: SliceKind, only: Bool | None = None) -> StatTable:
        ids = view.by_kind(kind)
        if len(counted):
            ids = ids[(step_of[ids] >= 0) & steps.counted[step_of[ids]]]
        if only is not None:
            ids = ids[only[ids]]
        nothing = np.zeros(len(ids), dtype=np.int64)
        return table(view, ids, self_ns[ids], nothing, nothing)

    first, last = trace.span_ns
    return CpuTime(
        steps=len(counted),
        whole_ns=float(steps.dur_ns[counted].mean()) if len(counted) else float(last - first),
        operators=totals(SliceKind.CPU_OP),
        modules=totals(SliceKind.PYTHON, is_module),
        python=totals(SliceKind.PYTHON, ~is_module),
    )
