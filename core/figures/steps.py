"""Which steps there are, what belongs to each, and which of them count."""

from __future__ import annotations

from typing import Any

import numpy as np

from core import sets
from core.figures.lookup import View, distinct
from core.figures.repeats import marks_per_iteration
from core.intervals import coverage, union
from core.kinds import SliceKind
from core.tables import F64, I32, I64, Bool, StepTable

# Two or three iterations are too few to tell a rhythm from chance, but the user's own marks need no statistics.
_MIN_MARKS = 2
_MIN_PACED = 3  # of fewer steps, no pace is the usual one
_LEAST_WITHOUT_FIRST = 2  # steps that must be left for the means
# So many steps at the end, and such a share of all, that each take far longer than the others, are no outliers.
_LEAST_LATER, _LATER_SHARE = 3, 1 / 3
OUTLIER_RATIO = 3.0  # a step three times as long as the median of the others is warm-up or an outlier
_LIKE_RATIO = 1.15  # a step that is longer than one that counts by less is of its kind
BESIDE_OUTLIER = "beside an outlier: the next step, far longer than the others, began its device work late"
_ENDED = "truncated: the recording ended before all of its device work was written"
UNWRITTEN = "truncated: the recording ended before much of its device work was written"
_NO_DURATION = "unfinished: its range has no valid duration"
LOST = "lost: most of its device work is not in the trace"
_LOST_SHARE = 0.5  # of the launches of a step between others
_CLOSE_SHARE = 0.02  # of an iteration: ranges that lie no further apart are whole iterations themselves
_LONG = 8  # times as many slices as places looked up
_PART = 1 << 16  # instants looked up at a time
TRUNCATED_SHARE = 0.8  # torch-tb-profiler leaves out a last step with under 80 % of the kernels of the one before


def find_steps(view: View) -> StepTable:
    """Return the marked steps, else those worked out from annotations, loader or optimizer marks."""
    marked = view.trace.steps
    return marked if len(marked) else infer_steps(view)


def infer_steps(view: View) -> StepTable:
    """Work iterations out from what the trace holds; an empty table when nothing repeats.

    In order: the user's own ranges named like a step; ``enumerate(DataLoader)`` marks, and ``Optimizer.step`` marks. A
    step reaches from one mark's start to the next one's, so that the time between two ranges is in it (a loop fetches
    its batch there), but for a pause of the loop: n marks give n - 1 steps, n ranges n of which some may be cut short
    (see `cut_short`).
    """
    ranges = view.by_kind(SliceKind.RANGE)
    start = view.trace.slices.start_ns
    own = _own_ranges(view)
    if len(own) >= _MIN_MARKS:
        end = view.trace.end_ns[own]
        followed, _ = _followed(view, own)
        end[:-1][followed] = start[own[1:]][followed]
        return _table(view, own, start[own], end)
    loader = _one_name(view, _busiest_thread(view, view.named(ranges, view.names.loader)))
    every = _outermost(view, _busiest_thread(view, view.named(ranges, view.names.optimizer)))
    optimizer = _one_name(view, every)  # an optimizer made of others marks theirs inside its own
    if len(optimizer) >= _MIN_MARKS:
        optimizer = optimizer[:: marks_per_iteration(view, optimizer, every)]
    marks = optimizer
    # Both marks come once per iteration; the loader's stands at its beginning. Where their numbers differ, several
    # optimizer steps share a batch or the reverse, and the optimizer's rhythm is the training's.
    if len(loader) >= _MIN_MARKS and (len(optimizer) < _MIN_MARKS or abs(len(loader) - len(optimizer)) <= 1):
        marks = loader
    if len(marks) < _MIN_MARKS:
        return _table(view, marks[:0], start[:0], start[:0])
    return _table(view, marks[:-1], start[marks[:-1]], start[marks[1:]])


def cut_short(view: View, steps: StepTable) -> Bool:
    """Steps worked out from the user's ranges that lack the time between their range and the next: bool[n_steps].

    That is the last one, and one before a pause; none where the ranges follow each other closely.
    """
    lacking = np.zeros(len(steps), dtype=bool)
    own = _own_ranges(view) if len(steps) and steps.inferred.all() else np.zeros(0, dtype=np.int32)
    if len(own) < _MIN_MARKS:
        return lacking
    followed, apart = _followed(view, own)
    lacking[:] = apart & ~np.append(followed, False)
    return lacking


def _own_ranges(view: View) -> I32:
    """Outermost ranges named like a step of the thread with the most of them, in order."""
    named = view.named(view.by_kind(SliceKind.RANGE), view.names.step_range)
    return _outermost(view, _busiest_thread(view, named))


def _followed(view: View, own: I32) -> tuple[Bool, bool]:
    """Tell after which of n ranges the next iteration follows: bool[n - 1]; and whether the time between them counts.

    A pause (an evaluation, a checkpoint) is a gap that makes its iteration as long as an outlier; the time that the
    loader takes in it is no pause, however long.
    """
    start, end = view.trace.slices.start_ns, view.trace.end_ns
    loader = view.named(view.by_kind(SliceKind.RANGE), view.names.loader)
    loader = loader[view.thread[loader] == view.thread[own[0]]]
    fetching = coverage(union(start[loader], end[loader]), end[own[:-1]], start[own[1:]])
    gap = start[own[1:]] - end[own[:-1]]
    iteration = start[own[1:]] - start[own[:-1]] - fetching
    # With one gap there is no other to compare it with: the ranges' own time says how long an iteration is.
    usual = median_of_others(iteration) if len(iteration) > 1 else sets.median(end[own] - start[own]) * np.ones(1)
    followed: Bool = gap - fetching <= (OUTLIER_RATIO - 1) * usual
    if not followed.any():
        return followed, False
    between = sets.median(gap[followed])
    return followed, between > _CLOSE_SHARE * sets.median(iteration[followed] + fetching[followed])


def _busiest_thread(view: View, ids: I32) -> I32:
    if not len(ids):
        return ids
    threads = view.thread[ids]
    busiest: I32 = ids[threads == sets.most_frequent(threads)]
    return busiest


def _one_name(view: View, ids: I32) -> I32:
    """Keep the most frequent name only: two optimizers of one iteration are not two iterations.

    Those of one class have one name: see `core.figures.repeats`.
    """
    if not len(ids):
        return ids
    names = view.trace.slices.name_id[ids]
    ids = ids[names == sets.most_frequent(names)]
    return ids[view.trace.slices.start_ns[ids].argsort(kind="stable")]


def _outermost(view: View, ids: I32) -> I32:
    """Drop marks of one thread that lie inside another one ("batch" inside "step")."""
    if not len(ids):
        return ids
    start, end = view.trace.slices.start_ns, view.trace.end_ns
    ids = ids[np.lexsort((-end[ids], start[ids]))]
    reach = np.maximum.accumulate(end[ids])
    outer = np.concatenate(([True], start[ids][1:] >= reach[:-1]))
    return ids[outer]


def _table(view: View, ids: I32, start: I64, end: I64) -> StepTable:
    count = len(ids)
    return StepTable(
        start_ns=start.copy(),
        end_ns=end.copy(),
        number=np.arange(count, dtype=np.int64),
        name_id=view.trace.slices.name_id[ids].copy(),
        slice_id=np.full(count, -1, dtype=np.int32),
        thread_id=view.thread[ids].astype(np.int32),
        inferred=np.ones(count, dtype=bool),
    )


def assign(view: View, steps: StepTable) -> I32:
    """Step of every slice: by its start for CPU slices, by its launch for device work: int32[n_slices], -1 outside.

    A CPU slice belongs to the step of its own thread around it, else to that of another thread of the same file.
    Device work without a launch in the trace belongs to no step, except where the trace holds no launch at all
    (device-only traces): there its start decides.
    """
    slices = view.trace.slices
    result = np.full(len(slices), -1, dtype=np.int32)
    if not len(steps):
        return result
    files = step_source(view, steps)
    for source in distinct(files):
        of_file = (files == source).nonzero()[0]
        rows: Any = (view.source == source).nonzero()[0] if len(view.trace.sources) > 1 else slice(None)
        if not _by_tracks(view, steps, of_file, rows, result):
            result[rows] = _around(steps, of_file, slices.start_ns[rows])
        threads = sets.distinct(steps.thread_id[of_file])
        if len(threads) > 1:
            every = np.arange(len(slices), dtype=np.int32)[rows]
            for thread in threads:
                own = every[view.thread[every] == thread]
                result[own] = _around(steps, of_file[steps.thread_id[of_file] == thread], slices.start_ns[own])
    work = view.trace.device_ids
    launch = view.trace.links.launch_of[work]
    if len(view.trace.links.launched) or _could_be_linked(view):
        result[work] = np.where(launch >= 0, result[launch], -1)
    return result


def _could_be_linked(view: View) -> bool:
    """Whether launches and device work are numbered: where none of them meet, the work is that of other launches."""
    numbers = view.trace.slices.correlation_id
    launches = view.launches
    return bool((numbers[launches] > 0).any() and (numbers[view.work] > 0).any())


def _by_tracks(view: View, steps: StepTable, of_file: I64, rows: Any, result: I32) -> bool:
    """Fill in the step of each slice where steps follow each other and tracks are long: by step, not by slice.

    Returns
    -------
    Whether it has been done.
    """
    order = of_file[steps.start_ns[of_file].argsort(kind="stable")].astype(np.int32)
    tracks, start = view.trace.tracks, view.trace.slices.start_ns
    if not isinstance(rows, slice) or _LONG * len(tracks) * len(order) > len(start) or _overlap(steps, order):
        return False
    begin, end = steps.start_ns[order], np.maximum(steps.end_ns[order], steps.start_ns[order])
    borders, holds = np.stack((begin, end), axis=1).ravel(), np.full(2 * len(order) + 1, -1, dtype=np.int32)
    holds[1::2] = order
    for first, last in zip(tracks.first_id.tolist(), tracks.end_id.tolist(), strict=True):
        at = start[first:last].searchsorted(borders)
        result[first:last] = holds.repeat(np.diff(at, prepend=0, append=last - first))
    return True


def step_source(view: View, steps: StepTable) -> I32:
    """File that recorded each step: int32[n_steps]."""
    threads = view.trace.threads
    if not len(threads):
        return np.zeros(len(steps), dtype=np.int32)
    return view.trace.processes.source_id[threads.process_id[steps.thread_id]]


def _around(steps: StepTable, rows: I64, time_ns: I64) -> I32:
    """The last started of these steps that still runs at each instant, -1 for none."""
    order = rows[steps.start_ns[rows].argsort(kind="stable")].astype(np.int32)
    begin, looks = steps.start_ns[order], 4 if _overlap(steps, order) else 1
    found = np.full(len(time_ns), -1, dtype=np.int32)
    for first in range(0, len(time_ns), _PART):
        part, time = found[first : first + _PART], time_ns[first : first + _PART]
        at = begin.searchsorted(time, side="right") - 1
        for back in range(looks):  # overlapping steps of several threads: look at the few that started before
            here = at - back
            step = order[np.maximum(here, 0)]
            hit = (part < 0) & (here >= 0) & (time < steps.end_ns[step])
            part[hit] = step[hit]
    return found


def _overlap(steps: StepTable, order: I32) -> bool:
    return bool((steps.start_ns[order][1:] < steps.end_ns[order][:-1]).any())


def choose_counted(
    steps: StepTable,
    kernels: I32,
    has_device: bool,
    lacking: Bool | None = None,
    paced: Bool | None = None,
    lost: F64 | None = None,
    *,
    of_first_steps: bool = False,
) -> tuple[Bool, tuple[str, ...]]:
    """Tell which steps the means are taken over, and why not the others.

    Parameters
    ----------
    kernels
        int32[n_steps], device slices launched in each step.
    has_device
        The trace holds device work at all.
    lacking
        bool[n_steps], see `cut_short`.
    paced
        bool[n_steps]: steps that are no outliers however long they take on the host, see `keeps_pace`.
    lost
        float64[n_steps]: share of each step's launches whose device work is not in the trace.
    of_first_steps
        The recording stands in for that of later steps: a script's very first step is warm-up, however long it took.
    """
    count = len(steps)
    why = [""] * count
    for i in lacking.nonzero()[0] if lacking is not None else ():
        why[i] = "truncated: the time from its range to the next iteration is not known"
    duration = steps.end_ns - steps.start_ns
    for i in (duration <= 0).nonzero()[0] if count > 1 else ():
        why[i] = why[i] or _NO_DURATION
    if count > 1:
        _mark_truncated(why, kernels, has_device, lost)
        whole = np.flatnonzero([not reason for reason in why])
        _mark_outliers(why, duration, whole, np.zeros(count, dtype=bool) if paced is None else paced)
        if of_first_steps and not why[0] and steps.number[0] == 0 and why.count("") > _LEAST_WITHOUT_FIRST:
            why[0] = "warm-up: the first step of the script"
    if count and all(why):  # nothing left to average over: the mean of the least bad ones, the reasons stay
        least = [not reason.startswith(("warm-up", "outlier")) for reason in why]
        return np.array(least if any(least) else [True] * count, dtype=bool), tuple(why)
    return np.array([not reason for reason in why], dtype=bool), tuple(why)


def _mark_truncated(why: list[str], kernels: I32, has_device: bool, lost: F64 | None) -> None:
    if not has_device or not kernels.any():
        return
    others = sets.median(kernels[kernels > 0])
    last = len(why) - 1
    if kernels[last] < TRUNCATED_SHARE * min(others, float(kernels[last - 1]) or others):
        why[last] = _ENDED
    # Where the CPU ran ahead when the recording ended, the work of several steps is missing.
    while lost is not None and last >= 0 and lost[last] > 1 - TRUNCATED_SHARE:
        why[last], last = UNWRITTEN, last - 1
    if kernels[0] < 0.5 * others:
        why[0] = "truncated: the recording started after part of its device work"
    if lost is not None and sets.median(lost) <= 1 - TRUNCATED_SHARE:  # elsewhere it is a thing of the whole recording
        for i in ((lost > _LOST_SHARE) & (kernels < _LOST_SHARE * others)).nonzero()[0]:
            why[i] = why[i] or LOST


def _mark_outliers(why: list[str], duration: I64, whole: I64, paced: Bool) -> None:
    """Of the whole steps those far longer than the others: warm-up while they lead the trace, else outliers."""
    if len(whole) < 2:
        return
    longer = far(duration[whole], OUTLIER_RATIO)
    odd = longer & ~paced[whole]
    # No cut goes through steps of one kind: one like another that is not as long is no outlier, unless it leads.
    like = duration[whole] <= _LIKE_RATIO * duration[whole][~longer].max(initial=0)
    odd &= ~like | np.logical_and.accumulate(odd)
    # A loop that turned slower and stayed so has two paces: neither is the exception.
    last = len(whole) - int(np.argmin(np.append(longer[::-1], False)))
    if last and len(whole) - last > max(_LATER_SHARE * len(whole), _LEAST_LATER - 1):
        odd[last:] = False
    leading = True
    for i, outlier in zip(whole, odd, strict=True):
        leading = leading and bool(outlier)
        if outlier:
            why[i] = "warm-up: far longer than the steps after it" if leading else "outlier: far longer than the others"


def keeps_pace(steps: StepTable, period: I64, device_end: I64, sync_wait: I64, ratio: float = OUTLIER_RATIO) -> Bool:
    """Steps around which the device went on at its usual pace, however long they take on the host: bool[n].

    Where the CPU runs ahead, a step that waits once (it logs a loss) takes as long as all the work that was queued
    before; the loop is no slower for it. The step's period, and the time from the end of the last step's work to that
    of its own, show that. One without either, first or last, must be usual in its host time apart from its waits.

    Parameters
    ----------
    period, device_end, sync_wait
        As in `StepFigures`: int64[n], ns, -1 where unknown.
    ratio
        How many times the median is no longer usual.
    """
    count = len(steps)
    if count < _MIN_PACED or not (period > 0).any():
        return np.zeros(count, dtype=bool)
    order = np.lexsort((steps.start_ns, steps.thread_id))
    before, here = order[:-1], order[1:]
    near = (period[before] > 0) & (device_end[before] >= 0) & (device_end[here] >= 0)
    between = np.full(count, -1, dtype=np.int64)
    between[here[near]] = (device_end[here] - device_end[before])[near]
    own = steps.end_ns - steps.start_ns - np.maximum(sync_wait, 0)
    known = ((between >= 0) & (period > 0)) | ~far(own, ratio)
    paced: Bool = known & ~far(between, ratio) & ~far(period, ratio) & (device_end >= 0)
    return paced


def update_rounds(view: View, steps: StepTable, step_of: I32, ratio: float = OUTLIER_RATIO) -> tuple[Bool, int]:
    """Steps that update the weights, where a loop that accumulates gradients marks every micro batch as a step.

    Every so many steps one holds the optimizer's: that it takes longer than the others is the loop's own rhythm.

    Returns
    -------
    tuple
        bool[n_steps]: these steps, but for those far longer than the others of them; and the number of steps from one
        to the next. All False and 1 in a loop that updates in every step, or not by such a rhythm.
    """
    none = np.zeros(len(steps), dtype=bool)
    if len(distinct(steps.thread_id)) != 1:
        return none, 1
    marks = step_of[view.named(view.by_kind(SliceKind.RANGE), view.names.optimizer)]
    rows = sets.distinct(marks[marks >= 0])
    apart = sets.distinct(np.diff(rows))
    if len(apart) != 1 or apart[0] < 2 or rows[0] >= apart[0] or len(steps) - rows[-1] > apart[0]:
        return none, 1
    usual = ~far((steps.end_ns - steps.start_ns)[rows], ratio)
    none[rows[usual]] = True
    return none, int(apart[0])


def far(values: I64, ratio: float) -> Bool:
    """Values of more than so many times the median of the others, -1 standing for none: bool[n]."""
    result = np.zeros(len(values), dtype=bool)
    known = (values >= 0).nonzero()[0]
    if len(known) > 1:
        result[known] = values[known] > ratio * median_of_others(values[known])
    return result


def median_of_others(values: I64) -> F64:
    """Median of all values but each one: float64[n], n >= 2."""
    order = values.argsort(kind="stable")
    ranked = values[order]
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values))
    others = len(values) - 1
    low, high = (others - 1) // 2, others // 2
    # Where a value stands at or before a place, taking it out moves the next one there.
    at_low = ranked[low + (rank <= low)]
    at_high = ranked[high + (rank <= high)]
    median: F64 = (at_low + at_high) / 2
    return median
