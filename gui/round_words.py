"""What a round brought, in sentences: the change, the prediction, why it was off, and whether the results stayed."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QCoreApplication

from core.project import Iteration, Judgement, Project, judge
from core.results import ResultCheck, compare_parameters
from core.run_folder import ParametersAt, read_run
from gui import text

translate = QCoreApplication.translate


def verdict(project: Project, checks: dict[int, ResultCheck]) -> str:
    """One paragraph on the newest round that was measured."""
    measured = [i for i in project.iterations if step(i) is not None]
    if not measured:
        return translate("iterations", "No round has a known step time yet.")
    last = measured[-1]
    parent = project.get(last.parent)
    if parent is None:
        return translate(
            "iterations", "The starting point: {time} a step. Choose a suggestion and apply it to a copy."
        ).format(time=text.duration(step(last)))
    found = judge(parent, last)
    sentences = [_change(found), _prediction(found), *_why(found), _same(checks[last.number])]
    sentences.append(_same_parameters(parent, last))
    return " ".join(s for s in sentences if s)


def _change(found: Judgement) -> str:
    if found.before_ns is None or found.after_ns is None or found.measured_pct is None:
        return translate(
            "iterations", "Whether it became faster is unknown: there is no step time that both rounds have."
        )
    kind = {
        "sustained": translate("iterations", "sustained step"),
        "wall": translate("iterations", "step without the profiler"),
        "host": translate("iterations", "host step"),
    }[found.measure]
    return translate("iterations", "The {kind} went from {before} to {after} ({change}).").format(
        kind=kind,
        before=text.duration(found.before_ns),
        after=text.duration(found.after_ns),
        change=signed(found.measured_pct),
    )


def _prediction(found: Judgement) -> str:
    if found.predicted_pct is None:
        return translate("iterations", "There was no prediction for it.")
    values = {"predicted": signed(found.predicted_pct), "off": points(found.off_by_pct)}
    if found.outcome == "right":
        return translate("iterations", "Predicted was {predicted}: the prediction held.").format(**values)
    if found.outcome == "better":
        return translate("iterations", "Predicted was {predicted}: it brought more, by {off} points.").format(**values)
    if found.outcome == "worse":
        return translate("iterations", "Predicted was {predicted}: it brought less, by {off} points.").format(**values)
    if found.outcome == "unclear":
        return translate("iterations", "Predicted was {predicted}; whether it held cannot be told.").format(**values)
    return translate("iterations", "Predicted was {predicted}; it cannot be compared.").format(**values)


def _why(found: Judgement) -> list[str]:
    words = {
        "still_found": translate(
            "iterations", "The fault is still found in the new trace, so the change did not reach all of it."
        ),
        "new_found": translate("iterations", "The new trace shows faults that the old one hid."),
        "profiler": translate("iterations", "The profiler slows this script down much, which hides part of the gain."),
        "spread": translate(
            "iterations", "The steps of a run differ so much among themselves that this difference says little."
        ),
        "machine": translate(
            "iterations",
            "A step without the profiler took longer than one with it: other programs were busy. Run it again.",
        ),
    }
    return [words[reason] for reason in found.reasons]


def _same(check: ResultCheck) -> str:
    words = []
    if check.status == "same":
        words.append(
            translate("iterations", "The losses are the same ({count} compared).").format(count=check.compared)
        )
    elif check.status == "differs":
        words.append(
            translate("iterations", "The losses part at step {step}, by up to {largest}.").format(
                step=check.first, largest=text.percent(100 * (check.largest or 0.0))
            )
        )
    else:
        return translate("iterations", "Whether the losses stayed the same is unknown: they were not recorded.")
    if check.left_out:
        left_out = translate("iterations", "The {count} steps in between that were recorded are not among them.")
        words.append(left_out.format(count=check.left_out))
    return " ".join(words)


def _same_parameters(before: Iteration, after: Iteration) -> str:
    """Nothing where they were not asked for."""
    old, new = read_run(Path(before.run_folder)), read_run(Path(after.run_folder))
    if old is None or new is None:
        return ""
    sentences = [_same_at(old.parameters_at, new.parameters_at)]
    check = compare_parameters(old.parameters, new.parameters)
    if check.status == "same":
        same = translate("iterations", "So are the parameters at the end ({count} compared).")
        sentences.append(same.format(count=check.compared))
    elif check.status == "differs":
        parted = translate("iterations", "The parameters at the end differ, the first of them is number {number}.")
        sentences.append(parted.format(number=(check.first or 0) + 1))
    return " ".join(s for s in sentences if s)


def _same_at(old: ParametersAt | None, new: ParametersAt | None) -> str:
    """The parameters after a chosen step."""
    if old is None or new is None:
        return ""
    if old.step != new.step:
        return translate("iterations", "The parameters were kept after different steps, and are not compared.")
    if "recorded" in (old.reason, new.reason):
        words = translate("iterations", "Step {step} was recorded, so the parameters after it were not kept.")
        return words.format(step=old.step)
    check = compare_parameters(old.sums, new.sums)
    if check.status == "same":
        words = translate("iterations", "The parameters after {step} steps are the same ({count} compared).")
        return words.format(step=old.step, count=check.compared)
    if check.status == "differs":
        words = translate("iterations", "The parameters after {step} steps differ, the first is number {number}.")
        return words.format(step=old.step, number=(check.first or 0) + 1)
    return translate("iterations", "The parameters after {step} steps could not be compared.").format(step=old.step)


def step(iteration: Iteration) -> float | None:
    """The step time that the chart shows: sustained, else without the profiler, else the host's."""
    figures = iteration.figures
    return figures.sustained_ns or figures.wall_ns or figures.host_ns


def signed(pct: float | None) -> str:
    """A change in per cent with its sign; nothing where it is unknown."""
    if pct is None:
        return ""
    if abs(pct) < 0.05:
        return text.percent(0.0)
    return ("−" if pct < 0 else "+") + text.percent(abs(pct))


def points(value: float | None) -> str:
    """A difference of two changes, in points."""
    return text.unknown() if value is None else f"{abs(value):.0f}"
