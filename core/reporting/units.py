"""Quantities as people read them."""

from __future__ import annotations

from core import words
from core.words import significant, time

UNKNOWN = "unknown"


def duration(time_ns: float | None) -> str:
    """Return a duration with the unit that fits it; None is unknown."""
    return UNKNOWN if time_ns is None else time(time_ns)


def percent(value: float | None) -> str:
    """Return a share given in percent; whole percents from 10 on."""
    if value is None:
        return UNKNOWN
    if 0 < abs(value) < 0.05:
        return "<0.1 %" if value > 0 else ">-0.1 %"
    return f"{value:.0f} %" if abs(value) >= 9.95 or value == 0 else f"{value:.1f} %"


def count(value: float | None) -> str:
    """Return a count, or a mean count with one decimal where it is no whole number."""
    if value is None:
        return UNKNOWN
    if float(value).is_integer():
        return words.grouped(value)
    return words.grouped(value, 1) if abs(value) >= 0.1 else f"{value:.2g}"


def size(value_bytes: float | None) -> str:
    """Return a size in binary units."""
    return UNKNOWN if value_bytes is None else words.size(value_bytes)


def measure(value: float | int | str | None, unit: str) -> str:
    """Return an evidence's value with its unit, whatever unit the rule chose."""
    if value is None:
        return UNKNOWN
    if isinstance(value, str):
        return f"{words.cut(value)} {unit}".strip()
    scale = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}.get(unit)
    if scale is not None:
        return duration(value * scale)
    if unit in ("%", "percent"):
        return percent(value)
    if unit in ("bytes", "B"):
        return size(value)
    number = count(value) if isinstance(value, int) else significant(value)
    return f"{number} {unit}".strip()
