"""What a round brought, in sentences: the change, the prediction, why it was off, and whether the results stayed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QCoreApplication

from core.change_range import is_calm
from core.judging import GAIN_PCT, SLOWED, Judgement, is_busy, is_same_code, judge
from core.project import Figures, Iteration, Project
from core.results import ROUNDING, ResultCheck
from gui import text
from gui.round_pace import disturbed, pace_words, start_words, untimed_words
from gui.round_parameters import run_record, same_parameters, small_percent
from gui.round_state import can_run, cut_off, made_from, why_unmeasured

translate = QCoreApplication.translate


def script_name(project: Project) -> str:
    """A script with its folder behind it: the name is what must be seen where there is little room."""
    path = Path(project.script)
    if not path.is_absolute():
        return project.script
    return translate("iterations", "{name} · {folder}").format(name=path.name, folder=path.parent)


def verdict(
    project: Project,
    checks: dict[int, ResultCheck],
    number: int | None = None,
    again: Callable[[Project, Iteration], str] | None = None,
) -> str:
    """One paragraph on a round, where it was measured; else on the newest one that was.

    ``again`` is `gui.round_state.again_words` where files are to be looked at: else both codes are taken to be there.
    """
    measured = [i for i in project.iterations if step(i) is not None]
    measured += [i for i in measured if i.number == number]
    if not measured:
        return translate("iterations", "No round has a known step time yet.")
    last = measured[-1]
    parent = project.get(last.parent)
    chosen = project.get(number)
    if chosen is not None and (chosen is not last or chosen.parent is not None and not chosen.is_good):
        return why_unmeasured(chosen)
    if parent is None and not counts(project, last):
        words = translate("iterations", "Round {number} was cut off: only its first steps are known, {time} a step.")
        return words.format(number=last.number, time=text.duration(step(last)))
    if parent is None:
        if plain_counts(project):
            words = translate("iterations", "The starting point: {time} a step without the profiler.")
            shown = last.figures.wall_ns
        else:
            words = translate("iterations", "The starting point: {time} a step.")
            shown = step(last)
        figures = last.figures
        if figures.left != 0:
            words += " " + translate("iterations", "Choose a suggestion and apply it to a copy.")
        untimed = untimed_words(last, run_record(last))
        said = [cut_off(last), words.format(time=text.duration(shown)), *untimed, *_disturbed(figures)]
        return " ".join(s for s in said if s)
    found = judge(parent, last, project.iterations)
    sentences = [
        cut_off(last),
        _change(found, parent, last),
        made_from(last),
        _at_first(found, parent, last),
        _recorded(found),
        *_repeated(project, last),
        translate("iterations", "What differs is chance, and shows how much.")
        if is_same_code(parent, last)
        else _prediction(found, last),
        *_why_of(found.reasons),
        *pace_words(found, project.iterations, partial(again, project, last) if again is not None else str),
        *_between_runs(found),
        *start_words(found, run_record(parent), run_record(last)),
        *[words for one in (parent, last) for words in untimed_words(one, run_record(one))][:1],
    ]
    there = again is None or checks[last.number].status != "differs" or can_run(project, parent)
    sentences += [_same(checks[last.number], parent, there), same_parameters(parent, last)]
    return " ".join(s for s in sentences if s)


def _change(found: Judgement, parent: Iteration, last: Iteration) -> str:
    if found.before_ns is None or found.after_ns is None or found.measured_pct is None:
        return translate(
            "iterations", "Whether it became faster is unknown: there is no step time that both rounds have."
        )
    kind = {
        "sustained": translate("iterations", "sustained step"),
        "wall": translate("iterations", "step without the profiler"),
        "host": translate("iterations", "host step"),
    }[found.measure]
    words = (
        translate(
            "iterations",
            "Round {number}: {result}. The {kind} went from {before} in round {parent} to {after} ({change}).",
        )
        if len(found.baseline) < 2
        else translate(
            "iterations",
            "Round {number}: {result}. The {kind} went from {before}, the mean of rounds {rounds}, to {after} "
            "({change}).",
        )
    )
    again = is_same_code(parent, last)
    return words.format(
        result=translate("iterations", "the same code again") if again else result(found),
        number=last.number,
        parent=found.baseline[0] if found.baseline else parent.number,
        rounds=listed(found.baseline),
        kind=kind,
        before=text.duration(found.before_ns),
        after=text.duration(found.after_ns),
        change=signed(found.measured_pct),
    )


def _at_first(found: Judgement, parent: Iteration, last: Iteration) -> str:
    """What the change was with the round before alone: others of the same code that were measured since moved it."""
    first = judge(parent, last).measured_pct if found.baseline not in ((), (parent.number,)) else None
    if first is None or found.measured_pct is None or text.change(first) == text.change(found.measured_pct):
        return ""
    words = (
        translate("iterations", "With round {parent} alone it was {change}: the same code was measured again since.")
        if parent.number in found.baseline
        else translate("iterations", "With round {parent}, which other programs disturbed, it was {change}.")
    )
    return words.format(parent=parent.number, change=text.change(first))


def listed(numbers: Sequence[int]) -> str:
    """Numbers in words: 0, 3 and 4."""
    *others, last = map(str, numbers)
    return (
        translate("iterations", "{others} and {last}").format(others=", ".join(others), last=last) if others else last
    )


def result(found: Judgement) -> str:
    """Whether a round was faster, in a few words."""
    if found.is_gain is None:
        return translate("iterations", "unclear whether it is faster")
    if found.is_gain:
        return translate("iterations", "faster")
    slower = (found.measured_pct or 0.0) >= GAIN_PCT
    return translate("iterations", "slower") if slower else translate("iterations", "no gain")


def _recorded(found: Judgement) -> str:
    """The same step while it was recorded, where that is another time."""
    if found.recorded_ns is None or found.before_ns is None or found.after_ns is None:
        return ""
    old, new = found.recorded_ns
    if old <= SLOWED * found.before_ns and new <= SLOWED * found.after_ns:
        return ""
    return translate("iterations", "While recorded it went from {before} to {after} ({change}).").format(
        before=text.duration(old), after=text.duration(new), change=signed(100.0 * (new - old) / old)
    )


def _repeated(project: Project, last: Iteration) -> list[str]:
    """The other measurements of the same code, so that their difference can be seen."""
    others = [i for i in project.iterations if i.number not in (last.number, last.parent) and is_same_code(i, last)]
    pairs = [(i.number, i.figures.wall_ns or i.figures.sustained_ns) for i in others]
    known = [
        translate("iterations", "{time} in round {number}").format(time=text.duration(ns), number=number)
        for number, ns in pairs
        if ns is not None
    ]
    if not known:
        return []
    words = translate("iterations", "The same code was measured before: {times}.")
    return [words.format(times=", ".join(known))]


def _prediction(found: Judgement, last: Iteration) -> str:
    if last.made_from is not None:
        return ""
    if found.predicted_pct is None:
        return translate("iterations", "There was no prediction for it.")
    values = {"predicted": signed(found.predicted_pct), "off": points(found.off_by_pct)}
    if found.outcome == "right":
        return translate("iterations", "Predicted was {predicted}: the prediction held.").format(**values)
    if found.is_gain is None and found.outcome in ("better", "worse"):  # which is not to be read as one judgement
        words = (
            translate("iterations", "Predicted was {predicted}: too low by {off} points, whether it is faster or not.")
            if found.outcome == "better"
            else translate(
                "iterations", "Predicted was {predicted}: too high by {off} points, whether it is faster or not."
            )
        )
        return words.format(**values)
    if found.outcome == "better":
        return translate("iterations", "Predicted was {predicted}: it brought more, by {off} points.").format(**values)
    if found.outcome == "worse":
        return translate("iterations", "Predicted was {predicted}: it brought less, by {off} points.").format(**values)
    if found.outcome == "unclear":
        return translate("iterations", "Predicted was {predicted}; whether it held cannot be told.").format(**values)
    return translate("iterations", "Predicted was {predicted}; it cannot be compared.").format(**values)


def _disturbed(figures: Figures) -> list[str]:
    """That other programs were busy while the first round's steps were timed, where that is known."""
    if not is_calm(figures):
        return [disturbed(figures)]
    known = figures.waited_pct is not None
    busy = not known and is_busy(figures.wall_ns, figures.sustained_ns, figures.host_ns)
    return _why_of(["machine"] if busy else [])


def _why_of(reasons: Sequence[str]) -> list[str]:
    """What is known about a judgement or a run (codes), in sentences."""
    words = {
        "still_found": translate(
            "iterations", "The fault is still found in the new trace, so the change did not reach all of it."
        ),
        "new_found": translate("iterations", "The new trace shows faults that the old one hid."),
        "profiler": translate(
            "iterations",
            "The profiler slows this script down much, and the prediction is of the step while recorded: what the "
            "profiler adds cannot be saved.",
        ),
        "crowded": translate(
            "iterations",
            "The script's own threads and workers now wait for one another: they want more cores than there are. Try "
            "fewer workers.",
        ),
        "spread": translate(
            "iterations", "The steps of a run differ so much among themselves that this difference says little."
        ),
        "machine": translate(
            "iterations",
            "A step without the profiler took longer than one with it: other programs were busy, or the steps that "
            "were not recorded have more to do. Measure it again.",
        ),
    }
    return [words[reason] for reason in reasons if reason in words]


def _between_runs(found: Judgement) -> list[str]:
    """How far runs of the same code lie apart, beside the change."""
    if found.repeat_pct is None:
        return []
    words = (
        translate("iterations", "The same code differed by {share} between two runs: this change is within that.")
        if "repeat" in found.reasons
        else translate("iterations", "The same code differed by {share} between two runs.")
    )
    return [words.format(share=text.apart(found.repeat_pct))]


def same_in_short(check: ResultCheck, before: Iteration | None) -> str:
    """Whether the losses of a round are those of the round before, for a cell of the table."""
    if before is None:
        return ""
    if check.status == "unknown":
        return translate("iterations", "not recorded")
    if check.chance:
        return translate("iterations", "cannot be compared")
    if check.status == "differs":
        return translate("iterations", "no, from step {step} on").format(step=check.first)
    words = (
        translate("iterations", "within rounding, {count} steps")
        if check.largest
        else translate("iterations", "equal, {count} steps")
    )
    return words.format(count=check.compared)


def _same(check: ResultCheck, before: Iteration, there: bool) -> str:
    """Whether the losses are equal, the same within rounding, different, not known, or left to chance.

    ``there``: the code before can be run once more.
    """
    if check.status == "unknown":
        return translate("iterations", "Whether the losses stayed the same is unknown: they were not recorded.")
    if check.chance:
        return _left_to_chance(check)
    values = {"count": check.compared, "step": check.first, "allowed": text.percent(100 * ROUNDING)}
    values["largest"] = small_percent(100 * (check.largest or 0.0))
    values["before"] = before.number
    if check.status == "differs" and math.isinf(check.largest or 0.0):
        words = translate(
            "iterations", "The losses differ from step {step} on: in one of the two runs some are not finite."
        )
    elif check.status == "differs" and check.repeated is not None:
        values["one"], values["other"] = check.repeated
        words = translate(
            "iterations",
            "The losses differ from step {step} on, by up to {largest}, which is more than rounding explains "
            "({allowed}). Rounds {one} and {other} ran the code before and came to the same losses: it is the fix that "
            "changed what is computed.",
        )
    elif check.status == "differs":
        words = translate(
            "iterations",
            "The losses differ from step {step} on, by up to {largest}, which is more than rounding explains "
            "({allowed}): the fix changed what is computed, or the script draws other numbers in every run.",
        )
        if there:
            cure = translate(
                "iterations", "Measure round {before} again to know: the same code must come to the same losses."
            )
            words = f"{words} {cure}"
    elif check.largest:
        words = translate(
            "iterations",
            "The losses are the same within rounding: in {count} steps they differ by {largest} at most.",
        )
    else:
        words = translate("iterations", "The losses are equal to the last digit in all {count} steps compared.")
    words = words.format(**values)
    if check.left_out:
        left_out = translate("iterations", "Of the {count} steps that the profiler recorded no losses are kept.")
        words = f"{words} {left_out.format(count=check.left_out)}"
    return words


def _left_to_chance(check: ResultCheck) -> str:
    """Why a difference of the losses means nothing, and what makes them comparable."""
    if check.chance == "no_seed":
        return translate(
            "iterations",
            "The losses cannot be compared: the script draws other numbers in every run (no seed was seen in its "
            "sources). With torch.manual_seed(0) at its start they can be: add it, and profile the script anew.",
        )
    one, other = check.repeated or (0, 0)
    return translate(
        "iterations",
        "The losses cannot be compared: rounds {one} and {other} ran the same code and differ too, so the script draws "
        "other numbers in every run. Seed all that draws them: torch, numpy, random, the order of the data.",
    ).format(one=one, other=other)


def step(iteration: Iteration) -> float | None:
    """A step time of a round: sustained, else without the profiler, else the host's."""
    figures = iteration.figures
    return figures.sustained_ns or figures.wall_ns or figures.host_ns


def plain_counts(project: Project) -> bool:
    """Whether the chart and the first column are of the step without the profiler: every round that counts has it."""
    rounds = [i for i in project.iterations if step(i) is not None and counts(project, i)]
    return bool(rounds) and all(i.figures.wall_ns for i in rounds)


def counts(project: Project, iteration: Iteration) -> bool:
    """Whether a round is more than a run cut off before its measurement, of which only the first steps are known.

    Where a measured round was judged against such a run, or no other was measured, it counts as well.
    """
    if iteration.is_good or iteration.state in ("ok", "running"):
        return True
    rounds = [i for i in project.iterations if step(i) is not None and i.number != iteration.number]
    return not rounds or any(i.parent == iteration.number for i in rounds)


def signed(pct: float | None) -> str:
    """A change in per cent with its sign; nothing where it is unknown."""
    return "" if pct is None else text.change(pct)


def points(value: float | None) -> str:
    """A difference of two changes, in points."""
    return text.unknown() if value is None else f"{abs(value):.0f}"
