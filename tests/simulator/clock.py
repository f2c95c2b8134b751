"""The bare machine: CPU clocks, device streams, launch queue and blocking. Times are microseconds (float)."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Costs:
    """Host and device costs that a program does not state itself, microseconds."""

    op_scale: float = 1.0  # factor on the host time that programs state for operators
    launch_us: float = 5.0  # host time of one cudaLaunchKernel
    copy_call_us: float = 7.0  # host time of one cudaMemcpyAsync, waits not counted
    sync_call_us: float = 3.0  # host time of one synchronisation that finds its work done
    event_call_us: float = 1.5  # cudaEventRecord, cudaStreamWaitEvent
    latency_us: float = 4.0  # from the launch call's start to the earliest start on an idle stream
    gap_us: float = 1.0  # between two pieces of work queued on one stream
    queue_limit: int = 1024  # pending launches per stream, then a launch blocks


@dataclass
class Work:
    """One piece of device work as it ran."""

    start_us: float
    end_us: float
    stream: int
    device: int


@dataclass
class Recorded:
    """One event of the trace to be: ``tid`` is a thread's name, or ``(device, stream)`` for device work."""

    cat: str
    name: str
    tid: Any
    start_us: float
    dur_us: float
    args: dict[str, Any] = field(default_factory=dict)


class Clock:
    """Clocks of threads and streams; knows how calls block, not what PyTorch calls them."""

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self.now: dict[str, float] = defaultdict(float)  # per thread
        self.tail: dict[tuple[int, int], float] = defaultdict(float)  # (device, stream) -> end of queued work
        self.queued: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)  # when, and end of the work
        self.floor: dict[tuple[int, int], float] = defaultdict(float)  # earliest start after stream waits
        self.pending: dict[tuple[int, int], deque[float]] = defaultdict(lambda: deque(maxlen=costs.queue_limit))

    def room(self, thread: str, queue: tuple[int, int]) -> None:
        """Block the thread until the stream's queue has room for one more launch."""
        ends = self.pending[queue]
        if len(ends) == self.costs.queue_limit and ends[0] > self.now[thread]:
            self.now[thread] = ends[0]

    def queue_work(self, thread: str, us: float, device: int, stream: int, node: int = 0) -> Work:
        """Put work on a stream; it starts when the stream is free and the launch has arrived.

        The work of one graph launch takes one place in the queue: ``node`` is 0 for its first kernel, and elsewhere.
        """
        queue = (device, stream)
        called = self.now[thread]
        start = max(called + self.costs.latency_us, self.floor[queue])
        if self.pending[queue]:
            start = max(start, self.tail[queue] + self.costs.gap_us)
        work = Work(start, start + us, stream, device)
        self.tail[queue] = work.end_us
        self.queued[queue].append((called, work.end_us))
        if node:
            self.pending[queue].pop()
        self.pending[queue].append(work.end_us)
        return work

    def stream_end(self, device: int, stream: int, by_us: float) -> float:
        """End of all work queued on a stream by then, 0 when there is none.

        A thread whose part of the program was played before may have queued work at a later time.
        """
        return next((end for called, end in reversed(self.queued[device, stream]) if called <= by_us), 0.0)

    def device_end(self, device: int, by_us: float) -> float:
        """End of all work queued on a device by then, 0 when there is none."""
        return max((self.stream_end(d, stream, by_us) for d, stream in list(self.queued) if d == device), default=0.0)
