"""What a program is written with: PyTorch's operators, copies, waits and annotations on top of `Clock`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from tests.simulator.clock import Clock, Costs, Recorded, Work

Event = Recorded
MAIN = "main"
DTOH, HTOD, DTOD = "DtoH", "HtoD", "DtoD"
_CALL_ENDS_AFTER_US = 1.0  # host time between the end of a copy and the return of the call that waited for it


class Machine:
    """One process with its threads and devices. Every method advances the clock of the current thread.

    Parameters
    ----------
    costs
        Costs that a program does not state itself.
    fixes
        Names of the faults that this run goes without; see `fixed`.
    stacks
        Record ``python_function`` events for `frame` and `builtin`.
    """

    def __init__(self, costs: Costs | None = None, fixes: Collection[str] = (), stacks: bool = True) -> None:
        self.costs = costs or Costs()
        self.clock = Clock(self.costs)
        self.recording = False
        self.recorded: list[Recorded] = []
        self.syncs: list[dict[str, Any]] = []
        self.step_number = -1
        self.thread_name = MAIN
        self._fixes = frozenset(fixes)
        self._stacks = stacks
        self._correlation = 0
        self._external = 0
        self._sequence = 0
        self._ops: dict[str, list[int]] = {}
        self._python: list[int] = []
        self._python_count = 0
        self._loader_ready: list[float] = []
        self._loader_taken: list[float] = []
        self.kept: dict[str, Any] = {}  # what a program remembers from step to step (events, counts)

    # -- asking -------------------------------------------------------------------------------------------------

    @property
    def now_us(self) -> float:
        """Time on the current thread."""
        return self.clock.now[self.thread_name]

    def fixed(self, name: str) -> bool:
        """Whether this run goes without the fault of that name."""
        return name in self._fixes

    # -- host ---------------------------------------------------------------------------------------------------

    def cpu(self, us: float) -> None:
        """Plain host work that no event shows."""
        self.clock.now[self.thread_name] += us

    @contextmanager
    def op(self, name: str, us: float = 2.0, after_us: float = 1.0, **args: Any) -> Iterator[None]:
        """An operator: ``us`` of its own before what is inside, ``after_us`` behind it. ``args`` go to the event,
        e.g. ``**{"Input Dims": [[64, 3]]}``.
        """
        self._external += 1
        start, external = self.now_us, self._external
        stack = self._ops.setdefault(self.thread_name, [])
        stack.append(external)
        self.cpu(us * self.costs.op_scale)
        yield
        self.cpu(after_us * self.costs.op_scale)
        stack.pop()
        self._record("cpu_op", name, start, {"External id": external, "Ev Idx": external, **args})

    @contextmanager
    def range(self, name: str, us: float = 0.5) -> Iterator[None]:
        """A ``record_function`` range."""
        start = self.now_us
        self.cpu(us)
        yield
        self._record("user_annotation", name, start, {"Ev Idx": self._external})

    @contextmanager
    def frame(self, file: str, line: int, function: str, us: float = 0.0) -> Iterator[None]:
        """A Python frame ``file(line): function``; the line is that of the ``def``, as Kineto writes it."""
        with self._python_event(f"{file}({line}): {function}"):
            self.cpu(us)
            yield

    @contextmanager
    def builtin(self, name: str) -> Iterator[None]:
        """A call into C, e.g. ``m.builtin("method item of Tensor object at 0x7f3a")``."""
        with self._python_event(f"<built-in {name}>"):
            yield

    @contextmanager
    def module(self, name: str) -> Iterator[None]:
        """An ``nn.Module`` call, e.g. ``m.module("Linear_0")``."""
        with self._python_event(f"nn.Module: {name}", **{"Python module id": 0}):
            yield

    @contextmanager
    def thread(self, name: str, handoff_us: float = 10.0) -> Iterator[None]:
        """Run on another thread while the current one waits for it, as ``loss.backward()`` does."""
        caller, stack = self.thread_name, self._python
        self.clock.now[name] = max(self.clock.now[name], self.now_us + handoff_us)
        self.thread_name, self._python = name, []
        yield
        self.thread_name, self._python = caller, stack
        self.clock.now[caller] = self.clock.now[name] + handoff_us

    @contextmanager
    def background(self, name: str) -> Iterator[None]:
        """Run on another thread that nobody waits for (see `join`)."""
        caller, stack = self.thread_name, self._python
        self.clock.now[name] = max(self.clock.now[name], self.now_us)
        self.thread_name, self._python = name, []
        yield
        self.thread_name, self._python = caller, stack

    def join(self, name: str) -> None:
        """Wait on the current thread for another one."""
        self.clock.now[self.thread_name] = max(self.now_us, self.clock.now[name])

    def loader(self, us: float, workers: int = 0, prefetch: int = 2, take_us: float = 30.0) -> None:
        """``next()`` of a DataLoader whose batches take ``us`` each to make: in this thread without workers, else in
        processes that the trace does not show, ``prefetch`` batches ahead each.
        """
        kind = "_MultiProcessingDataLoaderIter" if workers else "_SingleProcessDataLoaderIter"
        with self.range(f"enumerate(DataLoader)#{kind}.__next__"):
            if not workers:
                self.cpu(us)
                return
            number, ahead = len(self._loader_ready), workers * prefetch
            asked = self._loader_taken[number - ahead] if number >= ahead else 0.0
            worker_free = self._loader_ready[number - workers] if number >= workers else 0.0
            self._loader_ready.append(max(asked, worker_free) + us)
            self.cpu(max(0.0, self._loader_ready[number] - self.now_us) + take_us)
            self._loader_taken.append(self.now_us)

    # -- device work --------------------------------------------------------------------------------------------

    def kernel(
        self,
        us: float,
        name: str = "void at::native::vectorized_elementwise_kernel<4>(int)",
        stream: int = 7,
        device: int = 0,
        launch_us: float | None = None,
        call: str = "cudaLaunchKernel",
        **args: Any,
    ) -> Work:
        """Launch one kernel."""
        start = self.now_us
        self.clock.room(self.thread_name, (device, stream))
        correlation = self._next_correlation()
        work = self.clock.queue_work(self.thread_name, us, device, stream)
        self.cpu(self.costs.launch_us if launch_us is None else launch_us)
        self._record_call(call, start, correlation)
        grid = {"grid": [64, 1, 1], "block": [128, 1, 1], "registers per thread": 32, "shared memory": 0}
        self._record_work("kernel", name, work, correlation, {**grid, **args})
        return work

    def kernel_op(
        self,
        op: str,
        us: float,
        kernel: str | None = None,
        stream: int = 7,
        device: int = 0,
        host_us: float = 8.0,
        **args: Any,
    ) -> Work:
        """An operator that launches one kernel; ``host_us`` is the operator's own time (the launch comes on top)."""
        with self.op(op, us=host_us * 0.75, after_us=host_us * 0.25, **args):
            return self.kernel(us, kernel or f"void {op.replace('aten::', 'at_')}_kernel<float>(int)", stream, device)

    def recorded_op(self, op: str, us: float, **options: Any) -> int:
        """As `kernel_op`, for an operator that autograd records; returns its sequence number (see `node`)."""
        self._sequence += 1
        self.kernel_op(op, us, **options, **{"Sequence number": self._sequence})
        return self._sequence

    @contextmanager
    def node(self, name: str, sequence: int, us: float = 1.0, sum_us: float = 0.0) -> Iterator[None]:
        """A node of the backward pass (``ExpBackward0``): that of the operator with this sequence number.

        ``sum_us``: afterwards the engine adds its result to a gradient already there, on the device for so long.
        """
        args = {"Sequence number": sequence, "Fwd thread id": 1}
        with self.op(f"autograd::engine::evaluate_function: {name}", us, **args):
            with self.op(name, us, **args):
                yield
            if sum_us:
                self.kernel_op("aten::add", sum_us)

    def graph(self, kernels_us: list[float], stream: int = 7, device: int = 0, launch_us: float = 20.0) -> None:
        """One ``cudaGraphLaunch`` that owns many kernels."""
        start, correlation = self.now_us, self._next_correlation()
        self.clock.room(self.thread_name, (device, stream))
        for node, us in enumerate(kernels_us):
            work = self.clock.queue_work(self.thread_name, us, device, stream, node)
            self._record_work(
                "kernel", f"graph_kernel_{node % 7}", work, correlation, {"graph id": 1, "graph node id": node}
            )
        self.cpu(launch_us)
        self._record_call("cudaGraphLaunch", start, correlation)

    def memset(self, us: float = 2.0, nbytes: int = 4096, stream: int = 7, device: int = 0) -> Work:
        """``cudaMemsetAsync``."""
        start, correlation = self.now_us, self._next_correlation()
        work = self.clock.queue_work(self.thread_name, us, device, stream)
        self.cpu(self.costs.launch_us)
        self._record_call("cudaMemsetAsync", start, correlation)
        self._record_work("gpu_memset", "Memset (Device)", work, correlation, {"bytes": nbytes})
        return work

    def copy(
        self,
        direction: str,
        nbytes: int,
        us: float | None = None,
        pinned: bool = False,
        blocking: bool = True,
        stream: int = 7,
        device: int = 0,
        tag: str = "",
    ) -> Work:
        """``cudaMemcpyAsync`` and, when ``blocking`` and not pageable DtoH, the ``cudaStreamSynchronize`` behind it.

        A pageable copy blocks in the call itself whatever ``blocking`` says (HtoD: drains the stream first).
        """
        duration = max(1.5, nbytes / 12_000) if us is None else us
        start, correlation = self.now_us, self._next_correlation()
        self.clock.room(self.thread_name, (device, stream))
        work = self.clock.queue_work(self.thread_name, duration, device, stream)
        side = "Pinned" if pinned else "Pageable"
        label = {HTOD: f"{side} -> Device", DTOH: f"Device -> {side}", DTOD: "Device -> Device"}[direction]
        self.cpu(self.costs.copy_call_us)
        waits = not pinned and direction != DTOD
        if waits:
            self._wait_until(work.end_us, "cudaMemcpyAsync", start, tag, _CALL_ENDS_AFTER_US)
        self._record_call("cudaMemcpyAsync", start, correlation)
        self._record_work(
            "gpu_memcpy",
            f"Memcpy {direction} ({label})",
            work,
            correlation,
            {"bytes": nbytes, "memory bandwidth (GB/s)": nbytes / duration / 1000},
        )
        if blocking and direction != DTOD:
            self.stream_synchronize(stream, device, tag=tag)
        return work

    # -- waits --------------------------------------------------------------------------------------------------

    def stream_synchronize(self, stream: int = 7, device: int = 0, tag: str = "") -> None:
        """``cudaStreamSynchronize``."""
        self._synchronize("cudaStreamSynchronize", self.clock.stream_end(device, stream, self.now_us), tag)

    def device_synchronize(self, device: int = 0, tag: str = "") -> None:
        """``torch.cuda.synchronize()``."""
        self._synchronize("cudaDeviceSynchronize", self.clock.device_end(device, self.now_us), tag)

    def event_record(self, stream: int = 7, device: int = 0) -> float:
        """``cudaEventRecord``; the returned event is the time at which the stream reaches it."""
        start = self.now_us
        self.cpu(self.costs.event_call_us)
        self._record_call("cudaEventRecord", start, self._next_correlation())
        return self.clock.stream_end(device, stream, start)

    def stream_wait(self, event: float, stream: int, device: int = 0) -> None:
        """``cudaStreamWaitEvent``: later work of the stream starts after the event."""
        start = self.now_us
        self.cpu(self.costs.event_call_us)
        self._record_call("cudaStreamWaitEvent", start, self._next_correlation())
        queue = (device, stream)
        self.clock.floor[queue] = max(self.clock.floor[queue], event)

    def event_synchronize(self, event: float, tag: str = "") -> None:
        """``cudaEventSynchronize``."""
        self._synchronize("cudaEventSynchronize", event, tag)

    def malloc(self, us: float = 100.0) -> None:
        """``cudaMalloc`` in mid-step: costs host time."""
        start = self.now_us
        self.cpu(us)
        self._record_call("cudaMalloc", start, self._next_correlation())

    def free(self, us: float = 50.0, device: int = 0, tag: str = "") -> None:
        """``cudaFree``: waits for the whole device."""
        start = self.now_us
        self._wait_until(self.clock.device_end(device, start), "cudaFree", start, tag, us)
        self._record_call("cudaFree", start, self._next_correlation())

    # -- the usual phrases --------------------------------------------------------------------------------------

    def item(self, us: float = 1.5, pinned: bool = False, tag: str = "", stream: int = 7) -> None:
        """``tensor.item()``; ``pinned`` as newer torch does (the wait is then in the stream synchronisation)."""
        with self.op("aten::item", us=1.0), self.op("aten::_local_scalar_dense", us=2.0):
            self.copy(DTOH, 4, us, pinned=pinned, stream=stream, tag=tag)

    def is_nonzero(self, us: float = 1.5, pinned: bool = False, tag: str = "") -> None:
        """``if tensor:`` / ``assert tensor``."""
        with self.op("aten::is_nonzero", us=1.0):
            self.item(us, pinned, tag)

    def to_device(
        self,
        nbytes: int,
        us: float | None = None,
        pinned: bool = False,
        non_blocking: bool = False,
        stream: int = 7,
        tag: str = "",
    ) -> None:
        """``tensor.to("cuda")``."""
        with self.op("aten::to", us=1.0), self.op("aten::_to_copy", us=2.0), self.op("aten::copy_", us=3.0):
            self.copy(HTOD, nbytes, us, pinned, not non_blocking, stream, tag=tag)

    def to_host(
        self, nbytes: int, us: float | None = None, pinned: bool = False, non_blocking: bool = False, tag: str = ""
    ) -> None:
        """``tensor.cpu()``."""
        with self.op("aten::to", us=1.0), self.op("aten::_to_copy", us=2.0), self.op("aten::copy_", us=3.0):
            self.copy(DTOH, nbytes, us, pinned, not non_blocking, tag=tag)

    # -- recording ----------------------------------------------------------------------------------------------

    def _synchronize(self, call: str, until_us: float, tag: str) -> None:
        start = self.now_us
        self._wait_until(until_us, call, start, tag, self.costs.sync_call_us)
        self._record_call(call, start, self._next_correlation())

    def _wait_until(self, until_us: float, call: str, start_us: float, tag: str, after_us: float) -> None:
        wait = max(0.0, until_us - self.now_us)
        self.cpu(wait + after_us)
        if self.recording:
            inside = max(0.0, until_us - start_us)
            self.syncs.append(
                {
                    "call": call,
                    "start_us": start_us,
                    "dur_us": self.now_us - start_us,
                    "wait_us": min(inside, self.now_us - start_us),
                    "step": self.step_number,
                    "tag": tag,
                }
            )

    def _next_correlation(self) -> int:
        self._correlation += 1
        return self._correlation

    @contextmanager
    def _python_event(self, name: str, **args: Any) -> Iterator[None]:
        self._python_count += 1
        number, start, stack = self._python_count, self.now_us, self._python
        parent = stack[-1] if stack else None
        stack.append(number)
        yield
        stack.pop()
        if self._stacks:
            ids = {"Python id": number, "Python parent id": parent, "Ev Idx": self._external}
            self._record("python_function", name, start, {**ids, **args})

    def _record(self, cat: str, name: str, start_us: float, args: dict[str, Any]) -> None:
        if self.recording:
            self.recorded.append(Recorded(cat, name, self.thread_name, start_us, self.now_us - start_us, args))

    def _record_call(self, call: str, start_us: float, correlation: int) -> None:
        stack = self._ops.get(self.thread_name)
        args: dict[str, Any] = {"External id": stack[-1]} if stack else {}
        self._record("cuda_runtime", call, start_us, {**args, "cbid": 211, "correlation": correlation})

    def _record_work(self, cat: str, name: str, work: Work, correlation: int, args: dict[str, Any]) -> None:
        if not self.recording:
            return
        stack = self._ops.get(self.thread_name)
        ids: dict[str, Any] = {"External id": stack[-1]} if stack else {}
        ids |= {"device": work.device, "context": 1, "stream": work.stream, "correlation": correlation}
        place = (work.device, work.stream)
        self.recorded.append(Recorded(cat, name, place, work.start_us, work.end_us - work.start_us, {**ids, **args}))
