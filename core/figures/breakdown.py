"""What each instant of a step went to."""

from __future__ import annotations

import numpy as np

from core.figures.lookup import View
from core.figures.model import BREAKDOWN_PARTS
from core.intervals import Spans, coverage, union
from core.kinds import SliceKind
from core.tables import I32, I64, Bool, StepTable


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
    sources = len(view.trace.sources)
    threads = view.trace.threads
    if sources > 1 and len(threads):
        of = view.trace.processes.source_id[threads.process_id[steps.thread_id]]
    else:
        of = np.zeros(len(steps), dtype=np.int32)
    for source in np.unique(of):
        rows = np.flatnonzero(of == source)
        mask = view.source == source if sources > 1 else None
        before = np.zeros(len(rows), dtype=np.int64)
        reached = union(np.zeros(0, np.int64), np.zeros(0, np.int64))
        for part, ids in enumerate(_roles(view, mask)):
            layer = union(view.trace.slices.start_ns[ids], view.trace.end_ns[ids])
            reached = _join(reached, layer)
            covered = coverage(reached, start_ns[rows], end_ns[rows])
            result[rows, part] = covered - before
            before = covered
        result[rows, -1] = np.maximum(end_ns[rows] - start_ns[rows], 0) - before
    return result


def _join(a: Spans, b: Spans) -> Spans:
    if not len(a):
        return b
    return union(np.concatenate((a.start, b.start)), np.concatenate((a.end, b.end))) if len(b) else a


def _roles(view: View, mask: Bool | None) -> list[I32]:
    """Slices of each part but "other", in falling priority."""
    collective = view.communication_kernels
    kernels = np.setdiff1d(view.by_kind(SliceKind.KERNEL), collective, assume_unique=True)
    host = view.by_kind(SliceKind.CPU_OP, SliceKind.RANGE)
    host_collective = view.named(host, view.names.communication)
    loader = view.named(host, view.names.loader)
    ops = np.setdiff1d(view.by_kind(SliceKind.CPU_OP), np.union1d(host_collective, loader), assume_unique=True)
    roles = [
        kernels,
        view.by_kind(SliceKind.MEMCPY),
        view.by_kind(SliceKind.MEMSET),
        np.union1d(collective, host_collective),
        view.by_kind(SliceKind.RUNTIME, SliceKind.DRIVER),
        loader,
        ops,
    ]
    return [ids if mask is None else ids[mask[ids]] for ids in roles]
