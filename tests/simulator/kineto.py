"""Events of the simulator in the dialect of Kineto, torch 2.x."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.simulator.clock import Recorded

PID = 4242
_ORIGIN_US = 1_000_000.0
_DEVICE_CATS = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation")


def to_kineto(events: Sequence[Recorded], device_name: str, shapes: bool, header: dict[str, Any]) -> dict[str, Any]:
    """Return the whole document: header, metadata, slices and launch flows."""
    threads = sorted({e.tid for e in events if isinstance(e.tid, str)}, key=lambda name: (name != "main", name))
    tids = {name: PID + position for position, name in enumerate(threads)}
    devices = sorted({e.tid[0] for e in events if not isinstance(e.tid, str)} | {0})
    slices = [_slice(e, tids) for e in events]
    slices.sort(key=lambda e: (e["ts"], -e["dur"]))
    ends = [e["ts"] + e["dur"] for e in slices]
    marks = [{"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": max(ends, default=0.0)}]
    return {
        "schemaVersion": 1,
        "steplens_simulated": True,
        "deviceProperties": [_device(index, device_name) for index in devices],
        "record_shapes": int(shapes),
        "with_stack": int(any(e.cat == "python_function" for e in events)),
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        "displayTimeUnit": "ms",
        **header,
        "traceEvents": [*_metadata(tids, devices), *slices, *_flows(slices), *marks],
        "traceName": "simulated.pt.trace.json",
    }


def _slice(event: Recorded, tids: dict[str, int]) -> dict[str, Any]:
    on_device = not isinstance(event.tid, str)
    pid, tid = event.tid if on_device else (PID, tids[event.tid])
    args = dict(event.args)
    return {
        "ph": "X",
        "cat": event.cat,
        "name": event.name,
        "pid": pid,
        "tid": tid,
        "ts": round(_ORIGIN_US + event.start_us, 3),
        "dur": round(event.dur_us, 3),
        "args": args,
    }


def _flows(slices: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """``ac2g`` arrows from each launch to its first piece of device work, ``fwdbwd`` ones from operator to node."""
    calls = {e["args"]["correlation"]: e for e in slices if e["cat"] == "cuda_runtime"}
    flows: list[dict[str, Any]] = []
    seen: set[int] = set()
    for work in slices:
        correlation = work["args"].get("correlation")
        if work["cat"] not in _DEVICE_CATS or correlation not in calls or correlation in seen:
            continue
        seen.add(correlation)
        flows += _arrow("ac2g", correlation, calls[correlation], work)
    recorded = [e for e in slices if "Sequence number" in e["args"] and not e["name"].startswith("autograd::engine::")]
    forward = {e["args"]["Sequence number"]: e for e in recorded if "Fwd thread id" not in e["args"]}
    for node in recorded:
        sequence = node["args"]["Sequence number"]
        if "Fwd thread id" in node["args"] and sequence in forward:
            flows += _arrow("fwdbwd", sequence, forward[sequence], node)
    return flows


def _arrow(name: str, number: int, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    def flow(phase: str, event: dict[str, Any]) -> dict[str, Any]:
        place = {key: event[key] for key in ("pid", "tid", "ts")}
        return {"ph": phase, "id": number, **place, "cat": name, "name": name}

    return [flow("s", start), flow("f", end) | {"bp": "e"}]


def _metadata(tids: dict[str, int], devices: Sequence[int]) -> list[dict[str, Any]]:
    def meta(name: str, pid: int, tid: int, /, **args: Any) -> dict[str, Any]:
        return {"ph": "M", "name": name, "pid": pid, "tid": tid, "ts": _ORIGIN_US, "args": args}

    rows = [meta("process_name", PID, 0, name="python"), meta("process_labels", PID, 0, labels="CPU")]
    rows += [meta("thread_name", PID, tid, name=f"thread {tid} ({name})") for name, tid in tids.items()]
    for device in devices:
        rows += [
            meta("process_name", device, 0, name="python"),
            meta("process_labels", device, 0, labels=f"GPU {device}"),
        ]
    return rows


def _device(index: int, name: str) -> dict[str, Any]:
    return {
        "id": index,
        "name": name,
        "totalGlobalMem": 23_609_475_072,
        "computeMajor": 8,
        "computeMinor": 6,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerMultiprocessor": 1536,
        "regsPerBlock": 65536,
        "warpSize": 32,
        "sharedMemPerBlock": 49152,
        "numSms": 80,
    }
