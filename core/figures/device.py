"""Device side: who is busy when, what was launched when, and how long work lay in the queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from core import sets
from core.figures.lookup import NEVER, View, distinct, of_kinds
from core.figures.steps import step_source
from core.intervals import EMPTY, Spans, coverage, span, union, union_all
from core.kinds import CopyDirection, SliceKind
from core.tables import F64, I32, I64, Bool, StepTable


@dataclass(frozen=True, eq=False)
class DeviceTimes:
    """When each device worked: sets of instants, per device index.

    ``busy`` is any device work, ``kernel`` kernels of any sort, ``compute`` kernels other than collectives',
    ``communication`` collectives' kernels, ``host_copy`` copies between host and device.
    """

    busy: dict[int, Spans]
    kernel: dict[int, Spans]
    compute: dict[int, Spans]
    communication: dict[int, Spans]
    host_copy: dict[int, Spans]


def device_times(view: View) -> DeviceTimes:
    """Unite the device work of every device over its streams."""
    slices, end = view.trace.slices, view.trace.end_ns
    device = view.device[view.work]
    is_kernel = slices.kind[view.work] == int(SliceKind.KERNEL)
    collective = view.are_collectives(view.work)

    def of(mask: Bool) -> dict[int, Spans]:
        result = {}
        for dev in view.devices:
            ids = view.work.compress(mask if len(view.devices) == 1 else mask & (device == dev))
            result[dev] = union(slices.start_ns[ids], end[ids])
        return result

    every = np.ones(len(view.work), dtype=bool)
    host_copy = of_kinds(slices.direction[view.work], (CopyDirection.HTOD, CopyDirection.DTOH))
    host_copy &= slices.kind[view.work] == int(SliceKind.MEMCPY)
    kernels = of(is_kernel)
    if not np.count_nonzero(collective):
        return DeviceTimes(of(every), kernels, kernels, dict.fromkeys(view.devices, EMPTY), of(host_copy))
    return DeviceTimes(of(every), kernels, of(is_kernel & ~collective), of(is_kernel & collective), of(host_copy))


def busy_window(view: View, steps: StepTable, odd: Bool | None = None) -> Spans:
    """Where utilisation is measured: inside the marked steps, else the whole trace (also with inferred steps).

    Parameters
    ----------
    odd
        bool[n_steps]: steps that are left out as warm-up or outliers, with the time between them and their
        neighbours. They would make the share contradict the means, which leave them out, too.
    """
    if len(steps) and not bool(steps.inferred.any()):
        keep = np.ones(len(steps), dtype=bool) if odd is None or odd.all() else ~odd
        start_ns, end_ns = steps.start_ns[keep], steps.end_ns[keep]
        # From a step to the next the loop goes on; a hole longer than a step is another recording's beginning.
        covered = union(start_ns, end_ns)
        near = covered.start[1:] - covered.end[:-1] <= int(sets.median(end_ns - start_ns))
        return union_all((covered, union(covered.end[:-1][near], covered.start[1:][near])))
    first, last = view.trace.span_ns
    return union(np.array([first], dtype=np.int64), np.array([last], dtype=np.int64))


def busy_windows(view: View, steps: StepTable, odd: Bool | None = None) -> dict[int, Spans]:
    """Where the utilisation of each device is measured: as `busy_window`, each in the file that recorded it.

    Files of several ranks, or of one process after another, cover different times: outside its own file nobody knows
    what a device did.
    """
    if len(view.trace.sources) < 2:
        return dict.fromkeys(view.devices, busy_window(view, steps, odd))
    source, spans = step_source(view, steps), _source_spans(view)
    result: dict[int, Spans] = {}
    for one in range(len(view.trace.sources)):
        devices = view.devices_of_source(one)
        if not devices:
            continue
        rows = (source == one).nonzero()[0]
        own = StepTable(**{column.name: getattr(steps, column.name)[rows] for column in fields(steps)})
        window = busy_window(view, own, odd if odd is None else odd[rows]) if len(rows) else spans[one]
        result.update(dict.fromkeys(devices, spans[one] if len(rows) and own.inferred.any() else window))
    return result


def _source_spans(view: View) -> dict[int, Spans]:
    """From the first start to the last end of what each file holds."""
    tracks, slices = view.trace.tracks, view.trace.slices
    of_track = view.trace.processes.source_id[tracks.process_id]
    result = {}
    for one in range(len(view.trace.sources)):
        rows = ((of_track == one) & (tracks.end_id > tracks.first_id)).nonzero()[0]
        held = [slice(tracks.first_id[row], tracks.end_id[row]) for row in rows]
        first = min((int(slices.start_ns[some].min()) for some in held), default=0)
        last = max((int(view.trace.end_ns[some].max()) for some in held), default=0)
        result[one] = span(first, last)
    return result


def share_of(window: Spans, busy: Spans) -> float | None:
    """Percentage of the window during which the device was busy; None for an empty window."""
    if not window.total_ns:
        return None
    return 100.0 * int(coverage(busy, window.start, window.end).sum()) / window.total_ns


def busy_by_stream(view: View, windows: Mapping[int, Spans]) -> dict[int, float]:
    """Track id -> percentage of its device's window during which that stream worked."""
    slices, tracks = view.trace.slices, view.trace.tracks
    result = {}
    for track in distinct(slices.track_id[view.work]):
        rows = np.arange(tracks.first_id[track], tracks.end_id[track])
        rows = rows[view.trace.device_work_mask[rows] & view.valid[rows]]
        device = int(view.device_of_track[track])
        share = share_of(windows[device], union(slices.start_ns[rows], view.trace.end_ns[rows]))
        if share is not None:
            result[int(track)] = share
    return result


def launch_delay(view: View) -> I64:
    """Per entry of ``links.launched``: start of the work minus start of its launch, ns (int64)."""
    links, start = view.trace.links, view.trace.slices.start_ns
    return start[links.launched] - start[links.launched_by]


def queue_depth(view: View) -> tuple[I64, I32]:
    """Depth of the launch queue over time: work launched and not yet started (int64 ns, int32).

    Only work whose launch is in the trace counts. The depth holds from its time to the next one.
    """
    links, start = view.trace.links, view.trace.slices.start_ns
    if not len(links.launched):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
    put = start[links.launched_by]
    taken = np.maximum(start[links.launched], put)
    times = np.concatenate((put, taken))
    change = np.concatenate((np.ones(len(put), np.int32), np.full(len(taken), -1, np.int32)))
    order = times.argsort(kind="stable")
    times, depth = times[order], change[order].cumsum(dtype=np.int32)
    last = np.append(times[1:] != times[:-1], True).nonzero()[0]
    return times[last], depth[last]


def launch_summary(view: View, queue_depth: I32) -> dict[str, F64]:
    """Launches in figures: how many calls, what one costs, how long work waits in the queue, how deep the queue gets.

    A graph launch is one call, however many kernels it owns.
    """
    links, slices = view.trace.links, view.trace.slices
    if not len(links.launched):
        return {}
    head = sets.changes(links.launched_by)
    calls = links.launched_by[head]
    return {
        "launches": np.array([float(len(calls))]),
        "launch_call_median_ns": np.array([sets.median(slices.dur_ns[calls])]),
        "launch_delay_median_ns": np.array([sets.median(launch_delay(view))]),
        "queue_depth_max": np.array([float(queue_depth.max())]),
    }


def idle_launches(view: View) -> tuple[I32, I32]:
    """Launches without device work in the trace: see `View.idle_launches`."""
    return view.idle_launches


def missing_launches_pct(view: View) -> dict[str, F64]:
    """Shares of the calls that launch kernels or graphs: those captured into a graph, and those whose work is lost."""
    launches = view.launches
    if not len(launches):
        return {}
    captured, lost = view.idle_launches
    return {
        "launches_captured_pct": np.array([100.0 * len(captured) / len(launches)]),
        "launches_lost_pct": np.array([100.0 * len(lost) / len(launches)]),
    }


def launched_extent(view: View, steps: StepTable, step_of: I32) -> tuple[I64, I64, I32]:
    """First start and last end of the device work launched in each step (-1 for none), and its kernels."""
    count = len(steps)
    first = np.full(count, NEVER, dtype=np.int64)
    last = np.full(count, -1, dtype=np.int64)
    of = step_of[view.work]
    work, of = view.work.compress(of >= 0), of.compress(of >= 0)
    np.minimum.at(first, of, view.trace.slices.start_ns[work])
    np.maximum.at(last, of, view.trace.end_ns[work])
    first[last < 0] = -1
    kernels = np.bincount(of[view.trace.slices.kind[work] == int(SliceKind.KERNEL)], minlength=count)
    return first, last, kernels.astype(np.int32)


def lost_per_step(steps: StepTable, view: View, step_of: I32) -> F64:
    """Share of each step's launches whose device work is not in the trace: float64[n_steps], 0 without launches."""
    launches, (_, lost) = view.launches, view.idle_launches
    every, gone = (np.bincount(of[of >= 0], minlength=len(steps)) for of in (step_of[launches], step_of[lost]))
    share: F64 = gone / np.maximum(every, 1)
    return share


def work_per_step(steps: StepTable, view: View, step_of: I32) -> I32:
    """Number of device slices launched in each step: int32[n_steps]."""
    of = step_of[view.work]
    return np.bincount(of[of >= 0], minlength=len(steps)).astype(np.int32)


def anchors(view: View, steps: StepTable, step_of: I32) -> I64:
    """Start of "the same device work" in each step, ns, -1 for none: int64[n_steps].

    Looked for on the stream that computes most, if all steps of the file with device work have some there: a copy or
    a collective on a stream of its own may run ahead of the loop. There the anchor is the first work of the step, or,
    where the steps do not begin with the same work, the first of the name that most of them begin with.
    """
    result = np.full(len(steps), -1, dtype=np.int64)
    source = view.source[view.work]
    for one in distinct(source):
        work = view.work.compress((source == one) & (step_of[view.work] >= 0))
        if len(work):
            _anchor_file(view, _on_main_stream(view, work, step_of), step_of, result)
    return result


def _on_main_stream(view: View, work: I32, step_of: I32) -> I32:
    slices = view.trace.slices
    computes = (slices.kind[work] == int(SliceKind.KERNEL)) & ~view.are_collectives(work)
    if not computes.any():
        return work
    busy = np.bincount(slices.track_id[work[computes]], weights=slices.dur_ns[work[computes]])
    there: I32 = work.compress(slices.track_id[work] == int(np.argmax(busy)))
    return there if len(sets.distinct(step_of[there])) == len(sets.distinct(step_of[work])) else work


def _anchor_file(view: View, work: I32, step_of: I32, result: I64) -> None:
    start, name = view.trace.slices.start_ns[work], view.trace.slices.name_id[work]
    order = np.lexsort((start, step_of[work]))
    start, name, of = start[order], name[order], step_of[work][order]
    heads = sets.changes(of).nonzero()[0]
    result[of[heads]] = start[heads]
    hit = (name == sets.most_frequent(name[heads])).nonzero()[0]
    hit = hit[sets.changes(of[hit])]
    if len(hit) == len(heads):  # every step has it: a true anchor
        result[of[hit]] = start[hit]
