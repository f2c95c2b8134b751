"""What each instant of a step went to."""

from __future__ import annotations

import numpy as np

from core import sets
from core.figures.lookup import View
from core.figures.model import BREAKDOWN_PARTS
from core.figures.steps import step_source
from core.intervals import EMPTY, Spans, coverage, subtract, union, union_all
from core.kinds import SliceKind
from core.tables import I32, I64, StepTable

_NONE: I32 = np.zeros(0, np.int32)
_FEW = 8  # a layer of so many times fewer spans than those before it is cut by them, instead of joined with them


def breakdown(view: View, steps: StepTable, start_ns: I64, end_ns: I64) -> I64:
    """Share out windows by priority: kernel, memcpy, memset, communication, runtime, dataloader, cpu_exec, other.

    Parameters
    ----------
    start_ns, end_ns
        int64[n_steps], the window of each step (the host step, or that of torch-tb-profiler).

    Returns
    -------
    int64[n_steps, 8] in `BREAKDOWN_PARTS` order, ns; rows add up to the windows' lengths.
    """
    result = np.zeros((len(steps), len(BREAKDOWN_PARTS)), dtype=np.int64)
    roles = [_by_source(view, ids) for ids in _roles(view)]
    of = step_source(view, steps)
    for source in sets.distinct(of):
        rows = (of == source).nonzero()[0]
        start, end = start_ns[rows], end_ns[rows]
        reached, beside = EMPTY, list[Spans]()  # what parts before have taken, and what few spans have added to it
        for part, held in enumerate(roles):
            ids = held.get(int(source), _NONE)
            left = layer = union(view.trace.slices.start_ns[ids], view.trace.end_ns[ids])
            if _FEW * len(layer) <= len(reached):
                for taken in (reached, *beside):
                    left = subtract(left, taken)
                result[rows, part] = coverage(left, start, end)
                beside += [left] if len(left) else []
            else:
                before = result[rows, :part].sum(axis=1)
                reached, beside = union_all((reached, *beside, layer)), []
                result[rows, part] = coverage(reached, start, end) - before
        result[rows, -1] = np.maximum(end - start, 0) - result[rows, :-1].sum(axis=1)
    return result


def _by_source(view: View, ids: I32) -> dict[int, I32]:
    """Slices by the file they come from, each in the order given: sorted once, as there may be hundreds of files."""
    if len(view.trace.sources) < 2 or not len(ids):
        return {0: ids}
    source = view.source[ids]
    order = source.argsort(kind="stable")
    first = np.diff(source[order], prepend=-1).nonzero()[0]
    return dict(zip(source[order[first]].tolist(), np.split(ids[order], first[1:]), strict=True))


def _roles(view: View) -> list[I32]:
    """Slices of each part but "other", in falling priority."""
    kernels = view.by_kind(SliceKind.KERNEL)
    of_group = view.are_collectives(kernels)
    collective, kernels = kernels.compress(of_group), kernels.compress(~of_group)
    host = view.by_kind(SliceKind.CPU_OP, SliceKind.RANGE)
    host_collective = view.named(host, view.names.communication)
    loader = view.named(host, view.names.loader)
    plain = view.trace.slices.kind[host] == int(SliceKind.CPU_OP)
    plain &= ~sets.among(host, np.concatenate((host_collective, loader)))
    ops = view.outermost(host.compress(plain))
    return [
        kernels,
        view.by_kind(SliceKind.MEMCPY),
        view.by_kind(SliceKind.MEMSET),
        np.concatenate((collective, host_collective)),
        view.by_kind(SliceKind.RUNTIME, SliceKind.DRIVER),
        loader,
        ops,
    ]
