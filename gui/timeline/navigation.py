"""Where the next slice, flow, sync point or step is: pure functions over the tables."""

from __future__ import annotations

import math

import numpy as np

from core.figures.model import Figures
from core.kinds import DEVICE_WORK, SliceKind
from core.trace import Trace

FLOWS_AT_MOST = 300
VISIBLE_PX, READABLE_PX = 3.0, 12.0  # of a wait: below the first the view zooms, until it is as wide as the second
FITTING, FITTED = 0.8, 0.6  # share of the view: a wait longer than the first has the second


def flow_pairs(trace: Trace, slice_id: int, *, deep: bool = False) -> tuple[list[tuple[int, int]], list[bool]]:
    """Flows of a slice, and of all below it when ``deep``: pairs (source, target), and True for launches.

    At most `FLOWS_AT_MOST` of each kind, the first ones.
    """
    links, slices = trace.links, trace.slices
    pairs: list[tuple[int, int]] = []
    if slices.kind[slice_id] in DEVICE_WORK:
        launch = int(links.launch_of[slice_id])
        pairs += [(launch, slice_id)] if launch >= 0 else []
        launches = len(pairs)
        return pairs, [True] * launches
    end = int(slices.subtree_end[slice_id]) if deep else slice_id + 1
    work = links.device_work_of(slice_id, end)[:FLOWS_AT_MOST]
    pairs += [(int(links.launch_of[i]), int(i)) for i in work if links.launch_of[i] >= 0]
    launches = len(pairs)
    a, b = np.searchsorted(links.forward, (slice_id, end))
    b = min(int(b), int(a) + FLOWS_AT_MOST)
    pairs += [(int(links.forward[i]), int(links.backward[i])) for i in range(int(a), b)]
    ordered = links.backward[links.backward_order]
    a, b = np.searchsorted(ordered, (slice_id, end))
    for i in links.backward_order[int(a) : min(int(b), int(a) + FLOWS_AT_MOST)].tolist():
        pairs.append((int(links.forward[i]), int(links.backward[i])))
    return pairs, [True] * launches + [False] * (len(pairs) - launches)


def follow(trace: Trace, slice_id: int, forward: bool) -> int:
    """Slice at the other end of a flow: from launch to its work, from work back to its launch, -1 when there is none.

    From an operator forward leads to the first work launched below it, or else to its backward.
    """
    links = trace.links
    if not 0 <= slice_id < len(trace.slices):
        return -1
    if not forward:
        if trace.slices.kind[slice_id] in DEVICE_WORK:
            return int(links.launch_of[slice_id])
        ordered = links.backward[links.backward_order]
        at = int(np.searchsorted(ordered, slice_id))
        if at < len(ordered) and ordered[at] == slice_id:
            return int(links.forward[links.backward_order[at]])
        return -1
    work = links.device_work_of(slice_id, int(trace.slices.subtree_end[slice_id]))
    if len(work) and trace.slices.kind[slice_id] not in DEVICE_WORK:
        return int(work[np.argmin(trace.slices.start_ns[work])])
    at = int(np.searchsorted(links.forward, slice_id))
    if at < len(links.forward) and links.forward[at] == slice_id:
        return int(links.backward[at])
    return -1


def next_sync(figures: Figures, time_ns: float, current_slice: int, offset: int) -> int:
    """Row of the next (+1) or previous (-1) sync point by time; -1 past the ends.

    Starts from the sync point that is selected, else from a time.
    """
    syncs = figures.syncs
    if not len(syncs):
        return -1
    order = np.argsort(syncs.wait_start_ns, kind="stable")
    here = np.flatnonzero(syncs.slice_id[order] == current_slice)
    if current_slice >= 0 and len(here):
        at = int(here[0]) + offset
    else:
        at = int(np.searchsorted(syncs.wait_start_ns[order], time_ns))
        at = at if offset > 0 else at - 1
    return int(order[at]) if 0 <= at < len(order) else -1


def step_at(figures: Figures | None, trace: Trace, time_ns: float) -> int:
    """Row of the step that a time lies in (the last one begun, between steps), -1 before the first."""
    steps = figures.steps if figures is not None else trace.steps
    return int(np.searchsorted(steps.start_ns, time_ns, "right")) - 1


def sync_of_slice(figures: Figures | None, slice_id: int) -> int:
    """Row of the sync point that a call is, -1 when it is none."""
    if figures is None or not len(figures.syncs):
        return -1
    found = np.flatnonzero(figures.syncs.slice_id == slice_id)
    return int(found[0]) if len(found) else -1


def is_of_host(trace: Trace, slice_id: int) -> bool:
    """Whether a slice ran on the CPU, and is no step."""
    slices = trace.slices
    inside = 0 <= slice_id < len(slices) and slices.kind[slice_id] != SliceKind.STEP
    return inside and trace.tracks.thread_id[slices.track_id[slice_id]] >= 0


def waiting(figures: Figures | None, trace: Trace, slice_id: int) -> tuple[int, int]:
    """Call that blocks in a slice of the CPU, and the device slice that it waits for, or else that it launches.

    Of several waits on its thread while it ran the longest counts. -1 for what there is not; both
    for slices of a device.
    """
    slices = trace.slices
    if not is_of_host(trace, slice_id):
        return -1, -1
    if figures is not None and len(figures.syncs):
        syncs = figures.syncs
        thread = trace.tracks.thread_id[slices.track_id[slice_id]]
        start = slices.start_ns[syncs.slice_id]
        inside = (start >= slices.start_ns[slice_id]) & (start <= trace.end_ns[slice_id]) & (syncs.wait_ns > 0)
        rows = np.flatnonzero(inside & (syncs.thread_id == thread) & (syncs.waited_id >= 0))
        if len(rows):
            row = rows[np.argmax(syncs.wait_ns[rows])]
            return int(syncs.slice_id[row]), int(syncs.waited_id[row])
    work = trace.links.device_work_of(slice_id, int(slices.subtree_end[slice_id]))
    return -1, int(work[np.argmin(slices.start_ns[work])]) if len(work) else -1


def with_context(
    start_ns: float, end_ns: float, view: tuple[float, float], view_px: int, usual_ns: float = 0.0
) -> tuple[float, float]:
    """Window, ns, that shows a stretch with what lies around it: the present one where that does so already.

    It moves only, unless the stretch would be too narrow to be seen or does not fit.

    Parameters
    ----------
    start_ns, end_ns
        The stretch.
    view
        Start and end of the present window, ns.
    view_px
        Width of the window, px.
    usual_ns
        Width of the window that the user has chosen, where the present one had to differ from it; 0: the present one.
    """
    dur, width = max(end_ns - start_ns, 1.0), usual_ns or view[1] - view[0]
    if dur * view_px < VISIBLE_PX * width:
        width = dur * view_px / READABLE_PX
    elif dur > FITTING * width:
        width = dur / FITTED
    if math.isclose(width, view[1] - view[0]) and view[0] <= start_ns and end_ns <= view[1]:
        return view
    middle = (start_ns + end_ns) / 2
    return middle - width / 2, middle + width / 2
