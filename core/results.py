"""Whether two runs under the same seed came to the same results: their losses, and their parameters where kept."""

from __future__ import annotations

import math
from dataclasses import dataclass

ROUNDING = 1e-3  # relative: float32 sums in another order differ by less, a changed computation by more
Sums = tuple[tuple[float, float] | None, ...]  # (sum, length) of each parameter


@dataclass(frozen=True)
class ResultCheck:
    """Losses of two runs under the same seed.

    ``status`` is ``same`` (within rounding), ``differs``, or ``unknown`` (not recorded, or nothing in common).
    ``first`` is the first backward pass that differs, ``largest`` the largest relative difference, ``compared`` the
    number of values that both runs have.
    """

    status: str
    compared: int = 0
    first: int | None = None
    largest: float | None = None


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

    A sum may differ by a share of the length, since it can be next to nothing by itself. ``first`` is the position of
    the first parameter that differs.
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
            difference = max(abs(a[0] - b[0]), abs(a[1] - b[1])) / max(a[1], b[1], 1e-12)
        largest = max(largest, difference)
        if difference > allowed and first is None:
            first = i
    if not compared:
        return ResultCheck("unknown")
    return ResultCheck("same" if first is None else "differs", compared, first, largest)
