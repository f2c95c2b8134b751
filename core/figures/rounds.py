"""After how many steps a loop does the same again, and what its longer steps take of its time."""

from __future__ import annotations

from typing import Any

import numpy as np

from core import sets
from core.figures.lookup import View, view_of
from core.figures.model import Figures, StepFigures
from core.figures.steps import BESIDE_OUTLIER, OUTLIER_RATIO, far, keeps_pace, update_rounds
from core.kinds import GapCause, SliceKind
from core.tables import F64, I32, I64, Bool, StepTable
from core.trace import Trace

# So many long steps at equal distances are no chance; two always lie at one distance.
_LEAST = 3
_LEAST_LATE = 2  # late batches: one may come late in any run
# Lengths of steps that differ by less than this share of their mean have no rhythm worth looking for; in a rhythm they
# differ from those a round later by this share of what neighbours differ by.
_UNEVEN_SHARE, _ALIKE_SHARE = 0.05, 1 / 3
_NEAR = 1.5  # how many times shorter than the shortest of the far longer steps others of their kind may be
# What the longer steps take beside an ordinary one is told with the verdict from this share of the time on.
TOLD_PCT = 10.0
_LONG_TIMES = 2.0  # the usual length: steps between this and outliers are told, too
_FEW_SHARE = 1 / 3  # of the steps: more long ones are no exceptions
# Steps that get shorter or longer: how many at least and at most, by what share, and how many more pairs of them are in
# order than not, of all pairs and in standard deviations of what chance makes (Kendall's tau).
_LEAST_TREND, _MOST_TREND, _TREND_SHARE, _IN_ORDER, _NO_CHANCE = 8, 256, 0.1, 0.6, 3.0

IN_TURN = (
    "One step in {every:.0f} does more than the others: what it does besides takes {share_pct:.0f} % of the time, and "
    "is part of all figures per step."
)
LEFT_OUT = (
    "Besides, {count} {count|step|steps} took far longer than the others and {count|is|are} left out of the figures "
    "per step: the time that {count|it adds|they add} is {share_pct:.0f} % of all recorded steps. "
    "With {count|it|them} a step takes {with_ms:time} on average."
)
NOW_AND_THEN = (
    "{count} of {steps} steps {count|takes|take} at least {times:.0f} times as long as the others: "
    "what {count|it does|they do} besides takes {share_pct:.0f} % of the time, and is part of all figures per step."
)
SHORTER = (
    "The steps get shorter: the first quarter of them takes {first_ms:time} each, the last {last_ms:time}. "
    "The figures per step are means of all; a loop that goes on may be faster than they say."
)
LONGER = (
    "The steps get longer: the first quarter of them takes {first_ms:time} each, the last {last_ms:time}. "
    "The figures per step are means of all; a loop that goes on may be slower than they say."
)
HEALTHY_BUT = "Healthy but for {count} {count|step|steps}"
# Where most of that time went, by the cause of the device's idling; -1 for the device's own work.
_OWN_WORK, _NOTHING = -1, -2
WENT_TO = {
    _OWN_WORK: " Of that {most_pct:.0f} % is device work that the others do not have.",
    int(GapCause.LOADER): " For {most_pct:.0f} % of that the device idles while the loader makes batches.",
    int(GapCause.PYTHON): " For {most_pct:.0f} % of that the device idles while Python runs on the CPU.",
    int(GapCause.LAUNCH): " For {most_pct:.0f} % of that the device idles because work is launched slowly.",
    int(GapCause.COMPILE): " For {most_pct:.0f} % of that the device idles while code is compiled or loaded.",
    int(GapCause.COLLECTOR): " For {most_pct:.0f} % of that the device idles while Python collects garbage.",
    int(GapCause.SYNC): " For {most_pct:.0f} % of that the device idles after waits of the CPU.",
    int(GapCause.COPY): " For {most_pct:.0f} % of that the device idles for copies that the CPU waits for.",
    int(GapCause.ALLOC): " For {most_pct:.0f} % of that the device idles while memory is allocated or freed.",
    int(GapCause.COMMUNICATION): " For {most_pct:.0f} % of that the device idles while ranks communicate.",
}
LEFT_OUT_WENT_TO = {cause: LEFT_OUT + words for cause, words in WENT_TO.items()}
_MOST = 0.5


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
    its pace (`keeps_pace`), or that waits for the loader as others do (`waits_for_batches`).

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
    paced |= waits_for_batches(view, steps, step_of, ratio)
    again, apart = _in_turn(steps, paced, ratio)
    both = int(np.lcm(every, apart))
    if 2 * both > len(steps):
        return paced, every
    return paced | again, both


def with_like_lengths(steps: StepTable, counted: Bool, period: I64, every: int) -> int:
    """Number of steps of a round, where those that count have lengths that come back: a multiple of ``every``."""
    if len(sets.distinct(steps.thread_id)) != 1:
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


def waits_for_batches(view: View, steps: StepTable, step_of: I32, ratio: float = OUTLIER_RATIO) -> Bool:
    """Steps that take far longer than the others for the loader alone, where several do: bool[n_steps].

    Processes of a loader deliver in bursts: a loop that they keep waiting waits in one step for many. One late batch is
    an outlier, and so is one that is far later than the others that came late: the start of an epoch.
    """
    late = np.zeros(len(steps), dtype=bool)
    loader = view.named(view.by_kind(SliceKind.RANGE), view.names.loader)
    loader = loader[step_of[loader] >= 0]
    if not len(loader):
        return late
    fetching = np.bincount(step_of[loader], weights=view.trace.slices.dur_ns[loader], minlength=len(steps))
    duration = steps.end_ns - steps.start_ns
    own = np.maximum(duration - fetching.astype(np.int64), 0)
    rows = (far(duration, ratio) & ~far(own, ratio)).nonzero()[0]
    while len(rows) >= _LEAST_LATE:  # a burst may come in a large part and small ones
        longest = far(duration[rows], ratio)
        late[rows[~longest]], rows = True, rows[longest]
    return late


def _in_turn(steps: StepTable, paced: Bool, ratio: float) -> tuple[Bool, int]:
    """Far longer steps that come back after every so many, from one end of the recording to the other."""
    none = np.zeros(len(steps), dtype=bool)
    duration = steps.end_ns - steps.start_ns
    longer = far(duration, ratio)
    if len(sets.distinct(steps.thread_id)) != 1 or not (longer & ~paced).any():
        return none, 1
    both = (longer, _of_their_kind(duration, longer))
    for rows in ((long & among).nonzero()[0] for long in both for among in (~paced, True)):
        every = _apart(rows, len(steps))
        if every > 1 and len(rows) >= _LEAST and not far(duration[rows], ratio).any():
            none[rows] = True
            return none, every
    return none, 1


def _of_their_kind(duration: I64, longer: Bool) -> Bool:
    """Far longer steps, and those not far below that are parted from the shorter ones by the widest gap there: bool[n].

    Like steps that differ a little may lie on both sides of what is called far longer.
    """
    if not longer.any():
        return longer
    least = int(duration[longer].min())
    ranked = np.sort(duration[(duration > 0) & (duration <= least)])
    above = (_NEAR * ranked[1:] >= least).nonzero()[0] + 1
    if not len(above):
        return longer
    first = above[np.argmax(ranked[above] / ranked[above - 1])]
    kind: Bool = longer | (duration >= ranked[first])
    return kind


def _apart(rows: I64, count: int) -> int:
    """Distance of rows that come back after every so many of all, from the first round to the last; 1 for others."""
    apart = sets.distinct(np.diff(rows))
    if len(apart) != 1 or rows[0] >= apart[0] or count - rows[-1] > apart[0]:
        return 1
    return int(apart[0])


def more_words(trace: Trace, figures: Figures) -> tuple[str, dict[str, Any]]:
    """What to say beside the verdict of steps that differ, as a template with its values; empty without."""
    left_out = _outliers(figures.step_figures)
    if left_out.any():
        count, share_pct = outliers_told(figures)
        if not count:
            return "", {}
        cause, most_pct = _went_to(figures, left_out)
        values = {
            "count": count,
            "share_pct": share_pct,
            "most_pct": most_pct,
            "with_ms": _mean_with(figures, left_out),
        }
        return LEFT_OUT_WENT_TO.get(cause, LEFT_OUT), values
    longer = _longer_words(trace, figures)
    return longer if longer[0] else _trend_words(figures)


def _longer_words(trace: Trace, figures: Figures) -> tuple[str, dict[str, Any]]:
    """The same of steps that count and take longer than the others."""
    steps, own = figures.steps, figures.step_figures
    lengths = np.where(own.counted, own.dur_ns, -1)
    far_longer, long = far(lengths, OUTLIER_RATIO), far(lengths, _LONG_TIMES)
    if not long.any():
        return "", {}
    view = view_of(trace)
    known = update_rounds(view, steps, figures.step_of)[0] | waits_for_batches(view, steps, figures.step_of)
    for longer in (far_longer, _of_their_kind(lengths, far_longer), long):
        rows = (longer & ~known).nonzero()[0]
        every = _apart(rows, int(own.counted.nonzero()[0][-1]) + 1) if len(rows) >= _LEAST else 1
        share_pct = _added_pct(figures, longer, every) if every > 1 else 0.0
        if share_pct >= TOLD_PCT:
            return IN_TURN, {"every": every, "share_pct": share_pct}
    count, share_pct = int((long & ~known).sum()), _added_pct(figures, long & ~known)
    if 0 < count <= _FEW_SHARE * own.counted.sum() and share_pct >= TOLD_PCT:
        values = {"count": count, "steps": int(own.counted.sum()), "times": _LONG_TIMES, "share_pct": share_pct}
        return NOW_AND_THEN, values
    return "", {}


def _trend_words(figures: Figures) -> tuple[str, dict[str, Any]]:
    """What to say where the steps that count get shorter or longer from first to last."""
    if len(sets.distinct(figures.steps.thread_id)) != 1:
        return "", {}
    own = figures.step_figures
    times = own.period_ns[own.paced] if own.paced.any() else own.dur_ns[own.counted]
    every = own.round_steps
    times = times[: len(times) // every * every].reshape(-1, every).mean(axis=1)
    if len(times) < _LEAST_TREND:
        return "", {}
    if len(times) > _MOST_TREND:
        times = times[: len(times) // _MOST_TREND * _MOST_TREND].reshape(_MOST_TREND, -1).mean(axis=1)
    count = len(times)
    first, last = float(times[: count // 4].mean()), float(times[-(count // 4) :].mean())
    order = np.sign(times[None, :] - times[:, None])[np.triu_indices(count, 1)].mean()
    chance = np.sqrt(2 * (2 * count + 5) / (9 * count * (count - 1)))
    if abs(last - first) < _TREND_SHARE * max(first, last):
        return "", {}
    if abs(order) < max(_IN_ORDER, _NO_CHANCE * chance) and not _turns(times):
        return "", {}
    return LONGER if last > first else SHORTER, {"first_ms": first / 1e6, "last_ms": last / 1e6}


def _turns(times: F64) -> bool:
    """Whether all steps up to some one are shorter, by a tenth, than all after it, or longer."""
    part = slice(_LEAST_TREND // 2 - 1, len(times) - _LEAST_TREND // 2)
    below, above = (1 - _TREND_SHARE) * times, times
    low = np.minimum.accumulate(below[::-1])[::-1][1:], np.minimum.accumulate(below)[:-1]
    high = np.maximum.accumulate(above)[:-1], np.maximum.accumulate(above[::-1])[::-1][1:]
    return any(bool((least > most)[part].any()) for least, most in zip(low, high, strict=True))


def _outliers(own: StepFigures) -> Bool:
    """Steps that were left out as outliers: bool[n_steps]."""
    return np.array([why.startswith(("outlier", "beside")) for why in own.why_not], dtype=bool) & ~own.counted


def outliers_told(figures: Figures) -> tuple[int, float]:
    """Number of steps left out as outliers, and what they add, % of all recorded steps; zeros below `TOLD_PCT`."""
    left_out = _outliers(figures.step_figures)
    share_pct = _added_pct(figures, left_out) if left_out.any() else 0.0
    count = sum(left_out[i] and why != BESIDE_OUTLIER for i, why in enumerate(figures.step_figures.why_not))
    return (int(count), share_pct) if share_pct >= TOLD_PCT else (0, 0.0)


def _went_to(figures: Figures, longer: Bool) -> tuple[int, float]:
    """What most of the time went to that some steps take beside an ordinary one, as in `WENT_TO`, and its share, %.

    -2 where nothing took most of it, or it is not known.
    """
    parts, counted = figures.step_parts, figures.step_figures.counted
    if parts is None or not counted.any():
        return _NOTHING, 0.0
    known = longer & (parts.busy_ns >= 0)
    columns = np.column_stack((parts.busy_ns, parts.idle_ns))
    added = np.maximum(columns[known] - np.median(columns[counted], axis=0), 0.0).sum(axis=0)
    most, total = int(added.argmax()), float(added.sum())
    share = float(added[most]) / total if total > 0 else 0.0
    return (most - 1, 100.0 * share) if share >= _MOST else (_NOTHING, 0.0)


def _mean_with(figures: Figures, longer: Bool) -> float:
    """Mean time of the counted steps and of some others, ms: of the periods where those are known."""
    time = _times(figures.step_figures, longer)
    return float(time[(time > 0) & (longer | figures.step_figures.counted)].mean()) / 1e6


def _times(own: StepFigures, longer: Bool) -> I64:
    """What the steps take, ns: the periods where those of some longer ones are known, else on the host.

    A long step on the host may only wait for what was queued before it; the period shows that.
    """
    return own.period_ns if (own.period_ns[longer] > 0).any() else own.dur_ns


def _added_pct(figures: Figures, longer: Bool, every: int = 0) -> float:
    """What some steps take beside an ordinary one, % of the time of all: by periods where those are known.

    With one such step in ``every``, % of a whole round: the recording may hold one more or less than its share.
    """
    own, time = figures.step_figures, _times(figures.step_figures, longer)
    known = (time > 0) & (longer | own.counted)
    if not (known & ~longer).any():
        return 0.0
    usual = float(np.median(time[known & ~longer]))
    added = float((time[known & longer] - usual).sum())
    if every and (known & longer).any():
        each = added / int((known & longer).sum())
        return max(100.0 * each / (every * usual + each), 0.0)
    return max(100.0 * added / float(time[known].sum()), 0.0)
