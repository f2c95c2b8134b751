"""A small trace is read and diagnosed while nobody waits, so that the first real one finds everything in place.

Modules that libraries import late, patterns that are compiled at first use, and tables of names are made by it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson

from core.analysis import analyze
from core.importing.assemble import assemble
from core.importing.columns import EventColumns
from core.importing.gather import Gathering
from core.importing.pieces import decode_piece
from core.trace import Trace, TraceSource

STEPS, STEP_US = 4, 2_000


def rehearse() -> None:
    """Read and diagnose a made-up trace; what comes of it is dropped."""
    _ = analyze(rehearsal_trace())


def rehearsal_trace() -> Trace:
    """Made-up trace of a few steps: Python frames, operators, launches, a copy that waits, kernels, memory."""
    texts = [orjson.dumps(event) for event in _events()]
    half = len(texts) // 2
    gathering = Gathering()
    for part in (texts[:half], texts[half:]):
        gathering.add(decode_piece(b",".join(part), 0).columns)
    columns = gathering.finish()
    assert isinstance(columns, EventColumns)
    header = {"deviceProperties": [{"id": 0, "name": "GPU", "totalGlobalMem": 1 << 34}], "with_stack": 1}
    source = TraceSource(Path(os.devnull), 0, 0, 0)
    return assemble(columns, header, source, _NoEvents())


class _NoEvents:
    """There is no file to read more from."""

    def read(self, source_id: int, event_start: int, event_bytes: int) -> dict[str, Any]:
        del source_id, event_start, event_bytes
        return {}


def _events() -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []

    def add(cat: str, name: str, at: float, dur: float, pid: int = 1, tid: int = 1, **args: Any) -> None:
        args = {key.replace("_", " "): value for key, value in args.items()}
        out.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": at, "dur": dur, "args": args})

    for step in range(STEPS):
        at, number = 1_000.0 + STEP_US * step, 10 * step + 10
        add("user_annotation", f"ProfilerStep#{step}", at, STEP_US - 10)
        add("python_function", "train.py(10): train", at + 1, 1_900, Python_id=number)
        add("cpu_op", "aten::linear", at + 10, 300, External_id=number)
        add("cpu_op", "aten::addmm", at + 20, 250, External_id=number + 1)
        add("cuda_runtime", "cudaLaunchKernel", at + 30, 20, correlation=number, External_id=number + 1)
        add("kernel", "sgemm_128x64", at + 60, 400, 0, 7, device=0, stream=7, correlation=number)
        add("cpu_op", "aten::copy_", at + 400, 800, External_id=number + 2)
        add("cuda_runtime", "cudaMemcpyAsync", at + 410, 780, correlation=number + 2, External_id=number + 2)
        name = "Memcpy DtoH (Device -> Pageable)"
        add("gpu_memcpy", name, at + 1_100, 50, 0, 7, device=0, stream=7, correlation=number + 2, bytes=4)
        for phase, when, pid, tid in (("s", at + 30, 1, 1), ("f", at + 60, 0, 7)):
            arrow = {"ph": phase, "cat": "ac2g", "name": "ac2g", "id": number, "ts": when, "pid": pid, "tid": tid}
            out.append({**arrow, "bp": "e"} if phase == "f" else arrow)
        sizes = {"Device Type": 1, "Device Id": 0, "Addr": 4096, "Bytes": 512, "Total Allocated": 512 * number}
        memory = {
            "ph": "i",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "ts": at + 25,
            "pid": 1,
            "tid": 1,
            "s": "t",
        }
        out.append({**memory, "args": sizes})
    return out
