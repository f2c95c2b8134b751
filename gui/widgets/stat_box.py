"""Tables of figures by name: columns over a `StatTable`."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QCoreApplication

from core.figures.model import StatTable
from core.trace import Trace
from gui.models.columns import Column, Names

translate = QCoreApplication.translate


def stat_columns(trace: Trace, stats: StatTable, *, device_only: bool = False) -> list[Column]:
    """Columns of aggregates by name; ``device_only`` for kernels, whose host times say nothing."""
    calls = np.maximum(stats.calls, 1)
    columns = [
        Column(translate("tables", "Name"), "name", Names(trace.strings, stats.name_id)),
        Column(translate("tables", "Calls"), "count", stats.calls),
    ]
    if not device_only:
        columns += [
            Column(
                translate("tables", "Host self"),
                "ns",
                stats.host_self_ns,
                translate("tables", "CPU time inside it, without what it calls"),
            ),
            Column(
                translate("tables", "Host total"),
                "ns",
                stats.host_total_ns,
                translate("tables", "CPU time from its start to its end"),
            ),
        ]
    if device_only or bool((stats.device_total_ns > 0).any()):
        columns += [
            Column(
                translate("tables", "Device total"),
                "ns",
                stats.device_total_ns,
                translate("tables", "Device work launched inside it or below"),
            )
        ]
        if not device_only:
            columns.append(
                Column(
                    translate("tables", "Device self"),
                    "ns",
                    stats.device_self_ns,
                    translate("tables", "Device work that it launched itself"),
                )
            )
    total = stats.device_total_ns if device_only else stats.host_total_ns
    columns += [
        Column(translate("tables", "Mean"), "ns", np.where(total >= 0, total // calls, -1)),
        Column(translate("tables", "Min"), "ns", stats.min_ns),
        Column(translate("tables", "Max"), "ns", stats.max_ns),
    ]
    if device_only:
        whole = max(int(total.sum()), 1)
        share = 100.0 * total / whole
        columns.insert(3, Column(translate("tables", "Share"), "pct", share, translate("tables", "Of all of them")))
    return columns
