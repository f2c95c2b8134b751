"""What two rounds came to in the end, in sentences: whether their parameters are the same."""

from __future__ import annotations

import math
from pathlib import Path

from PySide6.QtCore import QCoreApplication

from core.project import Iteration
from core.results import ResultCheck, compare_parameters
from core.run_folder import ParametersAt, RunRecord, read_run
from gui import text

translate = QCoreApplication.translate


def run_record(iteration: Iteration) -> RunRecord | None:
    """The run of a round, where its folder is still there."""
    return read_run(Path(iteration.run_folder)) if iteration.run_folder else None


def small_percent(pct: float) -> str:
    """A share in per cent with one digit that counts, however small: 0.00002 %."""
    if pct <= 0 or pct >= 0.1:
        return text.percent(pct)
    digits = min(1 - math.floor(math.log10(pct)), 12) - 1
    return f"{pct:.{digits}f}{text.THIN}%"


def same_parameters(before: Iteration, after: Iteration) -> str:
    """Nothing where they were not asked for."""
    old, new = run_record(before), run_record(after)
    if old is None or new is None:
        return ""
    sentences = [_same_at(old.parameters_at, new.parameters_at)]
    check = compare_parameters(old.parameters, new.parameters)
    if check.status == "same":
        same = translate("iterations", "The parameters at the end are the same ({count} compared).")
        sentences.append(same.format(count=check.compared))
    elif check.status == "differs":
        parted = translate("iterations", "The parameters at the end differ by up to {share}, from number {number} on.")
        sentences.append(parted.format(share=_share(check), number=(check.first or 0) + 1))
    return " ".join(s for s in sentences if s)


def _share(check: ResultCheck) -> str:
    """By how much parameters differ: training lets rounding grow, so that a small difference is no fault yet."""
    known = check.largest is not None and math.isfinite(check.largest)
    return small_percent(100 * (check.largest or 0.0)) if known else "∞"


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
        words = translate(
            "iterations", "The parameters after {step} steps differ by up to {share}, from number {number} on."
        )
        return words.format(step=old.step, share=_share(check), number=(check.first or 0) + 1)
    return translate("iterations", "The parameters after {step} steps could not be compared.").format(step=old.step)
