"""How kernels were launched: grid, block, registers and occupancy, as far as they were recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from core.figures.grouping import Grouped, device_work
from core.figures.lookup import view_of
from core.figures.model import StatTable
from core.importing.bulk import event_texts
from core.kinds import SliceKind
from core.tables import F64, I32, I64
from core.trace import Trace

Progress = Callable[[float, str], None]


@dataclass(frozen=True, eq=False)
class Launches:
    """What each piece of device work was launched with; rows go with ``View.work``. -1 is not recorded.

    ``shape_id`` numbers the distinct pairs of grid and block in ``shapes``. ``occupancy_pct`` is Kineto's estimate.
    """

    shape_id: I32
    shapes: tuple[tuple[str, str], ...]
    registers: I64  # per thread
    shared_bytes: I64
    occupancy_pct: F64
    blocks_per_sm: F64


@dataclass(frozen=True, eq=False)
class LaunchColumns:
    """The same for the rows of a table of device work: one value where all launches agree.

    ``grid`` and ``block`` are "" where nothing was recorded; ``shapes`` counts the distinct pairs. ``occupancy_pct``
    and ``blocks_per_sm`` are means weighted by time, ``registers`` and ``shared_bytes`` the largest.
    """

    grid: tuple[str, ...]
    block: tuple[str, ...]
    shapes: I64
    registers: I64
    shared_bytes: I64
    occupancy_pct: F64
    blocks_per_sm: F64


def read_launches(trace: Trace, progress: Progress = lambda fraction, text: None) -> Launches:
    """Read how all device work was launched.

    Raises
    ------
    TraceError, core.errors.Cancelled
        See `core.importing.bulk.event_texts`.
    """
    view = view_of(trace)
    count = len(view.work)
    shape_id, known = np.full(count, -1, np.int32), dict[tuple[str, str], int]()
    registers, shared = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    occupancy, per_sm = np.full(count, -1.0), np.full(count, -1.0)
    kernels = (trace.slices.kind[view.work] == int(SliceKind.KERNEL)).nonzero()[0]
    for place, text in event_texts(trace, view.work[kernels], progress):
        at, args = kernels[place], _args(text)
        shape = _size(args.get("grid")), _size(args.get("block"))
        if any(shape):
            shape_id[at] = known.setdefault(shape, len(known))
        registers[at] = _number(args.get("registers per thread"))
        shared[at] = _number(args.get("shared memory"))
        occupancy[at] = _number(args.get("est. achieved occupancy %"))
        per_sm[at] = _number(args.get("blocks per SM"))
    return Launches(shape_id, tuple(known), registers, shared, occupancy, per_sm)


def by_launch(trace: Trace, launches: Launches) -> Grouped:
    """Device work by name, grid and block."""
    labels = tuple(f"{grid} · {block}" for grid, block in launches.shapes)
    return device_work(view_of(trace), launches.shape_id, labels)


def launch_columns(trace: Trace, launches: Launches, stats: StatTable, shape: I32 | None = None) -> LaunchColumns:
    """Columns for a table of device work by name, or by name and launch (``shape`` is the launch of each row)."""
    view = view_of(trace)
    name = trace.slices.name_id[view.work].astype(np.int64)
    wide = len(launches.shapes) + 1
    row_key, key = stats.name_id.astype(np.int64), name
    if shape is not None:
        row_key, key = row_key * wide + shape + 1, name * wide + launches.shape_id + 1
    order = row_key.argsort()
    row = order[row_key.searchsorted(key, sorter=order)] if len(row_key) else np.zeros(0, np.int64)
    rows, dur = len(row_key), np.maximum(trace.slices.dur_ns[view.work], 1).astype(np.float64)
    seen = launches.shape_id >= 0
    pairs = np.unique(row[seen] * wide + launches.shape_id[seen])
    first = np.full(rows, -1, np.int64)
    first[(pairs // wide)[::-1]] = (pairs % wide)[::-1]
    shapes = np.bincount(pairs // wide, minlength=rows).astype(np.int64)
    one = [launches.shapes[f] if f >= 0 else ("", "") for f in first.tolist()]
    return LaunchColumns(
        tuple(grid for grid, _ in one),
        tuple(block for _, block in one),
        shapes,
        _most(row, launches.registers, rows),
        _most(row, launches.shared_bytes, rows),
        _mean(row, launches.occupancy_pct, dur, rows),
        _mean(row, launches.blocks_per_sm, dur, rows),
    )


def _most(row: I64, values: I64, rows: int) -> I64:
    most = np.full(rows, -1, np.int64)
    np.maximum.at(most, row, values)
    return most


def _mean(row: I64, values: F64, weights: F64, rows: int) -> F64:
    known = values >= 0
    weight = np.bincount(row[known], weights=weights[known], minlength=rows)
    total = np.bincount(row[known], weights=values[known] * weights[known], minlength=rows)
    mean: F64 = np.where(weight > 0, total / np.maximum(weight, 1.0), -1.0)
    return mean


def _args(text: bytes) -> dict[str, Any]:
    try:
        event = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    args = event.get("args") if isinstance(event, dict) else None
    return args if isinstance(args, dict) else {}


def _size(value: object) -> str:
    """``[8, 1, 1]`` as ``8``, ``[8, 2, 1]`` as ``8×2``; "" where it is no size."""
    if not isinstance(value, list) or not value or not all(isinstance(v, int) for v in value[:3]):
        return ""
    sides = list(value[:3])
    while len(sides) > 1 and sides[-1] == 1:
        sides.pop()
    return "×".join(str(side) for side in sides)


def _number(value: object) -> float:
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 2**53
    return value if good else -1  # type: ignore[return-value]
