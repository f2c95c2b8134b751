"""The shape of all figures. Arrays follow the conventions of `core.tables`; None and -1 mean unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from core.tables import F64, I32, I64, U8, Bool, StepTable, Table

BREAKDOWN_PARTS = (
    "kernel",
    "memcpy",
    "memset",
    "communication",
    "runtime",
    "dataloader",
    "cpu_exec",
    "other",
)


@dataclass(frozen=True, eq=False)
class SyncTable(Table):
    """Sync points in time order: moments at which the CPU is blocked on a device (docs/figures.md).

    ``slice_id`` is the blocking host call; the wait is ``[wait_start_ns, wait_start_ns + wait_ns)`` inside it.
    """

    slice_id: I32
    kind: U8  # SyncKind
    wait_start_ns: I64
    wait_ns: I64  # 0 when it did not wait
    step_id: I32  # row of Figures.steps, -1 outside
    thread_id: I32
    device: I32
    op_id: I32  # outermost CPU_OP slice above the call, -1
    range_id: I32  # innermost RANGE slice around it, -1
    frame_id: I32  # innermost PYTHON slice around it, -1
    direction: U8  # CopyDirection of its own copy
    waited_id: I32  # device slice whose end released it, -1 unknown
    copy_id: I32  # its own copy on the device, -1


@dataclass(frozen=True, eq=False)
class GapTable(Table):
    """Idle stretches per device inside the analysed window, split where cause or step changes."""

    start_ns: I64
    end_ns: I64
    device: I32
    cause: U8  # GapCause
    step_id: I32
    blame_id: I32  # CPU slice that says why, -1


@dataclass(frozen=True, eq=False)
class StepFigures(Table):
    """Per step (row = row of ``Figures.steps``). Unknown durations are -1. ``counted`` is False for warm-up, truncated
    and outlier steps, which the means leave out (``why_not`` says why).
    """

    dur_ns: I64  # host step
    device_start_ns: I64  # first device work launched in the step, -1
    device_end_ns: I64  # last one's end, -1
    period_ns: I64  # distance to the next step of the same device work, -1 for the last
    gpu_busy_ns: I64  # union over streams of all devices in use, mean over devices, -1 unknown
    sync_wait_ns: I64  # -1 where no runtime or driver calls were recorded
    gpu_lag_ns: I64  # meaningful only where has_lag
    has_lag: Bool
    kernels: I32  # launched in the step
    breakdown_ns: I64  # [n, 8] in BREAKDOWN_PARTS order, rows add up to dur_ns
    counted: Bool
    why_not: tuple[str, ...]
    round_steps: int = 1  # after so many steps the loop does the same again; whole rounds count

    @cached_property
    def paced(self) -> Bool:
        """Counted steps whose period is known, bool[n]: those of whole rounds where there are any."""
        known: Bool = self.counted & (self.period_ns > 0)
        rows = self.counted.nonzero()[0]
        rounds = rows[: len(rows) - len(rows) % self.round_steps].reshape(-1, self.round_steps)
        whole = rounds[known[rounds].all(axis=1)]
        if not len(whole):
            return known
        paced = np.zeros(len(known), dtype=bool)
        paced[whole] = True
        return paced


@dataclass(frozen=True, eq=False)
class StepParts:
    """The device's time per step, float64[n_steps, ...] in ns, -1 unknown; mean over the devices of its file.

    A step's own time lasts from its anchor (`core.figures.device.anchors`) to that of the next step: where the CPU
    runs ahead, the device works at another step while the host step lasts. Without a next one it lasts from the
    step's start, or from the end of the work of the step before, to the end of its own work.
    """

    length_ns: F64
    busy_ns: F64
    communication_ns: F64  # of the busy time: only collectives ran
    idle_ns: F64  # [n_steps, len(GapCause)]


@dataclass(frozen=True, eq=False)
class StatTable(Table):
    """Aggregates by name, sorted by total time, descending."""

    name_id: I32
    calls: I64
    host_total_ns: I64
    host_self_ns: I64
    device_total_ns: I64  # device work launched below
    device_self_ns: I64  # launched directly (no op between)
    min_ns: I64
    max_ns: I64
    first_slice: I32  # an example, the longest one


@dataclass(frozen=True, eq=False)
class CpuTime:
    """Where the CPU's time goes: totals by name over the counted steps, without warm-up and outliers.

    ``steps`` is how many those are; 0 where none counts: the tables then are of the whole recording. ``whole_ns`` is
    the mean of those steps on the host, or the recording.
    """

    steps: int
    whole_ns: float
    operators: StatTable
    modules: StatTable
    python: StatTable  # all frames but those of modules


@dataclass(frozen=True)
class Budget:
    """One step's period, split so that it adds up: busy + idle by cause = period (means over counted steps)."""

    period_ns: int | None
    busy_ns: int | None
    idle_by_cause_ns: Mapping[int, int] = field(default_factory=dict)  # GapCause -> ns
    basis: str = "window"  # "period" | "step" | "window": what one step's time is taken from (docs/figures.md)
    steps: int = 0  # how many steps the means are taken over


@dataclass(frozen=True)
class Summary:
    """Headline figures; None is unknown."""

    verdict: str = "unknown"
    verdict_text: str = ""  # one sentence for a newcomer
    verdict_template: str = ""  # the same as a template, for translation ...
    verdict_values: Mapping[str, float] = field(default_factory=dict)  # ... and its named values
    steps: int = 0
    inferred: bool = False
    step_ns: float | None = None
    step_median_ns: float | None = None
    device_step_ns: float | None = None
    period_ns: float | None = None
    sustained_step_ns: float | None = None
    replay_error_pct: float | None = None  # against the recording that the replay is made of: close to 0
    held_out_error_pct: float | None = None  # against steps that it was not given: the measure of accuracy
    gpu_busy_pct: float | None = None  # union of device work in the marked steps but warm-up and outliers (else: trace)
    kernel_busy_pct: float | None = None  # torch-tb-profiler's "GPU Utilization": kernels only
    sync_points_per_step: float | None = None
    sync_wait_ns_per_step: float | None = None
    kernels_per_step: float | None = None
    peak_memory_bytes: int | None = None
    enqueue_bound: bool | None = None  # ProfilerStep measures enqueueing only


@dataclass(frozen=True)
class DoctorNote:
    """One thing to know about this trace before trusting a figure."""

    code: str
    severity: str  # info | warning | error
    title: str
    consequence: str
    cure: str
    slices: tuple[int, ...] = ()
    templates: tuple[str, str, str] = ("", "", "")  # title, consequence, cure before their values are filled in
    values: Mapping[str, int | float | str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Figures:
    """All figures of one trace."""

    steps: StepTable  # marked ones, or inferred ones
    step_figures: StepFigures
    step_of: I32  # int32[n_slices]: step of a slice: by start for CPU slices, by launch for device work, -1 outside
    syncs: SyncTable
    gaps: GapTable
    operators: StatTable
    kernels: StatTable
    ranges: StatTable
    modules: StatTable
    python: StatTable
    budget: Budget
    summary: Summary
    doctor: tuple[DoctorNote, ...]
    devices: tuple[int, ...]  # device indexes with work
    busy_by_device_pct: Mapping[int, float]
    busy_by_stream_pct: Mapping[int, float]  # track id -> %
    queue_time_ns: I64  # launch queue depth over time: times ...
    queue_depth: I32  # ... and depth from that time on
    launch_delay_ns: I64  # per device slice in links.launched order: start minus launch's start; -1 unknown
    extra: Mapping[str, F64] = field(default_factory=dict)  # see docs/figures.md, "Further figures"
    peak_memory_by_device: Mapping[int, int] = field(default_factory=dict)  # device (-1 the CPU) -> bytes
    step_parts: StepParts | None = None  # None where there is no device work, or no step
    cpu_time: CpuTime | None = None  # None where a device worked
