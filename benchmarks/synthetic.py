"""A trace built straight as tables: one template step, repeated. Any size in a second, nothing to parse."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from core.kinds import SliceKind, TrackKind
from core.strings import StringTable
from core.tables import (
    InstantTable,
    LinkTable,
    MemoryTable,
    ProcessTable,
    SliceTable,
    StepTable,
    ThreadTable,
    TrackTable,
)
from core.trace import Device, ImportReport, Trace, TraceMeta, TraceSource

STEP_NS = 1_000_000
KERNELS = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)",
    "ampere_sgemm_128x64_tn",
    "void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(cudnn::bn_fw_tr_1C11_args<float>)",
)
OPS = ("aten::conv2d", "aten::batch_norm", "aten::relu_", "aten::add_", "aten::linear", "aten::copy_", "aten::sum")


class NoReader:
    """Reader of a trace that was never a file."""

    def read(self, source_id: int, event_start: int, event_bytes: int) -> dict[str, Any]:
        return {}


@dataclass
class _Track:
    """Template of one track: rows (start, dur, name, kind, depth, correlation) of one step."""

    kind: TrackKind
    name: str
    thread: int = -1
    device: int = -1
    stream: int = -1
    rows: list[tuple[int, int, str, int, int, int]] = field(default_factory=list)


def _main_thread(ops: int, ranges: _Track, calls: _Track, python: _Track, stream: _Track) -> None:
    ranges.rows.append((0, STEP_NS - 2_000, "ProfilerStep#", SliceKind.STEP, 0, -1))
    half = STEP_NS // 2
    ranges.rows.append((10_000, half - 20_000, "forward", SliceKind.RANGE, 1, -1))
    ranges.rows.append((half, half - 10_000, "loss and backward", SliceKind.RANGE, 1, -1))
    for depth, frame in enumerate(("<module>", "train(model)", "nn.Module: ResNet_0", "nn.Module: Sequential_1")):
        python.rows.append((depth * 50, STEP_NS - 2_000 - depth * 100, f"train.py({10 + depth}): {frame}" if depth < 2
                            else frame, SliceKind.PYTHON, depth, -1))  # fmt: skip
    pitch = (STEP_NS - 60_000) // ops
    for i in range(ops):
        t = 12_000 + i * pitch
        name = OPS[i % len(OPS)]
        length = int(pitch * 0.9)
        calls.rows.append((t, length, name, SliceKind.CPU_OP, 0, -1))
        calls.rows.append((t + length // 8, length * 3 // 4, name + "_impl", SliceKind.CPU_OP, 1, -1))
        python.rows.append((t - 2, length + 4, f"model.py({i}): layer", SliceKind.PYTHON, 4, -1))
        calls.rows.append((t + length // 4, length // 4, "cudaLaunchKernel", SliceKind.RUNTIME, 2, i))
        device_start = t + pitch
        stream.rows.append((device_start, int(pitch * (0.5 + 0.45 * (i % 3) / 2)), KERNELS[i % 3],
                            SliceKind.KERNEL, 0, i))  # fmt: skip


def _template(ops: int, threads: int) -> list[_Track]:
    ranges = _Track(TrackKind.CPU_RANGES, "main", thread=0)
    calls = _Track(TrackKind.CPU_OPS, "main", thread=0)
    python = _Track(TrackKind.CPU_PYTHON, "main", thread=0)
    stream = _Track(TrackKind.DEVICE_STREAM, "stream 7", device=0, stream=7)
    copies = _Track(TrackKind.DEVICE_STREAM, "stream 20", device=0, stream=20)
    _main_thread(ops, ranges, calls, python, stream)
    for i in range(8):
        copies.rows.append((20_000 + i * 120_000, 30_000, "Memcpy HtoD (Pinned -> Device)", SliceKind.MEMCPY, 0, -1))
    tracks = [ranges, calls, python]
    rng = np.random.default_rng(7)
    for thread in range(1, threads):
        other = _Track(TrackKind.CPU_OPS, f"worker {thread}", thread=thread)
        t = 1_000
        while t < STEP_NS - STEP_NS // ops * 4:
            length = int(rng.integers(STEP_NS // ops // 2, STEP_NS // ops * 3))
            for depth in range(3):
                inset = depth * (length // 10)
                name = OPS[int(rng.integers(len(OPS)))] + ("Backward0" if depth == 0 else "")
                other.rows.append((t + inset, length - 2 * inset, name, SliceKind.CPU_OP, depth, -1))
            t += length + int(rng.integers(50, STEP_NS // ops * 2))
        tracks.append(other)
    return [*tracks, stream, copies]


def make_trace(slices: int, *, ops: int = 60, threads: int = 12) -> Trace:
    """A trace of about ``slices`` slices: a main thread with ranges, ops and Python, workers, two streams."""
    template = _template(ops, threads)
    for track in template:
        track.rows.sort(key=lambda r: (r[0], -r[1]))
    per_step = sum(len(track.rows) for track in template)
    steps = max(1, round(slices / per_step))
    names: dict[str, int] = {}

    def intern(text: str) -> int:
        return names.setdefault(text, len(names))

    columns: dict[str, list[np.ndarray]] = {k: [] for k in ("start", "dur", "name", "kind", "track", "depth", "parent",
                                                            "subtree", "corr")}  # fmt: skip
    first, bounds = 0, []
    offsets = np.arange(steps, dtype=np.int64)
    for number, track in enumerate(template):
        n = len(track.rows)
        start, dur, kind, depth, corr = (np.array([r[i] for r in track.rows], np.int64) for i in (0, 1, 3, 4, 5))
        name = np.array([intern(r[2]) for r in track.rows], np.int64)
        parent, subtree = _nest(depth)
        shift = np.repeat(offsets * n + first, n)
        columns["start"].append(np.tile(start, steps) + np.repeat(offsets * STEP_NS, n))
        columns["dur"].append(np.tile(dur, steps))
        columns["name"].append(np.tile(name, steps))
        columns["kind"].append(np.tile(kind, steps))
        columns["depth"].append(np.tile(depth, steps))
        columns["track"].append(np.full(n * steps, number))
        columns["parent"].append(np.where(np.tile(parent, steps) < 0, -1, np.tile(parent, steps) + shift))
        columns["subtree"].append(np.tile(subtree, steps) + shift)
        columns["corr"].append(
            np.where(np.tile(corr, steps) < 0, -1, np.tile(corr, steps) + np.repeat(offsets * ops, n))
        )
        bounds.append((first, first + n * steps))
        first += n * steps
    return _bundle(template, {k: np.concatenate(v) for k, v in columns.items()}, bounds, names, steps, threads)


def _nest(depth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    parent, subtree, stack = np.full(len(depth), -1), np.arange(1, len(depth) + 1), []
    for i, d in enumerate(depth.tolist()):
        while len(stack) > d:
            stack.pop()
        parent[i] = stack[-1] if stack else -1
        for above in stack:
            subtree[above] = i + 1
        stack.append(i)
    return parent, subtree


def _bundle(
    template: list[_Track],
    c: dict[str, np.ndarray],
    bounds: list[tuple[int, int]],
    names: dict[str, int],
    steps: int,
    threads: int,
) -> Trace:
    n = len(c["start"])
    labels = {t.name: names.setdefault(t.name, len(names)) for t in template}
    for extra in ("python", "GPU 0"):
        names.setdefault(extra, len(names))

    def i32(values: Any) -> np.ndarray:
        return np.asarray(values, np.int32)

    slices = SliceTable(
        c["start"], c["dur"], i32(c["name"]), c["kind"].astype(np.uint8), i32(c["track"]), i32(c["depth"]),
        i32(c["parent"]), i32(c["subtree"]), c["corr"], np.full(n, -1, np.int64), np.full(n, -1, np.int64),
        np.zeros(n, np.uint8), np.zeros(n, np.uint8), np.zeros(n, np.uint8), np.full(n, -1, np.int64),
        np.zeros(n, np.int32),
    )  # fmt: skip
    tracks = TrackTable(
        np.array([t.kind for t in template], np.uint8), i32([labels[t.name] for t in template]),
        i32([0 if t.device < 0 else 1 for t in template]), i32([t.thread for t in template]),
        i32([t.device for t in template]), np.array([t.stream for t in template], np.int64),
        i32([a for a, _ in bounds]), i32([b for _, b in bounds]),
        i32([1 + max(r[4] for r in t.rows) for t in template]),
    )  # fmt: skip
    ids = np.flatnonzero(c["kind"] == SliceKind.STEP)
    step_start = c["start"][ids]
    step_table = StepTable(
        step_start, step_start + c["dur"][ids], np.arange(steps, dtype=np.int64), i32(c["name"][ids]), i32(ids),
        i32(np.zeros(steps)), np.zeros(steps, np.bool_),
    )  # fmt: skip
    calls = np.flatnonzero(c["kind"] == SliceKind.RUNTIME)
    work = np.flatnonzero(c["kind"] == SliceKind.KERNEL)
    launch_of, op_of = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    launch_of[work] = calls  # both are in the order of their correlation ids
    op_of[calls] = c["parent"][calls]
    op_of[work] = c["parent"][calls]
    none = i32([])
    links = LinkTable(launch_of, i32(work), i32(calls), op_of, none, none, none)
    e64, ones = np.zeros(0, np.int64), i32(np.zeros(threads))
    times = np.arange(steps * 20, dtype=np.int64) * (STEP_NS // 20)
    level = ((np.sin(np.arange(len(times)) / 3) + 1.3) * 1e9).astype(np.int64)
    zeros = np.zeros(len(times), np.int64)
    held = np.full(len(times), 3_000_000_000)
    memory = MemoryTable(times, i32(zeros), zeros, zeros.copy(), level, held, i32(zeros))
    thread_names = i32([labels.get("main" if h == 0 else f"worker {h}", -1) for h in range(threads)])
    return Trace(
        (TraceSource(Path("synthetic.json"), 0, 0, 0),), StringTable(names), slices, tracks,
        ThreadTable(ones, tuple(str(100 + h) for h in range(threads)), thread_names,
                    np.arange(threads) == 0),
        ProcessTable(i32([0, 0]), ("4242", "0"), i32([names["python"], names["GPU 0"]]), i32([-1, -1]), i32([-1, 0])),
        step_table, links, memory, InstantTable(e64, none, none, none, e64, none), (),
        TraceMeta(devices=(Device(0, "Synthetic GPU"),)), ImportReport(n, n), NoReader(),
    )  # fmt: skip
