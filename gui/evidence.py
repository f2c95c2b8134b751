"""Where to look: from slices to a window of time, in one typical step. Pure functions over the tables."""

from __future__ import annotations

import numpy as np

from core.figures.model import Figures
from core.kinds import SliceKind
from core.suggestions import Suggestion
from core.tables import I64, Bool
from core.trace import Trace

MARGIN = 0.08  # of the shown stretch, on each side
SINGLE_SHARE = 0.35  # share of the view that one slice fills
MIN_WINDOW_NS = 2_000
PARTNERS_AT_MOST = 500  # calls of one step whose work is looked for


def slices_of(suggestion: Suggestion) -> tuple[int, ...]:
    """All slices of a suggestion's evidence, in order, once each."""
    return tuple(dict.fromkeys(i for e in suggestion.evidence for i in e.slices))


def lead_of(trace: Trace, figures: Figures | None, suggestion: Suggestion) -> int:
    """Slice that stands for a suggestion: one of its first evidence, in the step that is shown; -1 none.

    It is the longest, or, where the evidence tells what is typical, one that is closest to the median of all.
    """
    ids = next((e.slices for e in suggestion.evidence if e.slices), ())
    typical = any(is_typical(e.label) and e.slices for e in suggestion.evidence)
    return lead_among(trace, figures, ids, shown=slices_of(suggestion), typical=typical)


def is_typical(label: str) -> bool:
    """Whether evidence with this label tells what is typical of its slices; of a typical step the longest counts."""
    return "ypical" in label and "typical step" not in label


def lead_among(
    trace: Trace,
    figures: Figures | None,
    slice_ids: tuple[int, ...],
    *,
    shown: tuple[int, ...] | None = None,
    kept: int = -1,
    typical: bool = False,
) -> int:
    """Slice that stands for others, in a typical step of them (of ``shown``, if given and they are there); -1 none.

    It is ``kept`` where that is one of them, else the longest, or, with ``typical``, one that is closest to the median
    of all.
    """
    every = ids = _inside(trace, slice_ids)
    if not len(ids):
        return -1
    if figures is not None and len(figures.steps):
        own = figures.step_of[ids]
        step = _best_step(figures, own if shown is None else figures.step_of[_inside(trace, shown)])
        ids = ids[own == (step if step in own else _best_step(figures, own))]
    if kept in ids:
        return kept
    if typical:
        usual = np.median(trace.slices.dur_ns[every])
        return int(ids[np.argmin(np.abs(trace.slices.dur_ns[ids] - usual))])
    return int(ids[np.argmax(trace.slices.dur_ns[ids])])


def _inside(trace: Trace, slice_ids: tuple[int, ...]) -> I64:
    ids = np.asarray(slice_ids, np.int64)
    inside: I64 = ids[(ids >= 0) & (ids < len(trace.slices))]
    return inside


def window_about(trace: Trace, slice_ids: tuple[int, ...]) -> tuple[float, float]:
    """Window in which the slices together fill `SINGLE_SHARE` of the width, ns."""
    ids = np.asarray(slice_ids, np.int64)
    first, last = int(trace.slices.start_ns[ids].min()), int(trace.end_ns[ids].max())
    width = max((last - first) / SINGLE_SHARE, MIN_WINDOW_NS)
    middle = (first + last) / 2
    return middle - width / 2, middle + width / 2


def window_of(trace: Trace, figures: Figures | None, slice_ids: tuple[int, ...], lead: int = -1) -> tuple[float, float]:
    """Window that shows the slices of one typical step and the device work they launched; without steps, of all.

    Parameters
    ----------
    slice_ids
        Evidence; those outside the trace are ignored.
    lead
        One of them that is to be seen in any case: its step is shown, or what is around it.
    """
    ids = _inside(trace, slice_ids)
    if not len(ids):
        return float(trace.span_ns[0]), float(trace.span_ns[1])
    if figures is not None and len(figures.steps):
        of_step = figures.step_of[ids]
        step = _best_step(figures, of_step) if lead < 0 else int(figures.step_of[lead])
        if step >= 0:
            ids = ids[of_step == step]
            first, last = int(trace.slices.start_ns[ids].min()), int(trace.end_ns[ids].max())
            start, end = int(figures.steps.start_ns[step]), int(figures.steps.end_ns[step])
            if (trace.slices.kind[ids] == SliceKind.STEP).all():  # with what it made the device do
                return _padded(start, max(end, _device_end(figures, step)), 0.0)
            # A stretch much shorter than the step is shown with its surroundings, one as long as it with all of it.
            if last - first < 0.25 * (end - start):
                width = max((last - first) * 2.5, 0.25 * (end - start))
                first, last = _with_partners(trace, ids, (first, last), end - start)
                return _padded(first, last, width)
            return _padded(min(first, start), max(last, end), 0.0)
    if len(ids) > 1:
        ids = _densest(trace, ids, lead)
    return window_about(trace, tuple(int(i) for i in ids))


def _device_end(figures: Figures, step: int) -> int:
    """End of the device work that a step launched, ns; 0 when it is not known."""
    ends = figures.step_figures.device_end_ns
    return int(ends[step]) if len(ends) == len(figures.steps) else 0


def _with_partners(trace: Trace, ids: I64, stretch: tuple[int, int], most_ns: float) -> tuple[int, int]:
    """Return the stretch of slices, with the calls that launched those of a device and the work that calls launched.

    They are left out where all together would be longer than ``most_ns``.
    """
    launches = trace.links.launch_of[ids]
    ends = trace.slices.subtree_end
    work = [trace.links.device_work_of(int(i), int(ends[i])) for i in ids[launches < 0][:PARTNERS_AT_MOST]]
    others = np.concatenate([launches[launches >= 0], *work]).astype(np.int64)
    if not len(others):
        return stretch
    first = min(stretch[0], int(trace.slices.start_ns[others].min()))
    last = max(stretch[1], int(trace.end_ns[others].max()))
    return (first, last) if last - first <= most_ns else stretch


def _padded(first: float, last: float, width: float) -> tuple[float, float]:
    middle, width = (first + last) / 2, max(width, last - first, MIN_WINDOW_NS)
    return middle - width * (0.5 + MARGIN), middle + width * (0.5 + MARGIN)


def _best_step(figures: Figures, of_step: np.ndarray) -> int:
    """Counted step with evidence whose duration is nearest the median; any step with evidence else; -1 none."""
    steps = np.unique(of_step[of_step >= 0])
    if not len(steps):
        return -1
    counted = steps[_counted(figures)[steps]]
    pool = counted if len(counted) else steps
    dur = _durations(figures)
    all_counted = dur[_counted(figures)]
    median = np.median(all_counted if len(all_counted) else dur)
    return int(pool[np.argmin(np.abs(dur[pool] - median))])


def _densest(trace: Trace, ids: np.ndarray, lead: int) -> np.ndarray:
    """Of slices without steps: the lead, or the longest one, and those within ten times its length around it."""
    middle = lead if lead >= 0 else int(ids[np.argmax(trace.slices.dur_ns[ids])])
    reach = max(int(trace.slices.dur_ns[middle]) * 10, MIN_WINDOW_NS)
    start = trace.slices.start_ns[ids]
    near = (start > trace.slices.start_ns[middle] - reach) & (start < trace.end_ns[middle] + reach)
    picked: np.ndarray = ids[near & (trace.slices.dur_ns[ids] <= reach)]
    return picked


def _counted(figures: Figures) -> Bool:
    counted = figures.step_figures.counted
    return counted if len(counted) == len(figures.steps) else np.ones(len(figures.steps), np.bool_)


def _durations(figures: Figures) -> I64:
    dur: I64 = figures.steps.end_ns - figures.steps.start_ns
    return dur


def typical_step(figures: Figures) -> tuple[float, float] | None:
    """Window of the counted step nearest the median, with a margin; None without steps."""
    if not len(figures.steps):
        return None
    step = _best_step(figures, np.arange(len(figures.steps)))
    start, end = float(figures.steps.start_ns[step]), float(figures.steps.end_ns[step])
    f = figures.step_figures
    if len(f.device_end_ns) == len(figures.steps):
        device_end = float(f.device_end_ns[step])
        device_start, dur = float(f.device_start_ns[step]), end - start
        if device_end > end and device_end - end < dur:  # a short lag belongs to the picture
            end = device_end
        elif 0 <= device_start < device_end and device_end - device_start > 3 * dur:
            # The CPU only queues the step: what takes the time is its work on the device.
            return _padded(min(start, device_start) if device_start - start < dur else device_start, device_end, 0.0)
    return _padded(start, end, 0.0)
