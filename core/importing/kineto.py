"""The dialects of Kineto and its relatives: which category or name means which `SliceKind`.

Sources of the table (category names as written to the trace):

- Kineto today: ``libkineto/src/ActivityType.cpp`` (``cpu_op``, ``user_annotation``, ``gpu_user_annotation``,
  ``gpu_memcpy``, ``gpu_memset``, ``kernel``, ``cuda_runtime``, ``cuda_driver``, ``python_function``, ``overhead``,
  ``cuda_sync``, ``cuda_event``, ``mtia_runtime``, ``mtia_ccp_events``, ``mtia_insight``, ``cuda_profiler_range``,
  ``glow_runtime``, ``hpu_op``, ``xpu_runtime``, ``collective_comm``, ``privateuse1_runtime``,
  ``privateuse1_driver``). ROCm writes ``cuda_runtime`` with ``hip*`` names (``RoctracerLogger``).
- Kineto of torch 1.8 and 1.9: ``Operator``, ``Kernel``, ``Memcpy``, ``Memset``, ``Runtime``.
- The legacy autograd exporter (``torch.autograd.profiler`` without Kineto): no category; processes
  ``CPU functions`` and ``CUDA functions``.
- torch_npu (``trace_view.json``): no category on device rows; processes ``Ascend Hardware``, ``CANN``,
  ``Communication``/``HCCL``, ``Overlap Analysis``.
"""

from __future__ import annotations

import re

import numpy as np

from core.kinds import CopyDirection, HostMemory, SliceKind, TrackKind
from core.tables import I32, U8, Bool

CATEGORIES: dict[str, SliceKind] = {
    # torch 1.10 and newer, CUDA and ROCm
    "cpu_op": SliceKind.CPU_OP,
    "user_annotation": SliceKind.RANGE,
    "gpu_user_annotation": SliceKind.DEVICE_RANGE,
    "kernel": SliceKind.KERNEL,
    "gpu_memcpy": SliceKind.MEMCPY,
    "gpu_memset": SliceKind.MEMSET,
    "cuda_runtime": SliceKind.RUNTIME,
    "cuda_driver": SliceKind.DRIVER,
    "python_function": SliceKind.PYTHON,
    "cuda_sync": SliceKind.DEVICE_SYNC,
    "cuda_event": SliceKind.DEVICE_SYNC,
    "overhead": SliceKind.OVERHEAD,
    "cuda_profiler_range": SliceKind.DEVICE_RANGE,
    "collective_comm": SliceKind.DEVICE_RANGE,
    "python_gc": SliceKind.GC,
    # names written by HIP builds of other exporters
    "hip_runtime": SliceKind.RUNTIME,
    "hip_driver": SliceKind.DRIVER,
    # other accelerators
    "xpu_runtime": SliceKind.RUNTIME,
    "xpu_driver": SliceKind.DRIVER,
    "mtia_runtime": SliceKind.RUNTIME,
    "mtia_ccp_events": SliceKind.KERNEL,
    "mtia_insight": SliceKind.DEVICE_RANGE,
    "glow_runtime": SliceKind.RUNTIME,
    "hpu_op": SliceKind.KERNEL,
    "mps_runtime": SliceKind.RUNTIME,
    "mps_kernel": SliceKind.KERNEL,
    "npu_runtime": SliceKind.RUNTIME,
    "privateuse1_runtime": SliceKind.RUNTIME,
    "privateuse1_driver": SliceKind.DRIVER,
    # torch 1.8 and 1.9 (compared in lower case)
    "operator": SliceKind.CPU_OP,
    "runtime": SliceKind.RUNTIME,
    "memcpy": SliceKind.MEMCPY,
    "memset": SliceKind.MEMSET,
    "python": SliceKind.PYTHON,
}

PROFILER_SPAN = "trace"  # category of the profiler's own "PyTorch Profiler (0)" bar: an envelope, not work
MEMORY_EVENT = "[memory]"

STEP_NAME = re.compile(r"ProfilerStep#\d+\Z", re.ASCII)
LINE_NAME = re.compile(r"line: .+:\d+ \([^()]+\)\Z")  # our own marks of statements (docs/capture.md, "Find the line")
UNNUMBERED_STEP = re.compile(r"ProfilerStep[#*]?\Z")
GC_NAME = re.compile(r"Python GC\b|<built-in method collect\b|gc collect", re.IGNORECASE)
_TALKS = np.isin(np.arange(256), (SliceKind.KERNEL, SliceKind.RANGE, SliceKind.DEVICE_RANGE, SliceKind.CPU_OP))
COMMUNICATION = re.compile(r"nccl|rccl|gloo:|hccl|oneccl|ucc:|mpi:|c10d::|msccl", re.IGNORECASE)
_HIGHEST_STEP = 1 << 62
OP_NAME = re.compile(r"[A-Za-z_]\w*::|[A-Za-z]\w*Backward\d*\Z|autograd::")

LAUNCH_FLOWS = frozenset({"ac2g", "async", "async_cpu_to_gpu", "cpu_to_cuda", "async_npu", "hosttodevice", "mtia_corr"})
AUTOGRAD_FLOWS = frozenset({"fwdbwd", "forward_backward"})

_TRACK_OF_KIND = {
    SliceKind.CPU_OP: TrackKind.CPU_OPS,
    SliceKind.RANGE: TrackKind.CPU_RANGES,
    SliceKind.STEP: TrackKind.CPU_RANGES,
    SliceKind.PYTHON: TrackKind.CPU_PYTHON,
    SliceKind.GC: TrackKind.CPU_PYTHON,
    SliceKind.RUNTIME: TrackKind.CPU_OPS,
    SliceKind.DRIVER: TrackKind.CPU_OPS,
    SliceKind.KERNEL: TrackKind.DEVICE_STREAM,
    SliceKind.MEMCPY: TrackKind.DEVICE_STREAM,
    SliceKind.MEMSET: TrackKind.DEVICE_STREAM,
    SliceKind.DEVICE_RANGE: TrackKind.DEVICE_RANGES,
    SliceKind.DEVICE_SYNC: TrackKind.DEVICE_SYNCS,
    SliceKind.OVERHEAD: TrackKind.OVERHEAD,
    SliceKind.OTHER: TrackKind.OTHER,
}
TRACK_OF_KIND = tuple(int(_TRACK_OF_KIND[kind]) for kind in SliceKind)
DEVICE_TRACKS = (TrackKind.DEVICE_STREAM, TrackKind.DEVICE_RANGES, TrackKind.DEVICE_SYNCS)

_COPY = re.compile(r"(HtoD|DtoH|DtoD|HtoH|PtoP|HostToDevice|DeviceToHost|DeviceToDevice|HostToHost|PeerToPeer)", re.I)
_DIRECTIONS = {
    "htod": CopyDirection.HTOD,
    "hosttodevice": CopyDirection.HTOD,
    "dtoh": CopyDirection.DTOH,
    "devicetohost": CopyDirection.DTOH,
    "dtod": CopyDirection.DTOD,
    "devicetodevice": CopyDirection.DTOD,
    "htoh": CopyDirection.HTOH,
    "hosttohost": CopyDirection.HTOH,
    "ptop": CopyDirection.PTOP,
    "peertopeer": CopyDirection.PTOP,
}
_OPEN_KIND = ((re.compile(r"_runtime\Z"), SliceKind.RUNTIME), (re.compile(r"_driver\Z"), SliceKind.DRIVER))


def kind_of(category: str, name: str, process_name: str) -> SliceKind:
    """Kind of a slice from its category (any case), its name and the name of its process.

    Sources: see the module's docstring. An unknown category is OTHER: drawn, but taken for nothing.
    """
    key = category.lower()
    kind = CATEGORIES.get(key)
    if kind is None:
        kind = _kind_without_category(name, process_name) if not key else _kind_of_open_category(key)
    if kind in (SliceKind.CPU_OP, SliceKind.RANGE) and STEP_NAME.match(name):
        return SliceKind.STEP
    if kind in (SliceKind.CPU_OP, SliceKind.RANGE) and LINE_NAME.match(name):
        return SliceKind.OTHER  # neither an operator nor a range of the user's
    if kind == SliceKind.CPU_OP and _is_named_range(key, name):
        return SliceKind.RANGE
    if kind == SliceKind.PYTHON and GC_NAME.match(name):
        return SliceKind.GC
    return kind


def _is_named_range(key: str, name: str) -> bool:
    """In torch 1.8/1.9 annotations are ``Operator`` too; the known ones are told by their names."""
    return key == "operator" and name.startswith(("enumerate(DataLoader)", "Optimizer.", "ProfilerStep"))


def _kind_of_open_category(key: str) -> SliceKind:
    for pattern, kind in _OPEN_KIND:
        if pattern.search(key):
            return kind
    return SliceKind.OTHER


def _kind_without_category(name: str, process_name: str) -> SliceKind:
    process = process_name.strip().lower()
    if process in ("cuda functions", "ascend hardware", "hip functions", "xpu functions"):
        lower = name.strip().lower()
        if lower.startswith(("memcpy", "aclrtmemcpy")):
            return SliceKind.MEMCPY
        if lower.startswith("memset"):
            return SliceKind.MEMSET
        if lower.startswith(("event_wait", "event_record", "notify_wait", "notify_record")):
            return SliceKind.DEVICE_SYNC
        return SliceKind.KERNEL
    if process in ("communication", "hccl", "overlap analysis"):
        return SliceKind.DEVICE_RANGE
    if process == "cann":
        return SliceKind.RUNTIME
    if process == "cpu functions" or OP_NAME.match(name.strip()):
        return SliceKind.CPU_OP
    return SliceKind.OTHER


def step_number(name: str) -> int:
    """Return the number in a step's name; one that int64 cannot hold is the highest."""
    digits = name.partition("#")[2].lstrip("0")
    return min(int(digits or "0"), _HIGHEST_STEP) if len(digits) < 20 else _HIGHEST_STEP


def copy_direction(name: str) -> CopyDirection:
    """Direction that a copy's name states, NONE when it says nothing."""
    found = _COPY.search(name)
    return _DIRECTIONS[found.group(1).lower()] if found else CopyDirection.NONE


def host_memory(name: str) -> HostMemory:
    """Host side of a copy as its name states it."""
    if "Pageable" in name:
        return HostMemory.PAGEABLE
    return HostMemory.PINNED if "Pinned" in name else HostMemory.UNKNOWN


def facts_of_names(strings: list[str], name_id: I32, kind: U8) -> tuple[U8, U8, Bool]:
    """Direction and host memory of copies, and whether a slice is a collective's: read once per distinct name."""
    n = len(strings) + 1
    direction, memory = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
    communication = np.zeros(n, np.bool_)
    copies = kind == SliceKind.MEMCPY
    for i in np.flatnonzero(np.bincount(name_id[copies])).tolist():
        direction[i], memory[i] = copy_direction(strings[i]), host_memory(strings[i])
    talk = _TALKS[kind]
    for i in np.flatnonzero(np.bincount(name_id[talk])).tolist():
        communication[i] = COMMUNICATION.search(strings[i]) is not None
    zero = np.uint8(0)
    return (
        np.where(copies, direction[name_id], zero),
        np.where(copies, memory[name_id], zero),
        talk & communication[name_id],
    )
