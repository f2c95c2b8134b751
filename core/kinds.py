"""The closed sets of kinds that the column tables store as ``uint8``.

Columns are compared with ``int(SliceKind.KERNEL)``: numpy takes five times as long to make a number of a member.
"""

from __future__ import annotations

from enum import IntEnum


class SliceKind(IntEnum):
    """What a slice is, whatever the dialect called it."""

    CPU_OP = 0  # an operator on the CPU (aten::*, autograd nodes)
    RANGE = 1  # record_function / user annotation on the CPU
    STEP = 2  # ProfilerStep#n on the CPU
    PYTHON = 3  # a Python frame or a call into C from Python
    RUNTIME = 4  # CUDA/HIP/... runtime API call on the CPU
    DRIVER = 5  # CUDA/HIP/... driver API call on the CPU
    KERNEL = 6  # device work
    MEMCPY = 7  # device work
    MEMSET = 8  # device work
    DEVICE_RANGE = 9  # gpu_user_annotation: drawn, never work
    DEVICE_SYNC = 10  # cuda_sync records: drawn, never work
    OVERHEAD = 11  # the profiler's own cost
    GC = 12  # garbage collector pauses
    OTHER = 13


DEVICE_WORK = (SliceKind.KERNEL, SliceKind.MEMCPY, SliceKind.MEMSET)
HOST_CALLS = (SliceKind.RUNTIME, SliceKind.DRIVER)


class TrackKind(IntEnum):
    """What a track holds. The slices of one CPU thread are split over up to three tracks, so that each nests."""

    CPU_RANGES = 0  # STEP and RANGE slices of a thread
    CPU_OPS = 1  # CPU_OP, RUNTIME, DRIVER slices of a thread
    CPU_PYTHON = 2  # PYTHON and GC slices of a thread
    DEVICE_STREAM = 3  # KERNEL, MEMCPY, MEMSET of one stream
    DEVICE_RANGES = 4  # DEVICE_RANGE of one stream
    DEVICE_SYNCS = 5  # DEVICE_SYNC of one stream
    OVERHEAD = 6
    OTHER = 7


class CopyDirection(IntEnum):
    """Direction of a copy; NONE where the slice is no copy or says nothing."""

    NONE = 0
    HTOD = 1
    DTOH = 2
    DTOD = 3
    HTOH = 4
    PTOP = 5


class HostMemory(IntEnum):
    """The host side of a copy, as its name states it."""

    UNKNOWN = 0
    PAGEABLE = 1
    PINNED = 2


class SyncKind(IntEnum):
    """What the CPU waits in (``sync_points[].kind`` of the headless contract, lower case)."""

    STREAM = 0
    DEVICE = 1
    EVENT = 2
    MEMCPY = 3
    ALLOC = 4


class GapCause(IntEnum):
    """To what an idle stretch of a device is charged; each idle nanosecond has exactly one cause."""

    LOADER = 0  # the launching thread was in the data loader
    SYNC = 1  # the CPU had waited, and refilled an empty queue afterwards
    LAUNCH = 2  # the CPU was busy in ops and launches: launch-bound
    PYTHON = 3  # the CPU was in Python, outside any op
    COPY = 4  # the CPU was inside a blocking copy's own transfer
    COMPILE = 5  # compiling or loading modules
    COLLECTOR = 6  # garbage collector
    COMMUNICATION = 7
    ALLOC = 8  # cudaMalloc/cudaFree
    UNKNOWN = 9  # nothing recorded says why
    QUEUED = 10  # the work was launched, and something that is not in the trace kept the device from starting it
