"""What there is to say about one slice, from the tables alone (no file is read)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.figures.lookup import thread_tracks
from core.figures.model import Figures
from core.figures.stats import owners
from core.intervals import union
from core.kernel_names import short_kernel_name
from core.kinds import DEVICE_WORK, HOST_CALLS, SliceKind, TrackKind
from core.source_frames import is_launcher_frame, is_user_frame
from core.tables import FLAG_NO_DURATION, FLAG_UNFINISHED, I32, I64
from core.trace import Trace
from core.words import plain_name

MAX_LAUNCHED = 50


@dataclass(frozen=True)
class SameName:
    """All slices of the same name and kind; durations in ns."""

    ids: I32
    dur_ns: I64

    @property
    def slowest(self) -> int:
        """The longest of them."""
        return int(self.ids[np.argmax(self.dur_ns)])


def brief_name(trace: Trace, slice_id: int) -> str:
    """What a slice is called wherever there is little room: of device work what it does, else its name."""
    name = trace.name(slice_id)
    return short_kernel_name(name) if int(trace.slices.kind[slice_id]) in DEVICE_WORK else plain_name(name)


def ancestors(trace: Trace, slice_id: int) -> list[int]:
    """Enclosing slices on the same track, innermost first."""
    chain, at = [], int(trace.slices.parent_id[slice_id])
    while at >= 0:
        chain.append(at)
        at = int(trace.slices.parent_id[at])
    return chain


def self_ns(trace: Trace, slice_id: int) -> int:
    """Duration without what the direct children cover of it; time that two children share counts once, as in tables."""
    s = trace.slices
    rows = np.arange(slice_id + 1, int(s.subtree_end[slice_id]))
    children = np.concatenate((rows[s.parent_id[rows] == slice_id], _calls_in(trace, slice_id)))
    ends = np.minimum(trace.end_ns[children], trace.end_ns[slice_id])
    return int(s.dur_ns[slice_id]) - union(s.start_ns[children], ends).total_ns


def _calls_in(trace: Trace, slice_id: int) -> I32:
    """Outermost operators and calls that begin in a range or frame and in nothing nested in it, as `stats.owners`."""
    s, tracks = trace.slices, trace.tracks
    track = int(s.track_id[slice_id])
    nothing = np.zeros(0, np.int32)
    if tracks.kind[track] not in (TrackKind.CPU_RANGES, TrackKind.CPU_PYTHON):
        return nothing
    ops = int(thread_tracks(trace, TrackKind.CPU_OPS)[tracks.thread_id[track]])
    if ops < 0:
        return nothing
    first, last = int(tracks.first_id[ops]), int(tracks.end_id[ops])
    bounds = (s.start_ns[slice_id], trace.end_ns[slice_id])
    low, high = first + np.searchsorted(s.start_ns[first:last], bounds, side="left")
    calls = np.arange(low, high, dtype=np.int32)
    calls = calls[s.parent_id[calls] < 0]
    return calls[np.any([holder == slice_id for holder in owners(trace, calls)], axis=0)]


def at_time(trace: Trace, track: int, time_ns: int) -> int:
    """Innermost slice of a track that is open at a time, -1 none; O(log n + depth)."""
    if track < 0:
        return -1
    first, end = int(trace.tracks.first_id[track]), int(trace.tracks.end_id[track])
    at = first + int(np.searchsorted(trace.slices.start_ns[first:end], time_ns, side="right")) - 1
    if at < first:
        return -1
    while at >= 0 and int(trace.end_ns[at]) <= time_ns:
        at = int(trace.slices.parent_id[at])
    return at


def host_call(trace: Trace, slice_id: int) -> int:
    """The CPU slice that stands for it: itself, or the launch of device work (-1 when that is not in the trace)."""
    if int(trace.slices.kind[slice_id]) in DEVICE_WORK:
        return int(trace.links.launch_of[slice_id])
    return slice_id


def op_chain(trace: Trace, slice_id: int) -> list[int]:
    """Operators above a slice (above its launch, for device work), innermost first."""
    host = host_call(trace, slice_id)
    chain: list[int] = []
    if host >= 0:
        chain = [i for i in ancestors(trace, host) if trace.slices.kind[i] == SliceKind.CPU_OP]
    if not chain and int(trace.links.op_of[slice_id]) >= 0:
        op = int(trace.links.op_of[slice_id])
        chain = [op, *(i for i in ancestors(trace, op) if trace.slices.kind[i] == SliceKind.CPU_OP)]
    return chain


def _thread_slice(trace: Trace, slice_id: int, kind: TrackKind) -> int:
    """Innermost slice of the launching thread's track of a kind around a slice, -1 none."""
    host = host_call(trace, slice_id)
    if host < 0:
        return -1
    thread = int(trace.tracks.thread_id[trace.slices.track_id[host]])
    if thread < 0:
        return -1
    track = trace.track_of_thread(thread, kind)
    found = at_time(trace, track, int(trace.slices.start_ns[host]))
    return int(trace.slices.parent_id[host]) if found == host else found


def innermost_range(trace: Trace, slice_id: int) -> int:
    """Innermost range (not step) around a slice, -1 none."""
    at = _thread_slice(trace, slice_id, TrackKind.CPU_RANGES)
    while at >= 0 and trace.slices.kind[at] != SliceKind.RANGE:
        at = int(trace.slices.parent_id[at])
    return at


def python_stack(trace: Trace, slice_id: int) -> list[int]:
    """Python frames around a slice, innermost first, without the launcher's; empty without recorded stacks."""
    at = _thread_slice(trace, slice_id, TrackKind.CPU_PYTHON)
    if at < 0:
        return []
    frames = [i for i in (at, *ancestors(trace, at)) if trace.slices.kind[i] == SliceKind.PYTHON]
    names = [trace.name(i) for i in frames]
    if not any(map(is_launcher_frame, names)):
        return frames
    own = [k for k, name in enumerate(names) if is_user_frame(name)]
    kept = frames[: own[-1] + 1] if own else frames  # above the script stand the launcher and what it calls
    return [i for i in kept if not is_launcher_frame(trace.name(i))]


def launched(trace: Trace, slice_id: int) -> I32:
    """Device work launched by a CPU slice and everything below it on its track."""
    if int(trace.slices.kind[slice_id]) not in (SliceKind.CPU_OP, *HOST_CALLS):
        return np.empty(0, np.int32)
    return trace.links.device_work_of(slice_id, int(trace.slices.subtree_end[slice_id]))


def time_at_work_ns(trace: Trace, slice_id: int) -> tuple[int, bool]:
    """How long an operator's work took, ns, and whether that was a device's: the sum of its device work, if any."""
    work = launched(trace, slice_id)
    dur = trace.slices.dur_ns
    return (int(dur[work].sum()), True) if len(work) else (int(dur[slice_id]), False)


def partners(trace: Trace, slice_id: int) -> tuple[list[int], list[int]]:
    """Forward slices of a backward one, and backward slices of a forward one."""
    links = trace.links
    a, b = np.searchsorted(links.forward, (slice_id, slice_id + 1))
    ordered = links.backward[links.backward_order]
    c, d = np.searchsorted(ordered, (slice_id, slice_id + 1))
    back = [int(i) for i in links.backward[a:b]]
    return [int(i) for i in links.forward[links.backward_order[c:d]]], back


def queue_delay_ns(trace: Trace, slice_id: int) -> int | None:
    """Start of device work minus start of its launch, None when there is no launch."""
    launch = int(trace.links.launch_of[slice_id])
    return None if launch < 0 else int(trace.slices.start_ns[slice_id] - trace.slices.start_ns[launch])


def same_name(trace: Trace, slice_id: int) -> SameName:
    """All slices with this one's name and kind, those without a duration left out."""
    s = trace.slices
    odd = FLAG_NO_DURATION | FLAG_UNFINISHED
    mask = (s.name_id == s.name_id[slice_id]) & (s.kind == s.kind[slice_id]) & ((s.flags & odd) == 0)
    ids = np.flatnonzero(mask).astype(np.int32)
    return SameName(ids, s.dur_ns[ids])


def sync_row(figures: Figures | None, slice_id: int) -> int:
    """Row of the sync table whose blocking call this is, -1 none."""
    if figures is None or not len(figures.syncs):
        return -1
    hit = np.flatnonzero(figures.syncs.slice_id == slice_id)
    return int(hit[0]) if len(hit) else -1
