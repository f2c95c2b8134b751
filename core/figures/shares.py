"""Shares of each device, stream and thread, where one figure for all of them hides what differs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.device_words import device_word
from core.figures.lookup import RENUMBERED, view_of
from core.figures.model import Figures
from core.intervals import union
from core.trace import Trace


@dataclass(frozen=True)
class StreamShare:
    """How busy one stream was, % of the same time as ``gpu_busy_pct`` of the summary; ``stream`` -1 is unknown."""

    track: int
    stream: int
    busy_pct: float


@dataclass(frozen=True)
class DeviceShare:
    """How busy one device was.

    ``busy_pct`` is of the same time as ``gpu_busy_pct`` of the summary; ``own_busy_pct`` of the device's own span, from
    its first to its last work in the whole recording (int ns), as some tools count it.
    """

    device: int
    busy_pct: float
    own_start_ns: int
    own_span_ns: int
    own_busy_pct: float
    streams: tuple[StreamShare, ...]  # busiest first


@dataclass(frozen=True)
class StepThread:
    """The steps of one thread that count: how many, and their mean on the host, ns."""

    thread: str  # its number, as written
    steps: int
    step_ns: float
    rank: int = -1  # where the trace is of several files that say theirs


@dataclass(frozen=True)
class LaunchCosts:
    """What launching costs over the whole recording; a graph is one call, however many kernels it owns.

    ``call_ns`` is the median time of a call on the CPU, ``delay_ns`` the median from a call's start to that of its
    work; ``queue_depth_max`` the most pieces of work that were launched and had not started.
    """

    calls: int
    call_ns: float
    delay_ns: float
    queue_depth_max: int


def launch_costs(figures: Figures) -> LaunchCosts | None:
    """Return what launching costs; None where no call of the recording launched any of its device work."""
    keys = ("launches", "launch_call_median_ns", "launch_delay_median_ns", "queue_depth_max")
    if any(key not in figures.extra for key in keys):
        return None
    calls, call_ns, delay_ns, depth = (float(figures.extra[key][0]) for key in keys)
    return LaunchCosts(int(calls), call_ns, delay_ns, int(depth))


def device_label(trace: Trace, device: int) -> str:
    """``GPU 0``; where files have devices of the same number ``GPU 0 of rank 1``, or of the second file."""
    word = device_word(trace, device)
    if not any(one >= RENUMBERED for one in view_of(trace).devices):
        return f"{word} {device}"
    source = device // RENUMBERED
    ranks = np.unique(trace.processes.rank[trace.processes.source_id == source])
    known = int(ranks[-1]) if len(ranks) and ranks[-1] >= 0 else None
    return f"{word} {device % RENUMBERED} of " + (f"file {source + 1}" if known is None else f"rank {known}")


def device_shares(trace: Trace, figures: Figures) -> tuple[DeviceShare, ...]:
    """Return every device with work, by index."""
    view = view_of(trace)
    streams: dict[int, list[StreamShare]] = {}
    for track, share in figures.busy_by_stream_pct.items():
        of_device = streams.setdefault(int(view.device_of_track[track]), [])
        of_device.append(StreamShare(track, int(trace.tracks.stream[track]), share))
    device = view.device[view.work]
    result = []
    for one in figures.devices:
        work = view.work[device == one]
        busy = union(trace.slices.start_ns[work], trace.end_ns[work])
        if not len(busy):
            continue
        start, span = int(busy.start[0]), int(busy.end[-1] - busy.start[0])
        own = sorted(streams.get(one, ()), key=lambda stream: -stream.busy_pct)
        share = figures.busy_by_device_pct.get(one, 0.0)
        result.append(DeviceShare(one, share, start, span, 100.0 * busy.total_ns / span, tuple(own)))
    return tuple(result)


def step_threads(trace: Trace, figures: Figures) -> tuple[StepThread, ...]:
    """Return the threads that run steps, in order of their first one."""
    steps, rows = figures.steps, figures.step_figures
    found: dict[int, list[int]] = {}
    for i in rows.counted.nonzero()[0].tolist():
        found.setdefault(int(steps.thread_id[i]), []).append(int(rows.dur_ns[i]))
    several, threads, processes = len(trace.sources) > 1, trace.threads, trace.processes
    return tuple(
        StepThread(
            threads.tid[thread] if thread >= 0 else "",
            len(times),
            sum(times) / len(times),
            int(processes.rank[threads.process_id[thread]]) if several and thread >= 0 else -1,
        )
        for thread, times in found.items()
    )


def steps_covered_ns(figures: Figures) -> int | None:
    """Time that lies in any counted step, ns: steps of several threads that overlap are not added; None without."""
    rows = figures.step_figures.counted
    if not rows.any():
        return None
    return union(figures.steps.start_ns[rows], figures.steps.end_ns[rows]).total_ns


def is_foreign(trace: Trace) -> bool:
    """Whether a process is named as TensorFlow and JAX name a device, whose work has no kind that is known here."""
    names = (trace.strings[int(one)] for one in trace.processes.name_id.tolist() if one >= 0)
    return any(name.startswith("/device:") and not name.startswith("/device:CPU") for name in names)
