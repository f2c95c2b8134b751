"""What the machine did while steps were timed, in sentences: how much of a time or a change may be its doing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from PySide6.QtCore import QCoreApplication

from core.change_range import CALM_PCT, is_calm, is_too_busy, shortest_step
from core.judging import Judgement
from core.project import Figures, Iteration
from core.run_folder import RunRecord
from gui import text
from gui.figure_reasons import untimed

translate = QCoreApplication.translate
STARTS_SLOWLY_NS, STARTS_TIMES = 2e9, 10.0  # a first step that takes so much longer, and so many steps, is told
MOST_TOLD_PCT = 500.0  # a change that may be larger is not put into figures


def disturbed(figures: Figures) -> str:
    """How short the step of a run may be that other programs disturbed."""
    least = shortest_step(figures)
    if least is None:
        return translate(
            "iterations",
            "Disturbed: while it was timed other programs kept its threads waiting, too long to say how short the step "
            "is on a quiet machine. Measure it again.",
        )
    words = translate(
        "iterations",
        "While it was timed other programs had the processor for up to {share} of the time, so the step may be as "
        "short as {time}. Measure it again.",
    )
    return words.format(share=text.percent(figures.waited_pct or 0.0), time=text.duration(least))


def pace_words(found: Judgement, rounds: Sequence[Iteration], cure: Callable[[], str] = str) -> list[str]:
    """What the machine did while steps were timed, and between which bounds the change lies; where that matters.

    ``cure`` names what to do where both codes cannot be measured again; it is asked only where that is told.
    """
    olds = disturbed_before(found, rounds)
    open_to = found.range_pct if "pace" in found.reasons else None
    other = cure() if olds or open_to is not None else ""
    sentences = _all_disturbed(olds, other)
    if open_to is None:
        return sentences
    again = [] if sentences else [other or translate("iterations", "Measure both again.")]  # named once
    before, after = found.waited_pct or (0.0, 0.0)
    if is_too_busy(max(before, after)):
        return [*sentences, _too_busy(is_too_busy(before), is_too_busy(after)), *again]
    if max(before, after) > CALM_PCT or found.pace_pct is None:
        words = translate(
            "iterations",
            "Other programs had the processor for {before} of the time while steps were timed before, and {after} now.",
        )
        sentences.append(words.format(before=text.percent(before), after=text.percent(after)))
    if found.pace_pct is not None:
        words = translate(
            "iterations", "The machine's own pace moved: a fixed piece of work took {change} beside this round."
        )
        sentences.append(words.format(change=text.change(found.pace_pct)))
    words = (
        translate("iterations", "Allowing for that, the change lies between {low} and {high}.")
        if open_to[1] < MOST_TOLD_PCT
        else translate("iterations", "These runs cannot tell the change.")
    )
    range_words = words.format(low=text.change(open_to[0]), high=text.change(open_to[1]))
    return [*sentences, range_words, *again]


def disturbed_before(found: Judgement, rounds: Sequence[Iteration]) -> list[Iteration]:
    """The runs of the code before, where there are several and other programs left none of them alone."""
    olds = [i for i in rounds if i.number in found.baseline]
    some = found.measure != "wall" or len(olds) < 2 or any(is_calm(i.figures) for i in olds)
    return [] if some else olds


def _all_disturbed(olds: Sequence[Iteration], other: str) -> list[str]:
    """That the mean of disturbed runs counts, as there is no other, and the cure: both again, or the ``other``."""
    if not olds:
        return []
    which = (
        translate("iterations", "Both runs of the code before were disturbed by other programs")
        if len(olds) == 2
        else translate("iterations", "All {count} runs of the code before were disturbed by other programs")
    ).format(count=len(olds))
    if other:
        return [translate("iterations", "{which}, so that their mean counts.").format(which=which), other]
    words = translate(
        "iterations",
        "{which}, so that their mean counts. Measure both again while nothing else runs: then only that run counts.",
    )
    return [words.format(which=which)]


def _too_busy(before: bool, after: bool) -> str:
    """That other programs left a timing nothing to tell; whose."""
    if before and after:
        return translate(
            "iterations",
            "Disturbed: other programs kept both runs waiting for a processor, too long to tell the change.",
        )
    which = translate("iterations", "this run") if after else translate("iterations", "the run before")
    return translate(
        "iterations",
        "Disturbed: other programs kept {which} waiting for a processor, too long to tell the change.",
    ).format(which=which)


def start_words(found: Judgement, before: RunRecord | None, after: RunRecord | None) -> list[str]:
    """That the first step takes much longer than before, as a compiler makes it, and when that is made up for."""
    old, new = (run.first_step_ns if run is not None else None for run in (before, after))
    if not old or not new or not found.after_ns or not found.before_ns:
        return []
    longer = new - old
    if longer < max(STARTS_SLOWLY_NS, STARTS_TIMES * found.after_ns):
        return []
    words = translate(
        "iterations",
        "Its first step took {new} (before: {old}), as where code is compiled; no step time counts that.",
    ).format(new=text.duration(new), old=text.duration(old))
    if found.is_gain is None:
        return [words]
    if not found.is_gain:
        return [words, translate("iterations", "Each start of the script pays for it.")]
    steps = longer / (found.before_ns - found.after_ns)
    made_up = translate("iterations", "It is made up for after about {count} steps.")
    return [words, made_up.format(count=text.count(rounded(steps)))]


def untimed_words(iteration: Iteration, run: RunRecord | None) -> list[str]:
    """Why a round has no time of a step without the profiler, and what to do about it; nothing where it has one."""
    why = untimed(run) if run is not None and not iteration.figures.wall_ns and iteration.is_good else ""
    if not why:
        return []
    words = translate("iterations", "In round {number} the step without the profiler is unknown: {why}")
    return [words.format(number=iteration.number, why=why)]


def rounded(steps: float) -> int:
    """A number of steps with two digits that count, upwards."""
    unit = int(10 ** max(len(str(int(steps))) - 2, 0))
    return math.ceil(steps / unit) * unit
