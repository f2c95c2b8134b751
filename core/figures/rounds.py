"""After how many steps a loop does the same again, and what its longer steps take of its time."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.figures.lookup import View, view_of
from core.figures.model import Figures
from core.figures.steps import OUTLIER_RATIO, far, keeps_pace, update_rounds
from core.tables import I32, I64, Bool, StepTable
from core.trace import Trace

# So many long steps at equal distances are no chance; two always lie at one distance.
_LEAST = 3
# Lengths of steps that differ by less than this share of their mean have no rhythm worth looking for; in a rhythm they
# differ from those a round later by this share of what neighbours differ by.
_UNEVEN_SHARE, _ALIKE_SHARE = 0.05, 1 / 3
# What the longer steps take beside an ordinary one is told with the verdict from this share of the time on.
TOLD_PCT = 10.0

IN_TURN = (
    "One step in {every:.0f} does more than the others: what it does besides takes {share_pct:.0f} % of the time, and "
    "is part of all figures per step."
)
LEFT_OUT = (
    "Besides, {count} {count|step|steps} took far longer than the others and {count|is|are} left out of the figures "
    "per step: the time that {count|it adds|they add} is {share_pct:.0f} % of all recorded steps."
)


def rounds(
    view: View,
    steps: StepTable,
    step_of: I32,
    period: I64,
    device_end: I64,
    sync_wait: I64,
    ratio: float = OUTLIER_RATIO,
) -> tuple[Bool, int]:
    """Steps that are no outliers however long they take, and how many steps make a round of the loop.

    An optimizer's step after several micro batches (`update_rounds`), and longer steps that come back after every so
    many (an evaluation, a checkpoint, a log), are the loop's own rhythm; and so is one around which the device keeps
    its pace (`keeps_pace`).

    Parameters
    ----------
    step_of
        int32[n_slices], step of every slice.
    period, device_end, sync_wait
        As in `StepFigures`: int64[n_steps], ns, -1 where unknown.
    ratio
        How many times the median of the others is no longer usual.

    Returns
    -------
    tuple
        bool[n_steps], and the number of steps of a round: 1 where each does the same.
    """
    updates, every = update_rounds(view, steps, step_of, ratio)
    paced = updates | keeps_pace(steps, period, device_end, sync_wait, ratio)
    again, apart = _in_turn(steps, paced, ratio)
    both = int(np.lcm(every, apart))
    if 2 * both > len(steps):
        return paced, every
    return paced | again, both


def with_like_lengths(steps: StepTable, counted: Bool, period: I64, every: int) -> int:
    """Number of steps of a round, where those that count have lengths that come back: a multiple of ``every``."""
    if len(np.unique(steps.thread_id)) != 1:
        return every
    alike = max(_repeat(np.where(counted, lengths, -1)) for lengths in (period, steps.end_ns - steps.start_ns))
    both = int(np.lcm(every, alike))
    return both if 2 * both <= np.count_nonzero(counted) else every


def _repeat(lengths: I64) -> int:
    """After how many steps their lengths, -1 where unknown, come back: 1 where they do not, or hardly differ.

    Every step must have another one that far from it, and differ less from it than from its neighbours.
    """
    known = lengths > 0
    near = known[1:] & known[:-1]
    if np.count_nonzero(near) < _LEAST or lengths[known].std() < _UNEVEN_SHARE * lengths[known].mean():
        return 1
    next_to = float(np.square(np.diff(lengths)[near], dtype=np.float64).mean())
    for every in range(2, len(lengths) // 2 + 1):
        pair = known[every:] & known[:-every]
        paired = np.zeros(len(lengths), dtype=bool)
        paired[every:] |= pair
        paired[:-every] |= pair
        if np.count_nonzero(pair) < _LEAST - 1 or (known & ~paired).any():
            continue
        apart = float(np.square((lengths[every:] - lengths[:-every])[pair], dtype=np.float64).mean())
        if apart <= _ALIKE_SHARE**2 * next_to:
            return every
    return 1


def loop_rounds(view: View, figures: Figures, ratio: float = OUTLIER_RATIO) -> tuple[Bool, int]:
    """Return the same of a trace whose figures are known."""
    own = figures.step_figures
    waits, ends = own.sync_wait_ns, own.device_end_ns
    return rounds(view, figures.steps, figures.step_of, own.period_ns, ends, waits, ratio)


def _in_turn(steps: StepTable, paced: Bool, ratio: float) -> tuple[Bool, int]:
    """Far longer steps that come back after every so many, from one end of the recording to the other."""
    none = np.zeros(len(steps), dtype=bool)
    duration = steps.end_ns - steps.start_ns
    longer = far(duration, ratio)
    if len(np.unique(steps.thread_id)) != 1 or not (longer & ~paced).any():
        return none, 1
    for rows in (np.flatnonzero(longer & ~paced), np.flatnonzero(longer)):
        every = _apart(rows, len(steps))
        if every > 1 and len(rows) >= _LEAST and not far(duration[rows], ratio).any():
            none[rows] = True
            return none, every
    return none, 1


def _apart(rows: I64, count: int) -> int:
    """Distance of rows that come back after every so many of all, from the first round to the last; 1 for others."""
    apart = np.unique(np.diff(rows))
    if len(apart) != 1 or rows[0] >= apart[0] or count - rows[-1] > apart[0]:
        return 1
    return int(apart[0])


def more_words(trace: Trace, figures: Figures) -> tuple[str, dict[str, Any]]:
    """What to say beside the verdict of steps that take longer, as a template with its values; empty without."""
    steps, own = figures.steps, figures.step_figures
    left_out = np.array([why.startswith("outlier") for why in own.why_not], dtype=bool) & ~own.counted
    if left_out.any():
        share_pct = _added_pct(figures, left_out)
        return (LEFT_OUT, {"count": int(left_out.sum()), "share_pct": share_pct}) if share_pct >= TOLD_PCT else ("", {})
    longer = far(np.where(own.counted, own.dur_ns, -1), OUTLIER_RATIO)
    if not longer.any():
        return "", {}
    view = view_of(trace)
    rows = np.flatnonzero(longer & ~update_rounds(view, steps, figures.step_of)[0])
    every = _apart(rows, int(np.flatnonzero(own.counted)[-1]) + 1) if len(rows) >= _LEAST else 1
    if every < 2:
        return "", {}
    share_pct = _added_pct(figures, longer, every)
    return (IN_TURN, {"every": every, "share_pct": share_pct}) if share_pct >= TOLD_PCT else ("", {})


def _added_pct(figures: Figures, longer: Bool, every: int = 0) -> float:
    """What some steps take beside an ordinary one, % of the time of all: by periods where those are known.

    With one such step in ``every``, % of a whole round: the recording may hold one more or less than its share. A long
    step on the host may only wait for what was queued before it; the period shows that.
    """
    own = figures.step_figures
    time = own.period_ns if (own.period_ns[longer] > 0).any() else own.dur_ns
    known = (time > 0) & (longer | own.counted)
    if not (known & ~longer).any():
        return 0.0
    usual = float(np.median(time[known & ~longer]))
    added = float((time[known & longer] - usual).sum())
    if every and (known & longer).any():
        each = added / int((known & longer).sum())
        return max(100.0 * each / (every * usual + each), 0.0)
    return max(100.0 * added / float(time[known].sum()), 0.0)
