"""Interval arithmetic on int64 ns arrays."""

from __future__ import annotations

import numpy as np

from core.tables import I64


def union(start_ns: I64, end_ns: I64) -> tuple[I64, I64]:
    """Disjoint runs that cover the same time, ascending."""
    if not len(start_ns):
        empty = np.empty(0, dtype=np.int64)
        return empty, empty
    start, end = start_ns, end_ns
    if (start[1:] < start[:-1]).any():
        order = start.argsort(kind="stable")
        start, end = start[order], end[order]
    end = np.maximum.accumulate(end)
    first = np.concatenate([[True], start[1:] > end[:-1]]).nonzero()[0]
    last = np.append(first[1:] - 1, len(end) - 1)
    return start[first], end[last]


def covered_ns(runs: tuple[I64, I64], start_ns: I64, end_ns: I64) -> I64:
    """int64[n], ns: how much of each interval lies inside the disjoint runs."""
    run_start, run_end = runs
    if not len(run_start):
        return np.zeros(len(start_ns), dtype=np.int64)
    total = np.concatenate([[0], (run_end - run_start).cumsum()])

    def until(t: I64) -> I64:
        at = run_start.searchsorted(t, side="right") - 1
        safe = np.maximum(at, 0)
        part = np.where(at >= 0, np.minimum(t, run_end[safe]) - run_start[safe], 0)
        result: I64 = total[safe] + part
        return result

    return until(end_ns) - until(start_ns)


def outside_ns(runs: tuple[I64, I64], start_ns: I64, end_ns: I64) -> I64:
    """int64[n], ns: how much of each interval lies outside the runs."""
    return (end_ns - start_ns) - covered_ns(runs, start_ns, end_ns)
