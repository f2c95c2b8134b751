"""What came of a round: its measured change beside the predicted one, as far as the measurements can tell.

Runs of the same code are measurements of one thing. By how much they differ is the noise between runs, which the steps
of one run cannot show: a change within it is never called faster or slower.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from core.change_range import CLEAR, Range, change_range, is_calm, pace_change
from core.project import Figures, Iteration

NOISE_PCT = 5.0  # successive runs of the same code differ by about as much on a quiet machine
GAIN_PCT = 1.0  # a smaller change of the measured step is called no gain
SLOWED = 1.2  # the step while recorded, of the one without the profiler, or the other way round: more is worth saying
CROWDED_PCT = 20.0  # of the timing, waited for cores that the script's own threads had: that is no accident
LARGEST_SPREAD_PCT = 25.0  # steps that differ more among themselves say little about some per cent


@dataclass(frozen=True)
class Judgement:
    """A prediction beside what was measured; times of a step in ns, None is unknown."""

    measure: str  # "sustained" | "wall" | "host" | ""
    before_ns: float | None  # the mean, where the code before was measured several times
    after_ns: float | None
    predicted_pct: float | None  # change predicted, of the step before; negative is faster
    measured_pct: float | None
    outcome: str  # right | better | worse | unclear (the measurements are too noisy to tell) | unknown
    reasons: tuple[
        str, ...
    ] = ()  # codes: still_found, new_found, profiler, crowded; same_code, repeat, spread, machine, pace
    recorded_ns: tuple[float, float] | None = None  # both sustained steps while recorded, where `measure` is "wall"
    repeat_pct: float | None = None  # by how much runs of the same code differ, of the longest; None: run only once
    baseline: tuple[int, ...] = ()  # numbers of the rounds that ``before_ns`` is the mean of

    is_gain: bool | None = None  # whether the step became shorter; None where the measurements cannot tell
    range_pct: Range | None = None  # the change, once what the machine did meanwhile is allowed for
    waited_pct: tuple[float, float] | None = None  # of the timings, while other programs had the cores
    pace_pct: float | None = None  # how much longer a fixed piece of work took; None: as long as usual, or not known

    @property
    def off_by_pct(self) -> float | None:
        """Measured minus predicted change, in points."""
        if self.predicted_pct is None or self.measured_pct is None:
            return None
        return self.measured_pct - self.predicted_pct


def is_same_code(one: Iteration, other: Iteration) -> bool:
    """Whether two rounds ran the same changed copy, or the same state of the user's own files."""
    if one.copy or other.copy:
        return one.copy == other.copy
    ran = [i.number if i.again is None else i.again for i in (one, other)]
    return ran[0] == ran[1]


def judge(before: Iteration, after: Iteration, rounds: Sequence[Iteration] = ()) -> Judgement:
    """Compare what was predicted for an iteration with what its run measured.

    The step without the profiler counts where both runs measured it: it is what training takes. The prediction is of
    the sustained step while recorded, and is compared as a share of the step. ``rounds`` are all of the project: those
    that ran the code before once more count as measurements of it, and how far runs of the same code lie apart, before
    or after, is how far a change has to go to be one.
    """
    names = ("wall_ns", "sustained_ns", "host_ns")
    field = next((n for n in names if getattr(before.figures, n) and getattr(after.figures, n)), "")
    measure = field.removesuffix("_ns")
    again = is_same_code(before, after)
    olds = _undisturbed([before, *([] if again else _repeats(before, rounds, field))], measure)
    same = _undisturbed([after, *([] if again else _repeats(after, rounds, field))], measure)
    news = [after, *(i for i in same if i is not after)]
    old, new = (_mean([getattr(i.figures, field) for i in runs]) if field else None for runs in (olds, [after]))
    measured = None if old is None or new is None else 100.0 * (new - old) / old
    base = before.figures.sustained_ns
    predicted = None
    if after.predicted_ns is not None and base:
        predicted = 100.0 * (after.predicted_ns - base) / base
    ratio = max(_ratio([getattr(i.figures, field) for i in group]) for group in (olds, news)) if field else 1.0
    old_figures, new_figures = ([i.figures for i in group] for group in (olds, news))
    noise = ("same_code",) if again else noise_of(old_figures, new_figures, measured)
    if not again and old and new and ratio > 1.0 and abs(math.log(new / old)) <= math.log(ratio):
        noise = ("repeat", *noise)
    bounds = change_range(old_figures, after.figures) if measure == "wall" else None
    outcome, gain = "unknown" if measured is None else "unclear", None
    if measure == "wall" and not again:
        noise = with_pace(beside_far(noise, old_figures, after.figures, measured), [*old_figures, after.figures])
    reasons = noise
    if not noise:
        outcome, gain = _told(measured, predicted, bounds)
        outcome = "right" if gain and _held_by_all(before, after, rounds, field, predicted) else outcome
        reasons = _reasons(before, after, outcome)
        if measured is not None and (gain is None or outcome == "unclear"):
            reasons = (*reasons, why_open(old_figures, after.figures))
    elif noise == ("repeat",) or (set(noise) <= {"repeat", "spread"} and min(len(olds), len(news)) > 1):
        outcome = _told_by_all(olds, news, field, predicted, bounds, ratio)
        reasons = (*(r for r in noise if r != "spread" or outcome == "unclear"), *_reasons(before, after, outcome))
    past, now = _mean([i.figures.sustained_ns for i in olds]), after.figures.sustained_ns
    pair = (past, now) if measure == "wall" and past and now else None
    differ = 100.0 * (1.0 - 1.0 / ratio) if max(len(olds), len(news)) > 1 else None
    pace = pace_change(old_figures, after.figures) if measure == "wall" else None
    return Judgement(
        measure,
        old,
        new,
        predicted,
        measured,
        outcome,
        reasons,
        pair,
        differ,
        tuple(sorted(i.number for i in olds)),
        gain,
        bounds,
        (max(f.waited_pct or 0.0 for f in old_figures), after.figures.waited_pct or 0.0) if bounds else None,
        None if pace is None else 100.0 * (pace - 1.0),
    )


def _told(measured: float | None, predicted: float | None, bounds: Range | None) -> tuple[str, bool | None]:
    """What can be said of a prediction and of the gain: the same at both ends of the change's range, or nothing."""
    if measured is None:
        return "unknown", None
    low, high = bounds or (measured, measured)
    gain = is_shorter(measured, (low, high))
    if predicted is None:
        return "unknown" if gain is not None else "unclear", gain
    named = _named(measured - predicted)
    if named == "right":
        sure = max(predicted - low, high - predicted) <= 2.0 * NOISE_PCT
    else:
        sure = _named(low - predicted) == _named(high - predicted) == named
    return named if sure else "unclear", gain


def _told_by_all(
    olds: Sequence[Iteration],
    news: Sequence[Iteration],
    field: str,
    predicted: float | None,
    bounds: Range | None,
    ratio: float,
) -> str:
    """How a prediction is wrong whichever runs of both codes are compared; "unclear" where it may have held.

    ``ratio``: of two runs of the same code; a code that ran once could lie as far off as the other's runs do.
    """
    before, after = ([float(getattr(i.figures, field)) for i in group] for group in (olds, news))
    low, high = (100.0 * (new / old - 1.0) for new, old in ((min(after), max(before)), (max(after), min(before))))
    if min(len(olds), len(news)) < 2:
        low, high = (100.0 * (times - 1.0) for times in ((1.0 + low / 100.0) / ratio, (1.0 + high / 100.0) * ratio))
    if bounds is not None:
        low, high = min(low, bounds[0]), max(high, bounds[1])
    if predicted is None or _named(low - predicted) != _named(high - predicted):
        return "unclear"
    named = _named(low - predicted)
    return named if named != "right" else "unclear"


def _held_by_all(
    before: Iteration, after: Iteration, rounds: Sequence[Iteration], field: str, predicted: float | None
) -> bool:
    """Whether both codes ran several times, disturbed or not, and each pair of runs comes to what was predicted."""
    olds, news = ([one, *_repeats(one, rounds, field)] for one in (before, after))
    if predicted is None or min(len(olds), len(news)) < 2:
        return False
    changes = [100.0 * (getattr(n.figures, field) / getattr(o.figures, field) - 1.0) for o in olds for n in news]
    return all(_named(change - predicted) == "right" for change in changes)


def _named(off: float) -> str:
    return "right" if abs(off) <= NOISE_PCT else "better" if off < 0 else "worse"


def is_shorter(measured: float, bounds: Range | None) -> bool | None:
    """Whether a step became shorter by its measured change and the range of that; None where both is possible."""
    low, high = bounds or (measured, measured)
    if measured <= -GAIN_PCT:
        return True if high <= -GAIN_PCT else None
    return False if low > -NOISE_PCT else None


def why_open(before: Sequence[Figures], after: Figures) -> str:
    """Whether it is the machine that leaves a change open, or the steps, which scatter."""
    sides = [*before, after]
    moved = pace_change(before, after) is not None or not all(is_calm(f) for f in sides)
    waited = max(f.waited_pct or 0.0 for f in sides)
    return "pace" if moved or waited > CLEAR * max(f.wall_error_pct or 0.0 for f in sides) else "spread"


def _undisturbed(rounds: list[Iteration], measure: str) -> list[Iteration]:
    """Measurements of one code: those that other programs left alone, where there are any."""
    calm = [i for i in rounds if is_calm(i.figures)] if measure == "wall" else []
    return calm or rounds


def _repeats(one: Iteration, rounds: Sequence[Iteration], field: str) -> list[Iteration]:
    """Other rounds of the same code that measured the same thing."""
    others = [i for i in rounds if i.number != one.number and is_same_code(i, one)]
    return [i for i in others if field and getattr(i.figures, field)]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value]
    return sum(known) / len(known) if known else None


def _ratio(values: Sequence[float]) -> float:
    """The longest of several measurements of one thing, of the shortest."""
    return max(values) / min(values)


def noise_of(before: Sequence[Figures], after: Sequence[Figures], change_pct: float | None = None) -> tuple[str, ...]:
    """Why a change of the step cannot be told from chance by the runs themselves: codes, none where it can.

    Each side holds all runs of one code. Steps that differ much among themselves hide a small change, not one far
    beyond the error of their means; but that error knows nothing of what changes between runs. So where no code ran
    twice, the steps of both have to lie apart as well: all but one of each run, where there are enough of them. Where
    other programs were busy (`is_busy`, unless the run knows that they were not), only runs that were repeated on both
    sides can tell.
    """
    sides, reasons = [*before, *after], []
    pair = len(sides) == 2 and change_pct is not None
    inner = _known([s.inner_error_pct for s in sides]) if pair else None
    errors = inner or _known([s.error_pct for s in sides])
    clear = change_pct is not None and errors is not None and abs(change_pct) > CLEAR * math.hypot(*errors)
    if clear and pair and change_pct is not None:
        clear = (_are_inner_apart if inner else _are_apart)(before[0], after[0], change_pct)
    if not clear and any(s.spread_pct is not None and s.spread_pct > LARGEST_SPREAD_PCT for s in sides):
        reasons.append("spread")
    unsure = [s for s in sides if s.waited_pct is None or not is_calm(s)]
    if any(is_busy(s.wall_ns, s.sustained_ns, s.host_ns) for s in unsure) and min(len(before), len(after)) < 2:
        reasons.append("machine")
    return tuple(reasons)


def with_pace(noise: tuple[str, ...], sides: Sequence[Figures]) -> tuple[str, ...]:
    """Reasons of `noise_of`, where it is known that other programs were busy: then that is said, and no guess."""
    if not noise or all(is_calm(s) for s in sides):
        return noise
    return (*(reason for reason in noise if reason != "machine"), "pace")


def is_busy(wall_ns: float | None, sustained_ns: float | None, host_ns: float | None) -> bool:
    """Whether a step without the profiler took longer than one with it, which the profiler only makes longer.

    Something else ran on the machine then, or the steps that were not recorded have more to do.
    """
    if not wall_ns or not sustained_ns or not host_ns:
        return False
    return wall_ns > SLOWED * max(sustained_ns, host_ns)


def beside_far(
    noise: tuple[str, ...], before: Sequence[Figures], after: Figures, change_pct: float | None
) -> tuple[str, ...]:
    """Reasons of `noise_of`, without the recorded steps' scatter where a change is far beyond that of the timed ones.

    The few recorded ones say less, and nothing where batches come in bursts: one step in two or four is long then.
    """
    errors = _known([f.wall_error_pct for f in (*before, after)])
    far = errors is not None and abs(change_pct or 0.0) > max(LARGEST_SPREAD_PCT, CLEAR * math.hypot(*errors))
    return tuple(reason for reason in noise if reason != "spread" or not far)


def _are_apart(before: Figures, after: Figures, change_pct: float) -> bool:
    """Whether even the steps of two runs that are nearest to each other have the order of the runs' own times."""
    old, new = ((f.spread_pct or 0.0) / 100.0 for f in (before, after))
    times = 1.0 + change_pct / 100.0
    return times * (1.0 + new) < 1.0 - old if change_pct < 0 else times * (1.0 - new) > 1.0 + old


def _are_inner_apart(before: Figures, after: Figures, change_pct: float) -> bool:
    """As `_are_apart`, of all steps of each run but the one that lies furthest out."""
    times = 1.0 + change_pct / 100.0
    if change_pct < 0:
        return times * (100.0 + (after.high_pct or 0.0)) < 100.0 + (before.low_pct or 0.0)
    return times * (100.0 + (after.low_pct or 0.0)) > 100.0 + (before.high_pct or 0.0)


def _known(values: Sequence[float | None]) -> list[float] | None:
    """The values, where all of them are known."""
    known = [value for value in values if value is not None]
    return known if known and len(known) == len(values) else None


def _reasons(before: Iteration, after: Iteration, outcome: str) -> tuple[str, ...]:
    """What can be told about why a prediction was off."""
    if outcome not in ("better", "worse"):
        return ()
    reasons = []
    if set(after.figures.rules) & {fix.rule_id for fix in after.fixes}:
        reasons.append("still_found")
    if set(after.figures.rules) - set(before.figures.rules):
        reasons.append("new_found")
    pairs = [(s.host_ns, s.wall_ns) for s in (before.figures, after.figures)]
    known = [host / wall for host, wall in pairs if host and wall]
    if known and min(known) > 1.0 and max(known) > SLOWED:
        reasons.append("profiler")
    crowded = [f.crowded_pct or 0.0 for f in (before.figures, after.figures)]
    if outcome == "worse" and crowded[1] > CROWDED_PCT and crowded[1] > 2.0 * crowded[0]:
        reasons.append("crowded")
    return tuple(reasons)
