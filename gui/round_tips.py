"""What the columns of the table of rounds mean, and what some of their cells say."""

from __future__ import annotations

from pathlib import PurePath

from PySide6.QtCore import QCoreApplication

from core.judging import Judgement
from core.project import AppliedFix
from gui import round_words, text

translate = QCoreApplication.translate


def tips() -> dict[str, str]:
    """A sentence or two on each column, by its name here."""
    return {
        "wall": translate(
            "iterations", "One step by the clock: the time of some steps before the recording, without the profiler."
        ),
        "sustained": translate(
            "iterations",
            "The time per step if the loop ran for ever, from a replay of the trace. The profiler's own cost is in it.",
        ),
        "host": translate("iterations", "How long the CPU spent in one step while it was recorded (mean)."),
        "predicted": translate(
            "iterations", "Change of the sustained step that the replay of the round before foretold for these fixes."
        ),
        "measured": translate(
            "iterations",
            "Change of the step without the profiler, where both rounds have it; else of the sustained step.",
        ),
        "prediction": translate(
            "iterations",
            "Held: measured is within 5 points of predicted. Too high: it brought less than predicted. Too low: more. "
            "Unclear: the runs differ too much among themselves, or other programs were busy.",
        ),
        "losses": translate(
            "iterations",
            "Whether each step has the loss that it had in the round before, under the same seed: equal to the last "
            "digit, within rounding (0.1 %), or different from some step on.",
        ),
    }


def outcome(found: Judgement | None) -> str:
    """Whether a prediction held, for a cell of the table."""
    if found is None:
        return ""
    off = round_words.points(found.off_by_pct)
    return {
        "right": translate("iterations", "held"),
        "better": translate("iterations", "too low by {off} points").format(off=off),
        "worse": translate("iterations", "too high by {off} points").format(off=off),
        "unclear": translate("iterations", "unclear"),
    }.get(found.outcome, text.unknown())


def short(fix: AppliedFix) -> str:
    """What was done, in the first words of its summary; the place where the title could not tell it."""
    words = fix.summary.partition(":")[0].partition(",")[0].rstrip(".")
    place = PurePath(fix.place.replace("\\", "/")).name
    return f"{words} ({place})" if place and words else words or fix.title
