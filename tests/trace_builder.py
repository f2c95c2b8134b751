"""Small traces in a few lines: a chain of calls becomes Kineto's JSON, and with `build` a `Trace`.

All times are microseconds from the start; `origin_us` is added when the JSON is written.

>>> trace = (
...     TraceBuilder()
...     .step(1, 0, 100)
...     .op("aten::mm", 10, 30)
...     .launch("gemm", at=15, call=5, start=40, dur=20)
...     .build()
... )
"""

from __future__ import annotations

import tempfile
from itertools import count
from pathlib import Path
from typing import Any

import orjson

from core.importing import open_trace
from core.trace import Trace


class TraceBuilder:
    """Collects events.

    Parameters
    ----------
    pid, tid
        Process and thread that CPU events get when they name no other.
    gpu
        Name of the GPU in the header; None writes no ``deviceProperties``.
    origin_us
        Added to every time.
    header
        More top-level keys (``with_stack=1``, ``distributedInfo={...}``).
    """

    def __init__(
        self, pid: int = 100, tid: int = 100, gpu: str | None = "Test GPU", origin_us: float = 1_000_000, **header: Any
    ) -> None:
        self.pid, self.tid, self.origin_us = pid, tid, origin_us
        self.events: list[dict[str, Any]] = []
        self.header: dict[str, Any] = {"schemaVersion": 1}
        if gpu is not None:
            self.header["deviceProperties"] = [
                {"id": 0, "name": gpu, "totalGlobalMem": 24 << 30, "computeMajor": 8, "computeMinor": 6, "numSms": 80}
            ]
        self.header.update(header)
        self._correlation = count(1000)
        self._external = count(1)
        self._flow = count(1)

    def event(self, **fields: Any) -> TraceBuilder:
        """Any event, as it is (its ``ts`` gets the origin added when it is a number)."""
        if isinstance(fields.get("ts"), (int, float)):
            fields["ts"] = fields["ts"] + self.origin_us
        self.events.append(fields)
        return self

    def slice(
        self, cat: str, name: str, ts: float, dur: float | None, tid: Any = None, pid: Any = None, **args: Any
    ) -> TraceBuilder:
        """One ``X`` event; underscores in argument names become blanks (``External_id``)."""
        fields: dict[str, Any] = {"ph": "X", "cat": cat, "name": name, "ts": ts}
        fields["pid"] = self.pid if pid is None else pid
        fields["tid"] = self.tid if tid is None else tid
        if dur is not None:
            fields["dur"] = dur
        fields["args"] = {key.replace("_", " "): value for key, value in args.items() if value is not None}
        return self.event(**fields)

    def op(self, name: str, ts: float, dur: float, tid: Any = None, **args: Any) -> TraceBuilder:
        """CPU operator; ``Input_Dims=[[2, 3]]`` gives shapes."""
        args.setdefault("External_id", next(self._external))
        return self.slice("cpu_op", name, ts, dur, tid, **args)

    def range(self, name: str, ts: float, dur: float, tid: Any = None, **args: Any) -> TraceBuilder:
        """record_function or user annotation."""
        return self.slice("user_annotation", name, ts, dur, tid, **args)

    def step(self, number: int, ts: float, dur: float, tid: Any = None) -> TraceBuilder:
        """``ProfilerStep#number``."""
        return self.slice("user_annotation", f"ProfilerStep#{number}", ts, dur, tid)

    def python(
        self, name: str, ts: float, dur: float, tid: Any = None, id: int | None = None, parent: int | None = None
    ) -> TraceBuilder:  # noqa: A002
        """Python frame (``train.py(14): loss``) or call into C (``<built-in method item of Tensor>``)."""
        return self.slice("python_function", name, ts, dur, tid, Python_id=id, Python_parent_id=parent)

    def runtime(
        self, name: str, ts: float, dur: float, correlation: int | None = None, tid: Any = None, **args: Any
    ) -> TraceBuilder:
        """Runtime API call."""
        return self.slice("cuda_runtime", name, ts, dur, tid, correlation=correlation, **args)

    def driver(self, name: str, ts: float, dur: float, correlation: int | None = None, tid: Any = None) -> TraceBuilder:
        """Driver API call."""
        return self.slice("cuda_driver", name, ts, dur, tid, correlation=correlation)

    def kernel(
        self,
        name: str,
        ts: float,
        dur: float,
        correlation: int | None = None,
        stream: int = 7,
        device: int = 0,
        **args: Any,
    ) -> TraceBuilder:
        """Kernel; ``grid=[8, 1, 1]`` and the like pass through."""
        return self.slice(
            "kernel", name, ts, dur, stream, device, device=device, stream=stream, correlation=correlation, **args
        )

    def memcpy(
        self,
        kind: str,
        ts: float,
        dur: float,
        correlation: int | None = None,
        bytes: int = 4,
        stream: int = 7,
        device: int = 0,
    ) -> TraceBuilder:  # noqa: A002
        """Copy on the device: kind such as ``"HtoD (Pageable -> Device)"``."""
        return self.slice(
            "gpu_memcpy",
            f"Memcpy {kind}",
            ts,
            dur,
            stream,
            device,
            device=device,
            stream=stream,
            correlation=correlation,
            bytes=bytes,
        )

    def memset(
        self, ts: float, dur: float, correlation: int | None = None, bytes: int = 4, stream: int = 7, device: int = 0
    ) -> TraceBuilder:  # noqa: A002
        """Memset on the device."""
        return self.slice(
            "gpu_memset",
            "Memset (Device)",
            ts,
            dur,
            stream,
            device,
            device=device,
            stream=stream,
            correlation=correlation,
            bytes=bytes,
        )

    def device_range(self, name: str, ts: float, dur: float, stream: int = 7, device: int = 0) -> TraceBuilder:
        """``gpu_user_annotation``."""
        return self.slice("gpu_user_annotation", name, ts, dur, stream, device)

    def device_sync(self, name: str, ts: float, dur: float, stream: int = 7, device: int = 0) -> TraceBuilder:
        """``cuda_sync`` record."""
        return self.slice("cuda_sync", name, ts, dur, stream, device, device=device, stream=stream)

    def launch(
        self,
        kernel: str,
        at: float,
        call: float,
        start: float,
        dur: float,
        tid: Any = None,
        stream: int = 7,
        device: int = 0,
        **args: Any,
    ) -> TraceBuilder:
        """``cudaLaunchKernel`` at ``at`` for ``call`` us, its kernel at ``start`` for ``dur`` us."""
        correlation = next(self._correlation)
        self.runtime("cudaLaunchKernel", at, call, correlation, tid)
        return self.kernel(kernel, start, dur, correlation, stream, device, **args)

    def copy(
        self,
        kind: str,
        at: float,
        call: float,
        start: float,
        dur: float,
        bytes: int = 4,
        tid: Any = None,
        stream: int = 7,
        name: str = "cudaMemcpyAsync",
    ) -> TraceBuilder:  # noqa: A002
        """A copy call and its copy on the device."""
        correlation = next(self._correlation)
        self.runtime(name, at, call, correlation, tid)
        return self.memcpy(kind, start, dur, correlation, bytes, stream)

    def memory(
        self,
        ts: float,
        bytes: int,
        allocated: int | None = None,
        reserved: int | None = None,
        device: int = 0,
        address: int = 4096,
        tid: Any = None,
    ) -> TraceBuilder:  # noqa: A002
        """``[memory]`` instant; device -1 is the CPU."""
        args = {"Device Type": 0 if device < 0 else 1, "Device Id": device, "Addr": address, "Bytes": bytes}
        if allocated is not None:
            args["Total Allocated"] = allocated
        if reserved is not None:
            args["Total Reserved"] = reserved
        tid = self.tid if tid is None else tid
        return self.event(
            ph="i", cat="cpu_instant_event", s="t", name="[memory]", pid=self.pid, tid=tid, ts=ts, args=args
        )

    def instant(self, name: str, ts: float, tid: Any = None) -> TraceBuilder:
        """Any other instant."""
        return self.event(ph="i", s="g", name=name, pid=self.pid, tid=self.tid if tid is None else tid, ts=ts)

    def counter(self, name: str, ts: float, **values: float) -> TraceBuilder:
        """Counter values."""
        return self.event(ph="C", name=name, pid=self.pid, ts=ts, args=values)

    def flow(
        self, cat: str, start: float, start_tid: Any, end: float, end_tid: Any, end_pid: Any = None, id: Any = None
    ) -> TraceBuilder:  # noqa: A002
        """An arrow between two slices, each touched at its start."""
        flow_id = next(self._flow) if id is None else id
        self.event(ph="s", id=flow_id, cat=cat, name=cat, pid=self.pid, tid=start_tid, ts=start)
        end_pid = self.pid if end_pid is None else end_pid
        return self.event(ph="f", bp="e", id=flow_id, cat=cat, name=cat, pid=end_pid, tid=end_tid, ts=end)

    def autograd(self, start: float, start_tid: Any, end: float, end_tid: Any) -> TraceBuilder:
        """A forward to backward arrow."""
        return self.flow("fwdbwd", start, start_tid, end, end_tid)

    def name_thread(self, name: str, tid: Any = None, pid: Any = None) -> TraceBuilder:
        """Label of a thread."""
        return self._metadata("thread_name", name, self.tid if tid is None else tid, pid)

    def name_process(self, name: str, pid: Any = None) -> TraceBuilder:
        """Label of a process."""
        return self._metadata("process_name", name, 0, pid)

    def _metadata(self, what: str, name: str, tid: Any, pid: Any) -> TraceBuilder:
        pid = self.pid if pid is None else pid
        self.events.append({"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}})
        return self

    def to_dict(self) -> dict[str, Any]:
        """The whole trace as Kineto writes it."""
        return {**self.header, "traceEvents": self.events}

    def to_json(self) -> bytes:
        """The trace as the bytes of a file."""
        return orjson.dumps(self.to_dict())

    def write(self, path: Path) -> Path:
        """Write the trace to a file and return its path."""
        path.write_bytes(self.to_json())
        return path

    def build(self, path: Path | None = None) -> Trace:
        """Open the trace through the real loader (from ``path``, or a file that is gone afterwards)."""
        if path is not None:
            return open_trace(self.write(path))
        with tempfile.TemporaryDirectory(prefix="trace-") as folder:
            return open_trace(self.write(Path(folder) / "trace.json"))


def rows(trace: Trace, name: str) -> list[int]:
    """Slice ids of a name, in table order."""
    wanted = trace.strings.id_of(name)
    return [i for i, name_id in enumerate(trace.slices.name_id.tolist()) if name_id == wanted]
