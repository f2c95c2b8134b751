"""Arguments of an event as lines of text, the telling ones first."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from core.words import visible
from gui import text

FLOPS = "flops"  # as the launcher writes what torch counted
FIRST = (
    "Input Dims",
    "Input type",
    "Input Strides",
    "Concrete Inputs",
    FLOPS,
    "grid",
    "block",
    "est. achieved occupancy %",
    "blocks per SM",
    "warps per SM",
    "registers per thread",
    "shared memory",
    "bytes",
    "memory bandwidth (GB/s)",
)
MAX_VALUE = 600
# Kineto's python_function names: "folder/train.py(14): weighted_nll" (torch/csrc/autograd/profiler_python.cpp).
_FRAME = re.compile(r"^(?P<file>.+?)\((?P<line>\d+)\): ")


def lines(args: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name and value of each argument; values are cut at `MAX_VALUE` characters."""
    order = [k for k in FIRST if k in args] + [k for k in args if k not in FIRST]
    return [(visible(str(k)), visible(_value(args[k]))) for k in order]


def with_rate(
    told: list[tuple[str, str]], args: Mapping[str, Any], dur_ns: int, on_device: bool
) -> list[tuple[str, str]]:
    """Write counted operations as such, and add how fast they were."""
    counted = args.get(FLOPS)
    if not isinstance(counted, int) or counted <= 0:
        return told
    at = [name for name, _ in told].index(FLOPS)
    rows = [(FLOPS, text.operations(counted)), text.rate_of_operations(counted, dur_ns, on_device)]
    return [*told[:at], *rows, *told[at + 1 :]]


def _value(value: Any) -> str:
    if isinstance(value, str):
        words = value
    elif isinstance(value, float):
        words = f"{value:.6g}"
    else:
        words = json.dumps(value, ensure_ascii=False, default=str)
    return words if len(words) <= MAX_VALUE else words[:MAX_VALUE] + "…"


def frame_place(name: str) -> tuple[str, int] | None:
    """File and line of a Python frame's name (the line of its ``def``); None for a call into C."""
    hit = _FRAME.match(name)
    return (hit["file"], int(hit["line"])) if hit else None
