"""The trace: a frozen bundle of tables, and the two things that read more of its file on demand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from core.kinds import DEVICE_WORK
from core.strings import StringTable
from core.tables import (
    I32,
    I64,
    Bool,
    Counter,
    InstantTable,
    LinkTable,
    MemoryTable,
    ProcessTable,
    SliceTable,
    StepTable,
    ThreadTable,
    TrackTable,
)
from core.words import fill


@dataclass(frozen=True)
class Device:
    """One entry of ``deviceProperties``; fields are None where the trace does not say."""

    index: int
    name: str
    total_memory_bytes: int | None = None
    compute_major: int | None = None
    compute_minor: int | None = None
    sm_count: int | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TraceMeta:
    """What the header says. None is "not stated", never "no"."""

    origin_ns: int = 0  # absolute time of the first event (baseTimeNanoseconds added), ns
    devices: tuple[Device, ...] = ()
    torch_version: str | None = None
    rank: int | None = None
    world_size: int | None = None
    record_shapes: bool | None = None
    with_stack: bool | None = None
    profile_memory: bool | None = None
    display_unit: str | None = None
    simulated: bool = False  # written by the project's simulator
    header: Mapping[str, Any] = field(default_factory=dict)  # the rest of the top-level keys, small values only


@dataclass(frozen=True)
class ImportNote:
    """One kind of loss or repair: counted, and explained in words a person can act on."""

    code: str  # stable kebab-case
    severity: str  # "info" | "warning" | "error"
    count: int
    title: str  # one sentence; may hold {count}
    advice: str
    dropped: bool  # events were left out (else repaired or only odd)
    example: str = ""

    @property
    def headline(self) -> str:
        """The title with its count filled in."""
        return fill(self.title, {"count": self.count})


CUT_CODES = frozenset({"truncated", "gzip-truncated"})  # notes of a file that breaks off


@dataclass(frozen=True)
class ImportReport:
    """What the importer read, kept, dropped and repaired."""

    events_read: int
    events_kept: int
    notes: tuple[ImportNote, ...] = ()

    @property
    def is_cut_off(self) -> bool:
        """The file ends before the recording does: what came after is missing, perhaps all of the device's work."""
        return any(n.code in CUT_CODES for n in self.notes)

    @property
    def dropped(self) -> dict[str, int]:
        """Reason -> number of events left out."""
        return {n.code: n.count for n in self.notes if n.dropped}

    @property
    def repaired(self) -> dict[str, int]:
        """Reason -> number of events repaired or odd but kept."""
        return {n.code: n.count for n in self.notes if not n.dropped}


@dataclass(frozen=True)
class TraceSource:
    """One file of the trace: where it was, and what it was when read."""

    path: Path
    size_bytes: int  # on disk
    text_bytes: int  # uncompressed
    mtime_ns: int


class EventReader(Protocol):
    """Re-reads one event's JSON from the file it came from."""

    def read(self, source_id: int, event_start: int, event_bytes: int) -> dict[str, Any]:
        """Return the whole event as a dict; raise TraceError when the file changed or vanished."""
        ...


@dataclass(frozen=True, eq=False)
class Trace:
    """Everything known of one opened trace (or of several ranks merged); immutable, shared between threads."""

    sources: tuple[TraceSource, ...]
    strings: StringTable
    slices: SliceTable
    tracks: TrackTable
    threads: ThreadTable
    processes: ProcessTable
    steps: StepTable
    links: LinkTable
    memory: MemoryTable
    instants: InstantTable
    counters: tuple[Counter, ...]
    meta: TraceMeta
    report: ImportReport
    reader: EventReader

    @property
    def path(self) -> Path:
        """The first source's path."""
        return self.sources[0].path

    @property
    def has_device_work(self) -> bool:
        """Kernels, copies or memsets were recorded. Without, the use of the device is unknown, never 0 %."""
        return bool(len(self.device_ids))

    @cached_property
    def span_ns(self) -> tuple[int, int]:
        """First start and last end of all slices, ns; (0, 0) when there are none."""
        if not len(self.slices):
            return (0, 0)
        return (int(self.slices.start_ns.min()), int(self.end_ns.max()))

    @cached_property
    def extent_ns(self) -> tuple[int, int]:
        """First and last time of anything that is drawn, ns: slices, and the curves of memory and counters."""
        times = [self.memory.time_ns, *(counter.time_ns for counter in self.counters)]
        ends = [bound for t in times if len(t) for bound in (int(t.min()), int(t.max()))]
        if len(self.slices):
            ends += self.span_ns
        return (min(ends), max(ends)) if ends else (0, 0)

    @cached_property
    def end_ns(self) -> I64:
        """int64[n_slices]: end of each slice, ns."""
        end = self.slices.start_ns + self.slices.dur_ns
        end.setflags(write=False)
        return end

    @cached_property
    def device_ids(self) -> I32:
        """int32[k]: slices that are device work, in table order."""
        ids = self.device_work_mask.nonzero()[0].astype(np.int32)
        ids.setflags(write=False)
        return ids

    @cached_property
    def device_work_mask(self) -> Bool:
        """bool[n_slices]: kernel, memcpy or memset."""
        mask: Bool = np.zeros(len(self.slices), dtype=bool)
        for kind in DEVICE_WORK:
            mask |= self.slices.kind == int(kind)
        mask.setflags(write=False)
        return mask

    def name(self, slice_id: int) -> str:
        """Name of a slice, as written."""
        return self.strings[int(self.slices.name_id[slice_id])]

    def args(self, slice_id: int) -> dict[str, Any]:
        """Arguments of a slice, re-read from its file.

        Raises
        ------
        TraceError
            When the file changed or vanished since it was opened.
        """
        held = self.event(slice_id).get("args")
        return dict(held) if isinstance(held, dict) else {}  # a file may hold anything there

    def event(self, slice_id: int) -> dict[str, Any]:
        """Return the whole JSON event of a slice (empty when it has none, as a counted repair)."""
        start = int(self.slices.event_start[slice_id])
        if start < 0:
            return {}
        process = int(self.tracks.process_id[self.slices.track_id[slice_id]])
        return self.reader.read(int(self.processes.source_id[process]), start, int(self.slices.event_bytes[slice_id]))

    def track_of_thread(self, thread_id: int, kind: int) -> int:
        """Track of that kind belonging to a CPU thread, -1 when it has none."""
        hit = ((self.tracks.thread_id == thread_id) & (self.tracks.kind == kind)).nonzero()[0]
        return int(hit[0]) if len(hit) else -1
