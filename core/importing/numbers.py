"""Exact conversion of the numbers of a trace."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import Any

import numpy as np

from core.tables import F64, I64, Bool

EXACT_BELOW_US = 2.0**43  # a float64 of microseconds with three decimals names its ns without doubt below this
LIMIT_NS = 1 << 62
_LIMIT_US = LIMIT_NS // 1000
I64_MAX = (1 << 63) - 1


def time_ns(value: Any) -> int | None:
    """Nanoseconds of a time or duration in microseconds; None when it is no finite number of a sane size.

    Integers, decimals and text are converted exactly, floats to the nearest nanosecond.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value * 1000 if -_LIMIT_US < value < _LIMIT_US else None
    if isinstance(value, float):
        if not -_LIMIT_US < value < _LIMIT_US:
            return None
        whole = math.floor(value)
        return whole * 1000 + round((value - whole) * 1000)
    if isinstance(value, str):
        try:
            value = Decimal(value.strip())
        except InvalidOperation:
            return None
    if isinstance(value, Decimal):
        if not value.is_finite() or not -_LIMIT_US < value < _LIMIT_US:
            return None
        return int((value * 1000).to_integral_value(ROUND_HALF_EVEN))
    return None


def times_ns(values: F64) -> tuple[I64, Bool]:
    """Nanoseconds of float64 microseconds.

    Returns
    -------
    tuple
        int64[n] ns (0 where unusable) and bool[n]: usable.
    """
    with np.errstate(invalid="ignore"):
        good = np.abs(values) < _LIMIT_US
    safe = np.where(good, values, 0.0)
    whole = np.floor(safe)
    return whole.astype(np.int64) * 1000 + np.rint((safe - whole) * 1000).astype(np.int64), good


def needs_text(values: F64) -> bool:
    """Tell whether some of these float64 microseconds are too large to keep their nanoseconds."""
    big = values[np.abs(values) >= EXACT_BELOW_US]
    return bool(len(big)) and bool(np.any(big != np.floor(big)))


def whole(value: Any) -> int:
    """Int of an id or a size, -1 when it is none."""
    if isinstance(value, int):
        return value if -I64_MAX <= value <= I64_MAX else _wrapped(value)
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and abs(value) < 2**62 else -1
    if isinstance(value, Decimal):
        return whole(float(value))
    if isinstance(value, str):
        try:
            text = value.strip()[:32]
            return whole(int(text, 16) if text[:2].lower() == "0x" else int(text))
        except ValueError:
            return -1
    return -1


def _wrapped(value: int) -> int:
    """Unsigned 64-bit values wrap into int64, so that equal ids stay equal; larger ones are none."""
    return value - (1 << 64) if 0 <= value < (1 << 64) else -1
