"""Rows of tables that are grouped more finely than by name: operators, and device work."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from PySide6.QtCore import QCoreApplication

from core.figures.grouping import Grouped
from core.figures.launches import LaunchColumns
from core.figures.model import StatTable
from core.kinds import DEVICE_WORK, SliceKind
from core.rule_tools.kernel_names import is_gemm, uses_tensor_cores
from core.trace import Trace
from gui import text
from gui.models.columns import NOT_ASKED, Column
from gui.widgets.stat_box import stat_columns

translate = QCoreApplication.translate
_OTHER_MAKES = re.compile(r"AMD|Instinct|Radeon|MTIA|XPU|Ascend|Intel", re.IGNORECASE)


class Labels(Sequence[str]):
    """Labels of the rows of a `Grouped`, in words."""

    def __init__(self, grouped: Grouped) -> None:
        self._grouped = grouped

    def __len__(self) -> int:
        return len(self._grouped.label_id)

    def __getitem__(self, row: Any) -> Any:
        label_id = int(self._grouped.label_id[row])
        if label_id < 0:
            return text.unknown()
        label = self._grouped.labels[label_id]
        if self._grouped.backward[row]:
            return translate("tables", "{place} (backward)").format(place=label)
        return label


def grouped_columns(trace: Trace, grouped: Grouped, title: str, tip: str, *, device_only: bool = False) -> list[Column]:
    """Columns of a `StatTable`, with the labels after the names."""
    columns = stat_columns(trace, grouped.stats, device_only=device_only)
    columns.insert(1, Column(title, "text", Labels(grouped), tip))
    return columns


def launch_columns_of(trace: Trace, stats: StatTable, launch: LaunchColumns) -> list[Column]:
    """Columns that say how kernels were launched; those of which nothing was recorded are left out."""
    columns = []
    kernel = trace.slices.kind[stats.first_slice] == SliceKind.KERNEL

    def of_kernels(values: np.ndarray) -> np.ndarray:
        return np.where(kernel, values, NOT_ASKED)

    if _is_nvidia(trace):
        tip = translate("tables", "What the kernel's name says about it, for products and convolutions")
        columns.append(Column(translate("tables", "Tensor cores"), "text", _tensor_cores(trace, stats), tip))
    if any(launch.grid):
        columns += [
            _one_of(translate("tables", "Grid"), launch.grid, launch, translate("tables", "Blocks of a launch")),
            _one_of(translate("tables", "Block"), launch.block, launch, translate("tables", "Threads of a block")),
        ]
    if (launch.registers >= 0).any():
        tip = translate("tables", "Registers per thread, the most of all launches")
        columns.append(Column(translate("tables", "Registers"), "kernel_count", of_kernels(launch.registers), tip))
    if (launch.occupancy_pct >= 0).any():
        tip = translate("tables", "Occupancy as the profiler estimates it; mean, weighted by time")
        columns.append(Column(translate("tables", "Occupancy"), "kernel_pct", of_kernels(launch.occupancy_pct), tip))
    if (launch.blocks_per_sm >= 0).any():
        tip = translate("tables", "Blocks for each multiprocessor; below 1 some have nothing to do. Mean over time")
        columns.append(Column(translate("tables", "Blocks/SM"), "kernel_count", of_kernels(launch.blocks_per_sm), tip))
    return columns


def _one_of(title: str, values: tuple[str, ...], launch: LaunchColumns, tip: str) -> Column:
    """The one size of all launches of a row, or how many there are."""
    many = translate("tables", "{count} sizes")
    said = [v if n <= 1 else many.format(count=text.count(int(n))) for v, n in zip(values, launch.shapes, strict=True)]
    return Column(title, "text", said, tip)


def _is_nvidia(trace: Trace) -> bool:
    names = [d.name for d in trace.meta.devices]
    if any(_OTHER_MAKES.search(name) for name in names):
        return False
    calls = np.isin(trace.slices.kind, (SliceKind.RUNTIME, SliceKind.DRIVER))
    used = {trace.strings[i] for i in np.unique(trace.slices.name_id[calls]).tolist() if i >= 0}
    return bool(used) and not any(name.startswith("hip") for name in used) and any(n.startswith("cu") for n in used)


def _tensor_cores(trace: Trace, stats: StatTable) -> list[str]:
    words = []
    for name_id, example in zip(stats.name_id.tolist(), stats.first_slice.tolist(), strict=True):
        name = trace.strings[name_id] if name_id >= 0 else ""
        if int(trace.slices.kind[example]) not in DEVICE_WORK or not (is_gemm(name) or uses_tensor_cores(name)):
            words.append("")
        else:
            words.append(translate("tables", "likely") if uses_tensor_cores(name) else translate("tables", "no sign"))
    return words
