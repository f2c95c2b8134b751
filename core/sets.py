"""Sets of whole numbers: what `numpy.unique` and `numpy.isin` give, several times faster for numbers of slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.tables import Bool

_TABLE_PER_VALUE = 64  # entries of a table for each value: it is still made and read faster than values are searched
_SMALL_TABLE = 1 << 16
_Number = TypeVar("_Number", bound=np.integer[Any])


def distinct(values: NDArray[_Number]) -> NDArray[_Number]:
    """Return the values ascending, each once (a sort of integers is far faster than the hashing of `numpy.unique`)."""
    ordered = np.sort(values)
    first = np.empty(len(ordered), dtype=bool)
    first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    found: NDArray[_Number] = ordered[first]
    return found


def among(values: NDArray[np.integer[Any]], members: NDArray[np.integer[Any]] | Sequence[int]) -> Bool:
    """bool[len(values)]: which of the values are members; both in any order, repetitions allowed."""
    wanted = np.asarray(members)
    if not len(values) or not len(wanted):
        return np.zeros(len(values), dtype=bool)
    low, high = int(wanted.min()), int(wanted.max())
    hit: Bool = (values >= low) & (values <= high)
    if high - low <= max(_SMALL_TABLE, _TABLE_PER_VALUE * (len(values) + len(wanted))):
        table = np.zeros(high - low + 1, dtype=bool)
        table[wanted - low] = True
        hit[hit] = table[values[hit] - low]
        return hit
    ordered = np.sort(wanted)
    inside = values[hit]
    hit[hit] = ordered[np.minimum(np.searchsorted(ordered, inside), len(ordered) - 1)] == inside
    return hit
