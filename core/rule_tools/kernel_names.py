"""What the names of kernels tell."""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from core.kinds import SliceKind
from core.rule_tools.facts import Facts
from core.rule_tools.name_index import NameIndex
from core.tables import FLAG_COMMUNICATION

# Searched in lower-case names: ignoring case in the pattern makes searching forty times slower.
_GEMM = re.compile(
    r"gemm|gemv|nvjet|cutlass|xmma|wgrad|dgrad|implicit_convolve|convolve|winograd|cudnn.*conv|cijk_|hgemm|flash|fmha|"
    r"conv2d|volta_|turing_|ampere_|sm\d\d_",
)
# newer names (nvjet, wgmma, cutlass 3) are missing from the list of torch-tb-profiler, which then calls them unused
_TENSOR_CORE = re.compile(
    r"h884|s884|h1688|s1688|hmma|i8816|s8816|i16832|16816|s161616|1688gemm|tf32|bf16|nvjet|wgmma|cutlass3x|cutlass_80|"
    r"cutlass_90|cutlass_75_tensorop|tensorop|sm90_xmma|sm80_xmma|sm100_|sm120_|xmma_gemm|xmma_fprop|xmma_dgrad|xmma_wgrad|"
    r"mma_tensor|fp16|_fp8|flash_fwd|flash_bwd|fmha_cutlass|cudnn_.*_sm80_flash|device_kernel|e4m3|e5m2",
)
_PLAIN_FP32 = re.compile(r"sgemm|simt|_fp32_|f32f32_f32|gemmk1|gemv2|sgemv|ffma")
_DOUBLE = re.compile(r"dgemm|<double\b|\bdouble,|dmma|d884|_f64|fp64|\bdtrsm|\bdgemv")
_DOUBLE_WORDS = ("double", "dgemm", "dmma", "d884", "_f64", "fp64", "dtrsm", "dgemv")  # cheap to look for
_COLLECTIVE = re.compile(r"nccl|rccl|all_?reduce|all_?gather|reduce_?scatter")
_LIBRARY = re.compile(r"cudnn|cublas|gemm|cutlass|nvjet|xmma|flash|fmha|cijk_|nccl|rccl|cub::|thrust::|nccldev")


@lru_cache(maxsize=16384)
def is_gemm(name: str) -> bool:
    """A matrix product, a convolution or fused attention."""
    return bool(_GEMM.search(name.lower()))


@lru_cache(maxsize=16384)
def uses_tensor_cores(name: str) -> bool:
    """The name says that the kernel works on tensor cores."""
    return bool(_TENSOR_CORE.search(name.lower()))


@lru_cache(maxsize=16384)
def is_plain_fp32(name: str) -> bool:
    """A matrix product in single precision on the ordinary units."""
    return bool(_PLAIN_FP32.search(name.lower())) and not uses_tensor_cores(name)


@lru_cache(maxsize=16384)
def is_double(name: str) -> bool:
    """A kernel in double precision."""
    low = name.lower()
    return any(word in low for word in _DOUBLE_WORDS) and bool(_DOUBLE.search(low))


@lru_cache(maxsize=16384)
def is_library(name: str) -> bool:
    """A kernel of a library: its launch cannot be changed by the user."""
    return bool(_LIBRARY.search(name.lower()))


def _is_collective(lower: str) -> bool:
    # Every name that the pattern knows holds one of these, and looking for them takes a tenth of its time.
    return ("ccl" in lower or "reduce" in lower or "gather" in lower) and bool(_COLLECTIVE.search(lower))


def kernels_by_name(facts: Facts) -> list[tuple[str, np.ndarray, int]]:
    """Kernels that count, collectives left out, by name: (name, slice ids, summed ns), the longest sum first."""
    held = facts.memo.get("kernels by name")
    if held is None:
        ids = facts.kernels[(facts.trace.slices.flags[facts.kernels] & FLAG_COMMUNICATION) == 0]
        index = NameIndex(facts.trace, ids)
        took = facts.trace.slices.dur_ns
        held = [
            (name, run, int(took[run].sum()))
            for at, name in enumerate(index.names)
            if not _is_collective(name.lower()) and len(run := index.rows((at,)))
        ]
        held.sort(key=lambda item: -item[2])
        facts.memo["kernels by name"] = held
    return held  # type: ignore[no-any-return]


def is_nvidia(facts: Facts) -> bool:
    """The trace is of CUDA, not of ROCm or another accelerator."""
    names = " ".join(d.name for d in facts.trace.meta.devices)
    if re.search(r"AMD|Instinct|Radeon|MTIA|XPU|Ascend", names) or facts.is_rocm:
        return False
    return any(n.startswith(("cuda", "cu")) for n in facts.names_of(SliceKind.RUNTIME, SliceKind.DRIVER))


def compute_major(facts: Facts) -> int | None:
    """Major compute capability of the devices in use, None unknown or mixed."""
    used = set(facts.figures.devices)
    found = {d.compute_major for d in facts.trace.meta.devices if not used or d.index in used}
    return found.pop() if len(found) == 1 else None


def owners(facts: Facts, ids: np.ndarray) -> np.ndarray:
    """Name ids of the innermost ops that launched these kernels, -1 unknown."""
    op = facts.trace.links.op_of[ids]
    result: np.ndarray = np.where(op >= 0, facts.trace.slices.name_id[np.maximum(op, 0)], -1)
    return result
