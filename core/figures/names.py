"""What a name means: each distinct name of a trace is judged once, slices then look their class up by name id."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from core.engine_steps import ENGINE_STEP
from core.kinds import SyncKind
from core.strings import StringTable
from core.tables import Bool

# `num_workers` decides between _SingleProcess and _MultiProcessing; both are the loader.
# Lightning's own profiler marks the same moment by its hook.
_LOADER_PREFIXES = ("enumerate(Data", "[pl][profile]")
_LOADER_RANGE = re.compile(
    r"^enumerate\(Data(?:Loader|Pipe)\)#|^\[pl\]\[profile\].*(?:dataloader_next|get_train_batch)"
)
_LOADER_FRAME = re.compile(r"torch/utils/data/dataloader\.py\(\d+\): __next__$")
# Frames that enclose all of dynamo's, inductor's and triton's work, and never run when the compiled code is reused.
_COMPILE = re.compile(
    r"torch/_dynamo/convert_frame\.py\(|triton/compiler/compiler\.py\(\d+\): compile$|\(dynamo_timed\)|"
    r"_compile\.compile_inner|^compile_fx|Module Loading|Lazy Function Loading|"
    r"^(?:cu|cuda|hip|musa)(?:Library|Module)Load"
)
# The ranges of the collective libraries. The c10d:: operators around them only enqueue.
_COMMUNICATION = ("nccl:", "rccl:", "gloo:", "ucc:", "mpi:", "hccl:", "xccl:")
# Those in which the calling thread itself moves the data or waits for the other ranks.
_WAITING_COLLECTIVE = ("c10d::barrier", "c10d::monitored_barrier", "gloo:", "mpi:")
_STEP_FIRST = set("#tTsSiIbBeE\u017f\u0130\u0131")  # a long s and both Turkish ones count as letters of the same kind
_STEP_RANGE = re.compile(
    r"(?i)^(?:#+\s*)?(?:train(?:ing)?[\s_.-]*)?(?:step|iter|iteration|batch)(?:[\s_.:#/()\[\]-]*\d+)?(?:\s*#+)?$|^"
    + ENGINE_STEP
)
# CUDA, HIP, MUSA, SYCL's unified runtime and Level Zero, Neuron, AscendCL, SynapseAI, Cambricon's runtime and driver.
_CALL_PREFIXES = ("cuda", "hip", "cu", "musa", "xpu", "ze", "ur", "nrt", "acl", "syn", "cn")
_CALL = r"^(?:cuda|hip|cu|musa|xpu|ze|ur|nrt|acl(?:rt|nn)?|syn|cn(?:rt)?)"
# What each blocks on is said by its maker: AscendCL writes the verb first, a SYCL queue is a stream.
_SYNC_STREAM = re.compile(
    _CALL + r".*(?:StreamSynchronize|SynchronizeStream|QueueSynchronize|ListHostSynchronize|Queue(?:Finish|Sync)$)"
)
_SYNC_EVENT = re.compile(
    _CALL
    + r".*(?:EventSynchronize|SynchronizeEvent|(?:Event|Fence)HostSynchronize)|^urEventWait$|^cn(?:rt)?WaitNotifier$"
)
_SYNC_DEVICE = re.compile(
    _CALL + r".*(?:(?:Device|Ctx|Context)Sync(?:hronize)?$|(?:Device|Ctx|Context)Synchronize|Sync(?:hronize)?Device)"
)
# Copies between two places of one device do not block the host (API synchronisation behaviour, CUDA runtime manual).
_SYNC_COPY = re.compile(r"^(?:cuda|hip|cu|musa|aclrt|cnrt|cn)Memcpy(?!.*Async)(?!.*(?:DtoD|Batch))")
_ASYNC_COPY = re.compile(r"^(?:cuda|hip|cu|musa|aclrt|cnrt|cn)Memcpy.*Async")
_ALLOC = re.compile(
    r"^(?:cuda|hip|musa)(?:Malloc|Free|ExtMalloc|HostAlloc|HostMalloc|HostFree|HostRegister|HostUnregister)(?!.*Async)|"
    r"^cuMem(?:Alloc|Free|HostAlloc|Create|Release|Map|Unmap)(?!.*Async)"
)
_LAUNCH = re.compile(
    _CALL + r".*(?:LaunchKernel|LaunchCooperative|ModuleLaunch|GraphLaunch|LaunchByPtr|LaunchHostFunc|KernelLaunch)|"
    r"^synLaunch|^cn(?:rt)?InvokeKernel"
)
_GRAPH_LAUNCH = re.compile(_CALL + r".*GraphLaunch")
# Between the two a launch is recorded into a graph and does not run (CUDA programming guide, "CUDA Graphs").
_CAPTURE_BEGIN = re.compile(_CALL + r".*StreamBeginCapture")
_CAPTURE_END = re.compile(_CALL + r".*StreamEndCapture")
_NO_SYNC = -1


@dataclass(frozen=True, eq=False)
class NameClasses:
    """One entry per distinct name. ``sync`` is a `SyncKind` or -1; the others tell membership."""

    loader: Bool
    loader_frame: Bool
    compile: Bool
    communication: Bool
    waiting_collective: Bool
    optimizer: Bool
    step_range: Bool
    module: Bool
    launch: Bool
    graph_launch: Bool
    call: Bool
    capture_begin: Bool
    capture_end: Bool
    async_copy: Bool
    copy_with_stream: Bool
    sync: NDArray[np.int8]


def sync_kind_of(name: str) -> int:
    """Return the `SyncKind` of a runtime or driver call that always may block, -1 for any other name.

    An asynchronous copy blocks only with pageable memory, which its device slice tells, not its name.
    """
    if _SYNC_STREAM.match(name):
        return int(SyncKind.STREAM)
    if _SYNC_EVENT.match(name):
        return int(SyncKind.EVENT)
    if _SYNC_DEVICE.match(name):
        return int(SyncKind.DEVICE)
    if _SYNC_COPY.match(name):
        return int(SyncKind.MEMCPY)
    if _ALLOC.match(name):
        return int(SyncKind.ALLOC)
    return _NO_SYNC


def is_launch(name: str) -> bool:
    """Whether a call of this name puts work on the device: a launch or an asynchronous copy."""
    return bool(_LAUNCH.search(name) or _ASYNC_COPY.search(name))


@lru_cache(maxsize=2)
def classify(strings: StringTable) -> NameClasses:
    """Judge all names of a trace (kept for the traces used last)."""
    values = strings.values
    of_first: dict[str, list[int]] = {}
    for i, value in enumerate(values):
        of_first.setdefault(value[:1], []).append(i)

    def candidates(prefixes: Iterable[str]) -> list[int]:
        """Names that begin with the first letter of a prefix, in order."""
        return sorted(i for first in {prefix[:1] for prefix in prefixes} for i in of_first.get(first, ()))

    def starting_with(prefixes: tuple[str, ...]) -> list[int]:
        return [i for i in candidates(prefixes) if values[i].startswith(prefixes)]

    calls = starting_with(_CALL_PREFIXES)

    def where(test: re.Pattern[str], among: Iterable[int]) -> Bool:
        hit = np.zeros(len(values), dtype=bool)
        hit[[i for i in among if test.search(values[i]) is not None]] = True
        return hit

    def starting(*prefixes: str) -> Bool:
        hit = np.zeros(len(values), dtype=bool)
        hit[starting_with(prefixes)] = True
        return hit

    sync = np.full(len(values), _NO_SYNC, dtype=np.int8)
    for i in calls:
        sync[i] = sync_kind_of(values[i])
    # Every name that the pattern knows holds one of these, and looking for them takes a tenth of its time.
    loads = [i for i, value in enumerate(values) if "oad" in value or "compile" in value or "dynamo" in value]
    nexts = [i for i, value in enumerate(values) if ": __next__" in value]
    return NameClasses(
        loader=where(_LOADER_RANGE, starting_with(_LOADER_PREFIXES)),
        loader_frame=where(_LOADER_FRAME, nexts),
        compile=where(_COMPILE, loads),
        communication=starting(*_COMMUNICATION),
        waiting_collective=starting(*_WAITING_COLLECTIVE),
        optimizer=starting("Optimizer.step#"),
        step_range=where(_STEP_RANGE, candidates(_STEP_FIRST)),
        module=starting("nn.Module: "),
        launch=where(_LAUNCH, calls),
        graph_launch=where(_GRAPH_LAUNCH, calls),
        call=starting(*_CALL_PREFIXES),
        capture_begin=where(_CAPTURE_BEGIN, calls),
        capture_end=where(_CAPTURE_END, calls),
        async_copy=where(_ASYNC_COPY, calls),
        copy_with_stream=starting("hipMemcpyWithStream"),
        sync=sync,
    )
