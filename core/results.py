"""Whether two runs under the same seed came to the same results: their losses, and their parameters where kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.run_folder import RunRecord

ROUNDING = 1e-3  # relative: float32 sums in another order differ by less, a changed computation by more
Sums = tuple[tuple[float, float] | None, ...]  # (sum, length) of each parameter


@dataclass(frozen=True)
class ResultCheck:
    """Losses of two runs under the same seed.

    ``status`` is ``same`` (within rounding), ``differs``, or ``unknown`` (not recorded, or nothing in common).
    ``first`` is the first step (in older runs: backward pass) that differs, ``largest`` the largest relative
    difference, ``compared`` the number of values that both runs have. ``left_out`` is the number of steps between the
    first and the last one compared that were not, since they were recorded in one of the runs; ``last`` the last step.
    ``chance`` says why the difference means nothing (`core.round_checks`): ``no_seed`` or ``repeated``, and then
    ``repeated`` holds the numbers of two rounds of the same code that differ too. Without a chance it holds two
    that agree: the fix makes the difference.
    """

    status: str
    compared: int = 0
    first: int | None = None
    largest: float | None = None
    left_out: int = 0
    last: int | None = None
    chance: str = ""
    repeated: tuple[int, int] | None = None


def compare_results(before: RunRecord | None, after: RunRecord | None, allowed: float = ROUNDING) -> ResultCheck:
    """Compare the losses of two runs step by step, whichever steps each of them kept.

    The recorded steps are left out of a run unless its results were asked for, and lie elsewhere in each run, since the
    timing before them takes as many steps as fit into a time.
    """
    if before is None or after is None or not before.losses or not after.losses:
        return ResultCheck("unknown")
    if before.loss_steps is None or after.loss_steps is None:
        return compare_losses(_until_gap(before), _until_gap(after), allowed)
    old, new = _by_step(before.losses, before.loss_steps), _by_step(after.losses, after.loss_steps)
    shared = [key for key in old if key in new]
    found = compare_losses(tuple(old[key] for key in shared), tuple(new[key] for key in shared), allowed)
    if found.status == "unknown":
        return found
    steps = sorted({step for step, _ in shared})
    first = shared[found.first][0] if found.first is not None else None
    left_out = max(steps[-1] - steps[0] + 1 - len(steps), 0)
    return replace(found, first=first, left_out=left_out, last=steps[-1])


def _by_step(losses: Sequence[float | None], steps: Sequence[int]) -> dict[tuple[int, int], float | None]:
    """Losses by step and position in it: a step can have several backward passes."""
    found: dict[tuple[int, int], float | None] = {}
    count: dict[int, int] = {}
    for loss, step in zip(losses, steps, strict=True):
        found[step, count.get(step, 0)] = loss
        count[step] = count.get(step, 0) + 1
    return found


def _until_gap(run: RunRecord) -> tuple[float | None, ...]:
    """Losses up to the first step without any: an older run has no others."""
    losses, steps = run.losses or (), run.loss_steps
    if steps is None:
        return losses
    gap = next((i for i in range(1, len(steps)) if steps[i] > steps[i - 1] + 1), len(steps))
    return losses[:gap]


def compare_losses(
    before: tuple[float | None, ...] | None, after: tuple[float | None, ...] | None, allowed: float = ROUNDING
) -> ResultCheck:
    """Compare the losses of two runs, backward pass by backward pass."""
    if not before or not after:
        return ResultCheck("unknown")
    first, largest, compared = None, 0.0, 0
    for i, (a, b) in enumerate(zip(before, after, strict=False)):
        if a is None and b is None:  # not finite in both
            continue
        compared += 1
        if a is None or b is None:
            difference = math.inf
        else:
            difference = abs(a - b) / max(abs(a), abs(b), 1e-12)
        largest = max(largest, difference)
        if difference > allowed and first is None:
            first = i
    if not compared:
        return ResultCheck("unknown")
    return ResultCheck("same" if first is None else "differs", compared, first, largest)


def compare_parameters(before: Sums | None, after: Sums | None, allowed: float = ROUNDING) -> ResultCheck:
    """Compare the parameters at the end of two runs, by their sum and length, in the order of the optimizers.

    A sum may differ by a share of itself or of the length, since it can be next to nothing by itself. ``first`` is the
    position of the first parameter that differs.
    """
    if not before or not after or len(before) != len(after):
        return ResultCheck("unknown")
    first, largest, compared = None, 0.0, 0
    for i, (a, b) in enumerate(zip(before, after, strict=True)):
        if a is None and b is None:
            continue
        compared += 1
        difference = math.inf
        if a is not None and b is not None:
            length = max(a[1], b[1], 1e-12)
            difference = max(abs(a[0] - b[0]) / max(abs(a[0]), abs(b[0]), length), abs(a[1] - b[1]) / length)
        largest = max(largest, difference)
        if difference > allowed and first is None:
            first = i
    if not compared:
        return ResultCheck("unknown")
    return ResultCheck("same" if first is None else "differs", compared, first, largest)
