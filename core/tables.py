"""The frozen column tables between import and analysis.

Every column is a numpy array with the dtype stated here, ``writeable=False``; one of `Whole` is int64, int32
or int16, as small as its numbers allow: look at it, do not calculate in it. Times are int64 nanoseconds from the
trace's first event (the absolute origin is ``TraceMeta.origin_ns``); intervals are half-open ``[start, end)``; row
numbers end in ``_id`` and are int32 with -1 for "none".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
Whole = NDArray[np.int16] | NDArray[np.int32] | NDArray[np.int64]
U8 = NDArray[np.uint8]
F64 = NDArray[np.float64]
Bool = NDArray[np.bool_]


class Table:
    """Base of the column tables: freezes the columns and gives the number of rows."""

    def __post_init__(self) -> None:
        """Make every array column read-only."""
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    def __len__(self) -> int:
        return len(getattr(self, next(iter(self.__dataclass_fields__))))  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False)
class SliceTable(Table):
    """All slices, sorted by (track_id, start_ns, -end_ns): a track is one contiguous run, and within it parents come
    before their children (preorder).

    ``parent_id`` is the innermost slice *of the same track* that encloses this one (a child may outlast its parent by
    rounding, at most 1 us by default, and stays its child). ``depth`` is the lane inside the track: the nesting
    depth, except for slices that truly cross another one (``FLAG_CROSSING``), which sit on the first free lane.
    ``subtree_end`` is one past the last row of the track that starts inside this slice, so all that happened under
    slice ``i`` on its track is in rows ``[i + 1, subtree_end[i])``.
    """

    start_ns: I64
    dur_ns: I64  # >= 0
    name_id: I32
    kind: U8  # SliceKind
    track_id: Whole
    depth: Whole
    parent_id: I32
    subtree_end: I32
    correlation_id: Whole  # launch <-> device work, -1 absent
    external_id: Whole  # op <-> its launches, -1 absent
    copy_bytes: Whole  # memcpy/memset, -1 absent
    direction: U8  # CopyDirection
    host_memory: U8  # HostMemory
    flags: U8
    event_start: Whole  # byte offset of the event's JSON in the uncompressed text of its source, -1 none
    event_bytes: Whole  # its length

    @property
    def end_ns(self) -> I64:
        """int64[n], ns: start + duration (a new array: keep it if you use it often)."""
        return self.start_ns + self.dur_ns


FLAG_UNFINISHED = 1  # begin without end: drawn to the end of the trace, not counted in averages
FLAG_CROSSING = 2  # crosses another slice of its track
FLAG_COMMUNICATION = 4  # a collective's kernel or range (nccl, rccl, gloo, ...)
FLAG_NO_DURATION = 8  # duration absent or invalid: drawn as a mark, not counted in sums


@dataclass(frozen=True, eq=False)
class TrackTable(Table):
    """One row per track, in drawing order. ``first_id``/``end_id`` bound its slices, ``lanes`` is 1 + deepest depth.

    ``thread_id`` is a row of `ThreadTable` for tracks of a CPU thread (several tracks share one), else -1.
    """

    kind: U8  # TrackKind
    name_id: I32
    process_id: I32  # row of ProcessTable
    thread_id: I32  # row of ThreadTable or -1
    device: I32  # device index or -1
    stream: I64  # stream number or -1
    first_id: I32
    end_id: I32
    lanes: I32


@dataclass(frozen=True, eq=False)
class ThreadTable(Table):
    """CPU threads: ``tid`` as written, ``name_id`` the label, ``main`` the one that runs the steps of its process."""

    process_id: I32
    tid: tuple[str, ...]
    name_id: I32
    main: Bool


@dataclass(frozen=True, eq=False)
class ProcessTable(Table):
    """Processes (and devices that a trace writes as processes): ``pid`` as written; ``rank`` -1 unknown."""

    source_id: I32  # which of `Trace.sources`
    pid: tuple[str, ...]
    name_id: I32
    rank: I32
    device: I32  # device index when the "process" is a device, else -1


@dataclass(frozen=True, eq=False)
class StepTable(Table):
    """``ProfilerStep#n`` slices on the CPU in time order; empty when there are none."""

    start_ns: I64
    end_ns: I64
    number: I64  # n, -1 when unnumbered
    name_id: I32
    slice_id: I32  # -1 for inferred ones
    thread_id: I32
    inferred: Bool


@dataclass(frozen=True, eq=False)
class LinkTable:
    """Links between slices, usable both ways in O(log n).

    ``launch_of``: int32[n_slices], for device work the CPU call that launched it, else -1.
    ``launched``/``launched_by``: device work sorted by the launching slice: those of launch rows ``[a, b)`` are
    ``launched[searchsorted(launched_by, a):searchsorted(launched_by, b)]``. A CUDA graph launch owns hundreds.
    ``op_of``: int32[n_slices], for host calls and device work the innermost CPU_OP slice above the launch (by nesting,
    else by external id), else -1.
    ``forward``/``backward``: int32[m], pairs of CPU slices, sorted by forward; ``backward_order`` sorts by backward.
    """

    launch_of: I32
    launched: I32
    launched_by: I32
    op_of: I32
    forward: I32
    backward: I32
    backward_order: I32

    def device_work_of(self, first_id: int, end_id: int) -> I32:
        """Device slices launched by the CPU slices ``[first_id, end_id)``: int32[k], sorted by launch."""
        a, b = np.searchsorted(self.launched_by, (first_id, end_id))
        return self.launched[a:b]


@dataclass(frozen=True, eq=False)
class MemoryTable(Table):
    """``[memory]`` instants in time order. ``device`` -1 is the CPU. Totals are -1 where the trace lacks them."""

    time_ns: I64
    device: I32
    address: I64
    bytes: I64  # negative when freed
    allocated_bytes: I64
    reserved_bytes: I64
    thread_id: I32


@dataclass(frozen=True, eq=False)
class InstantTable(Table):
    """Other instants (``Record Window End`` and the like) in time order."""

    time_ns: I64
    name_id: I32
    process_id: I32
    thread_id: I32
    event_start: I64
    event_bytes: I32


@dataclass(frozen=True, eq=False)
class Counter:
    """One counter track (phase ``C``): times ascending."""

    name: str
    process_id: int
    time_ns: I64
    value: F64
